package buildcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// lockName is the file of locked definitions, which is kept with the policy's files.
const lockName = "catalog.lock.json"

// validate checks what the loader guarantees of a build and nothing behind it checks again: names, effects,
// limits, kinds, and that every reference has its target. The registry checks contracts, internal/binding
// bindings, and the engine the policy.
func (c Compiled) validate() error {
	servers := map[string]bool{}
	for _, s := range c.Build.Servers {
		switch {
		case !registry.ValidName(s.Name) || servers[s.Name]:
			return fmt.Errorf("server %q: the name is not valid or not the only one", s.Name)
		case (s.Stdio == nil) == (s.HTTP == nil):
			return fmt.Errorf("server %q: it has not exactly one transport", s.Name)
		case s.ConnectTimeout <= 0 || s.InitializeTimeout <= 0 || s.CallTimeout <= 0 || s.MaxConnections <= 0:
			return fmt.Errorf("server %q: a limit is not above 0", s.Name)
		case s.Isolate != "" && s.Isolate != registry.ByBranch:
			return fmt.Errorf("server %q: it is isolated by %q, which there is not", s.Name, s.Isolate)
		case s.Digest == "":
			return fmt.Errorf("server %q: it has no digest", s.Name)
		}
		servers[s.Name] = true
	}
	branches := map[string]bool{}
	for _, b := range c.Build.Branches {
		if !registry.ValidName(b.Name) || branches[b.Name] {
			return fmt.Errorf("branch %q: the name is not valid or not the only one", b.Name)
		}
		branches[b.Name] = true
	}
	tools := make(map[string]bool, len(c.Build.Tools))
	for _, t := range c.Build.Tools {
		switch {
		case !registry.ValidName(t.Name) || tools[t.Name]:
			return fmt.Errorf("tool %q: the name is not valid or not the only one", t.Name)
		case t.Effect != registry.Read && t.Effect != registry.Write:
			return fmt.Errorf("tool %q: the effect is neither read nor write", t.Name)
		case t.Timeout <= 0:
			return fmt.Errorf("tool %q: the timeout is not above 0", t.Name)
		case t.Binding.MCP != nil && !servers[t.Binding.MCP.Server]:
			return fmt.Errorf("tool %q: its server is not declared", t.Name)
		case t.Digest == "":
			return fmt.Errorf("tool %q: it has no digest", t.Name)
		}
		if err := validateJSON(t); err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
		tools[t.Name] = true
	}
	if err := validatePackages(c.Build); err != nil {
		return err
	}
	for name, data := range c.Policy {
		known := strings.HasPrefix(name, "policy/") || name == lockName
		if !known || !fs.ValidPath(name) || !utf8.ValidString(name) || !utf8.Valid(data) {
			return fmt.Errorf("%q is neither a text file below policy/ nor the lock", name)
		}
	}
	for _, p := range c.Warnings {
		if p.Severity != problem.Warning {
			return errors.New("it has errors")
		}
	}
	return nil
}

// validatePackages checks that the build has exactly the sources that its packages name, unchanged, and the
// package of every contract that needs CUE at the call.
func validatePackages(b *registry.Build) error {
	digests, used := map[string]string{}, map[string]bool{}
	for _, p := range b.Packages {
		if digests[p.Dir] != "" || p.Digest == "" || !fs.ValidPath(p.Dir) {
			return fmt.Errorf("package %q: the folder or the digest is not valid, or it is there twice", p.Dir)
		}
		digests[p.Dir] = p.Digest
		for _, f := range p.Files {
			data, ok := b.Sources[f.Sum]
			if !ok || !fs.ValidPath(f.Name) || !used[f.Sum] && registry.Sum(data) != f.Sum {
				return fmt.Errorf("package %q: the file %q is missing or not what it was", p.Dir, f.Name)
			}
			used[f.Sum] = true
		}
	}
	if len(used) != len(b.Sources) {
		return errors.New("it has sources of no package")
	}
	for _, r := range b.Remainders() {
		if r.Digest == "" || digests[r.Package] != r.Digest {
			return fmt.Errorf("the sources that %s is checked with are missing", r.Path)
		}
	}
	return nil
}

// validateJSON checks that defaults and examples, which no contract checks, are JSON.
func validateJSON(t registry.Tool) error {
	values := make([]json.RawMessage, 0, 16)
	fields := t.Args.Fields
	if t.Result != nil {
		fields = slices.Concat(fields, t.Result.Fields)
	}
	for _, f := range fields {
		values = append(values, f.Default)
	}
	for _, e := range t.Examples {
		values = append(values, e.Args, e.Result)
	}
	for _, v := range values {
		if v != nil && !json.Valid(v) {
			return errors.New("a default or an example is no JSON")
		}
	}
	return nil
}
