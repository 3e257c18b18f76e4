package diff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/decision"
)

// fixtures is the format of the file.
type fixtures struct {
	Principals []struct {
		Name   string   `yaml:"name"`
		Groups []string `yaml:"groups"`
		Admin  bool     `yaml:"admin"`
	} `yaml:"principals"`
}

// oneLine returns an error of the YAML decoder in one line, without the names of Go types.
func oneLine(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	for i, e := range wrong.Errors {
		wrong.Errors[i], _, _ = strings.Cut(e, " in type ")
	}
	return strings.Join(wrong.Errors, ", ")
}

// Principals reads the principals of a matrix or a difference from YAML (or JSON, which is YAML):
//
//	principals:
//	  - name: ann
//	    groups: [staff]
//	    admin: true
//
// name is the file's name, for errors. Unknown fields, missing or duplicate names, and a file without
// principals are errors.
func Principals(name string, data []byte) ([]decision.Principal, error) {
	var file fixtures
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s; it holds `principals`, a list of name, groups and admin", name, oneLine(err))
	}
	seen := map[string]bool{}
	var out []decision.Principal
	for i, p := range file.Principals {
		switch {
		case p.Name == "":
			return nil, fmt.Errorf("%s: principal %d has no name", name, i+1)
		case seen[p.Name]:
			return nil, fmt.Errorf("%s: there are two principals called %q", name, p.Name)
		}
		seen[p.Name] = true
		if p.Groups == nil {
			p.Groups = []string{}
		}
		out = append(out, decision.Principal{Name: p.Name, Groups: p.Groups, Admin: p.Admin, Local: p.Name == decision.Local().Name})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no principals stand here; it holds `principals`, a list of name, groups and admin", name)
	}
	return out, nil
}

// maxMentioned caps the principals that are made up from what policies mention.
const maxMentioned = 12

// mentioned returns the given principals (the local one if there are none), and one for each group and name
// that a policy compares a principal with, so that the effect of a rule about a group without a given member
// is seen.
func mentioned(given []decision.Principal, engines ...*decision.Engine) []decision.Principal {
	all := slices.Clone(given)
	if len(all) == 0 {
		all = []decision.Principal{decision.Local()}
	}
	has := func(is func(decision.Principal) bool) bool { return slices.ContainsFunc(all, is) }
	looks := false
	for _, e := range engines {
		for _, point := range []decision.Point{decision.List, decision.Call, decision.Result, decision.Release} {
			looks = looks || e.ReadsBearer(point)
			for _, h := range e.Policy().Hints(string(point)) {
				name, ok := h.Value.(string)
				if !ok || name == "" || len(h.Path) < 2 || h.Path[0] != "principal" || len(all)-len(given) > maxMentioned {
					continue
				}
				switch {
				case h.Path[1] == "groups" && !has(func(p decision.Principal) bool { return slices.Contains(p.Groups, name) }):
					all = append(all, decision.Principal{Name: "(one in " + name + ")", Groups: []string{name}})
				case h.Path[1] == "name" && !has(func(p decision.Principal) bool { return p.Name == name }):
					all = append(all, decision.Principal{Name: name, Groups: []string{}})
				}
			}
		}
	}
	if looks && !has(func(p decision.Principal) bool { return len(p.Groups) == 0 && !p.Admin }) {
		all = append(all, decision.Principal{Name: "(one in no group)", Groups: []string{}})
	}
	return all
}
