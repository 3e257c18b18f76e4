package binding

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// minMasked is the length from which a secret is looked for in output; a shorter one would take out innocent text.
const minMasked = 4

// values checks the form of declared values and hands them to reach, which resolves them at use.
func (c *check) values(field string, declared map[string]registry.Value) map[string]reach.Value {
	out := make(map[string]reach.Value, len(declared))
	for _, name := range sortedKeys(declared) {
		v := reach.Value(declared[name])
		at := field + "." + name
		switch {
		case v.Secret != "" && v.Literal != "":
			c.errorf(problem.BadSecret, at, "%s is both a text and a secret; leave one", name)
		case v.Secret != "":
			if err := reach.CheckSecret(v.Secret); err != nil {
				c.errorf(problem.BadSecret, at, "%v", err)
			}
		case v.Prefix != "":
			c.errorf(problem.BadSecret, at, "%s has a prefix and no secret", name)
		}
		if strings.ContainsRune(v.Literal+v.Prefix, 0) {
			c.errorf(problem.BadBinding, at, "the value of %s holds a NUL byte", name)
		}
		out[name] = v
	}
	return out
}

// masker takes the values of the declared secrets out of what a tool answers: a command or a service may repeat what it
// was given. It knows a value also as base64 and inside a JSON string.
func masker(values map[string]reach.Value, root string) *strings.Replacer {
	var pairs []string
	for _, name := range sortedKeys(values) {
		v := values[name]
		if v.Secret == "" {
			continue
		}
		// A secret that can't be read now was not handed out either; its use has reported that.
		secret, err := reach.Secret(v.Secret, root)
		if err != nil || len(secret) < minMasked {
			continue
		}
		forms := []string{secret}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms = append(forms, enc.EncodeToString([]byte(secret)))
		}
		if quoted, err := json.Marshal(secret); err == nil {
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		for _, form := range forms {
			pairs = append(pairs, form, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}
