package egress

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/trust"
)

// base are the variables of the daemon's own environment that every child is given; HOME is the child's
// private one (Homes). docs/policy.md lists them.
var base = []string{
	"LANG", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY",
	"LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "PATH", "TMPDIR", "TZ",
}

// Origin says where the value of a variable comes from.
type Origin string

// The origins; a later one overrides an earlier one.
const (
	FromBase        Origin = "base"
	FromDaemon      Origin = "daemon"
	FromDeclaration Origin = "declaration"
	FromEntry       Origin = "entry"
)

// Variable is one variable of a child's environment. Its value is shown only where the trust entry fixes it.
type Variable struct {
	Name  string `json:"name"`
	From  Origin `json:"from"`
	Value string `json:"value,omitempty"`
}

// Variables returns the variables that a child of the target is given under this trust, by name: the base,
// the variables of the daemon's environment that the trust entry names, and those declared or fixed.
func Variables(tr trust.Trust, target trust.Target) []Variable {
	if target.Command == nil {
		return nil
	}
	from := map[string]Origin{"HOME": FromBase}
	given := func(names []string, origin Origin) {
		for _, name := range names {
			if _, ok := os.LookupEnv(name); ok {
				from[name] = origin
			}
		}
	}
	given(base, FromBase)
	given(tr.Env(), FromDaemon)
	for _, name := range target.Command.Env {
		from[name] = FromDeclaration
	}
	fixed := tr.Fixed()
	for name := range fixed {
		from[name] = FromEntry
	}
	all := make([]Variable, 0, len(from))
	for _, name := range slices.Sorted(maps.Keys(from)) {
		all = append(all, Variable{name, from[name], fixed[name]})
	}
	return all
}

// environment returns the child's whole environment, each variable as NAME=value. home is its private HOME.
func environment(tr trust.Trust, target trust.Target, c Command, home string) ([]string, error) {
	if !slices.Equal(slices.Sorted(maps.Keys(c.Env)), target.Command.Env) {
		return nil, errors.New("the environment's names differ from the ones that were trusted")
	}
	env := []string{} // never nil: os/exec would pass on the whole environment
	for _, v := range Variables(tr, target) {
		value := v.Value
		switch v.From {
		case FromBase:
			value = ofBase(v.Name, home)
		case FromDaemon:
			value = os.Getenv(v.Name)
		case FromDeclaration:
			var err error
			if value, err = c.Env[v.Name].Resolve(c.Root); err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", v.Name, err)
			}
		}
		if err := CheckEnvName(v.Name); err != nil {
			return nil, err
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("environment variable %s: the value holds a NUL byte", v.Name)
		}
		env = append(env, v.Name+"="+value)
	}
	if strings.ContainsRune(c.Key, 0) {
		return nil, errors.New("the idempotency key holds a NUL byte, which no variable can carry")
	}
	if c.Key != "" {
		env = append(env, trust.KeyVariable+"="+c.Key)
	}
	return env, nil
}

// ofBase returns the value of a base variable. Of PATH only the absolute entries are passed on, as only those
// count for Resolve: a relative one would mean another directory in each working directory.
func ofBase(name, home string) string {
	switch name {
	case "HOME":
		return home
	case "PATH":
		entries := filepath.SplitList(os.Getenv("PATH"))
		return strings.Join(slices.DeleteFunc(entries, func(dir string) bool { return !filepath.IsAbs(dir) }), string(filepath.ListSeparator))
	}
	return os.Getenv(name)
}

// CheckEnvName returns nil when a declaration or a trust entry may set a variable of that name.
func CheckEnvName(name string) error {
	if name == trust.KeyVariable {
		return fmt.Errorf("environment variable %s is catalogd's own: it carries the idempotency key of a call; use another name", name)
	}
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("environment variable %q: a name is not empty and holds no = and no NUL byte", name)
	}
	return nil
}
