package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The parts of a bill of materials in CycloneDX 1.6 that are used (cyclonedx.org/docs/1.6/json).
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Time       string      `json:"timestamp"`
		Component  component   `json:"component"`
		Properties []nameValue `json:"properties"`
	}
	component struct {
		Ref      string    `json:"bom-ref"`
		Type     string    `json:"type"`
		Name     string    `json:"name"`
		Version  string    `json:"version"`
		PURL     string    `json:"purl"`
		Hashes   []hash    `json:"hashes,omitempty"`
		Licences []licence `json:"licenses"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licence struct {
		Licence struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
	nameValue struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// billOfMaterials describes a program and what is linked into it.
func (r *release) billOfMaterials(linked []module, program []byte, goos, goarch string) ([]byte, error) {
	self := described(module{Path: "github.com/catalogd/catalogd", Version: r.version, licences: []string{"Apache-2.0"}})
	self.Type = "application"
	self.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))}}
	doc := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{r.time.Format(time.RFC3339), self, []nameValue{{"catalogd:platform", goos + "/" + goarch}}},
	}
	on := dependency{Ref: self.Ref}
	for _, m := range linked {
		c := described(m)
		if sum, ok := strings.CutPrefix(m.sum, "h1:"); ok { // the hash of the module's files, as go.sum has it
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", raw)}}
		}
		doc.Components = append(doc.Components, c)
		on.On = append(on.On, c.Ref)
	}
	doc.Dependencies = []dependency{on}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

func described(m module) component {
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Ref: purl, Type: "library", Name: m.Path, Version: m.Version, PURL: purl}
	for _, id := range m.licences {
		var l licence
		l.Licence.ID = id
		c.Licences = append(c.Licences, l)
	}
	return c
}
