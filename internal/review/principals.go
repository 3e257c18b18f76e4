package review

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/decision"
)

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
	var file struct {
		Principals []struct {
			Name   string   `yaml:"name"`
			Groups []string `yaml:"groups"`
			Admin  bool     `yaml:"admin"`
		} `yaml:"principals"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w; it holds `principals`, a list of name, groups and admin", name, err)
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
