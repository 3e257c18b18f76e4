package binding

import (
	"strings"

	"github.com/catalogd/catalogd/internal/reach"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

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
