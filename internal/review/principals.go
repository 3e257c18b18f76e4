package review

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/decision"
)

// fixtures is the file's form.
type fixtures struct {
	Principals []struct {
		Name   string   `yaml:"name"`
		Groups []string `yaml:"groups"`
		Admin  bool     `yaml:"admin"`
	} `yaml:"principals"`
}

// said is an error of the YAML decoder in one line, without the names of Go types.
func said(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	for i, e := range wrong.Errors {
		wrong.Errors[i], _, _ = strings.Cut(e, " in type ")
	}
	return strings.Join(wrong.Errors, ", ")
}

// Principals reads the principals that a matrix or a difference is worked out for, from YAML (or JSON, which is YAML):
//
//	principals:
//	  - name: ann
//	    groups: [staff]
//	    admin: true
//
// name is the file's, for errors. A field that is not one of these, a name that is missing or there twice, and a file
// without principals are errors.
func Principals(name string, data []byte) ([]decision.Principal, error) {
	var file fixtures
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s; it holds `principals`, a list of name, groups and admin", name, said(err))
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
		out = append(out, decision.Principal{Name: p.Name, Groups: p.Groups, Admin: p.Admin})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no principals stand here; it holds `principals`, a list of name, groups and admin", name)
	}
	return out, nil
}
