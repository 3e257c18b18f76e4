package binding

import (
	"strings"

	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// values checks the form of declared values and returns them unresolved; secrets are resolved at use.
func (c *check) values(field string, declared map[string]registry.Value) map[string]secret.Value {
	out := make(map[string]secret.Value, len(declared))
	for _, name := range sortedKeys(declared) {
		v := secret.Value(declared[name])
		at := field + "." + name
		switch {
		case v.Secret != "" && v.Literal != "":
			c.errorf(problem.BadSecret, at, "%s is both a text and a secret; leave one", name)
		case v.Secret != "":
			if err := secret.CheckReference(v.Secret); err != nil {
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

// maskedError is an error that is told without the secrets of a declaration.
type maskedError struct {
	error
	text string
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.error }

// withoutSecrets masks what an error says: those of net/http quote what the service has sent, which may repeat a secret.
func withoutSecrets(err error, values map[string]secret.Value, root string) error {
	if text := secret.MaskerFor(values, root).Replace(err.Error()); text != err.Error() {
		return &maskedError{err, text}
	}
	return err
}
