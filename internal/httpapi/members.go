package httpapi

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// membersFile has the descriptions of the members of JSON objects, by Go type and name. They are the comments
// of the fields of Go types; go test ./internal/httpapi -update writes them, and the test fails on one that
// is missing.
//
//go:embed members.json
var membersFile []byte

// aboutMembers returns what membersFile has.
var aboutMembers = sync.OnceValue(func() (about map[string]map[string]string) {
	if err := json.Unmarshal(membersFile, &about); err != nil {
		panic("httpapi: members.json: " + err.Error())
	}
	return about
})

// member is a field of a Go type that is a member of its JSON object.
type member struct {
	name  string // in JSON
	field reflect.StructField
}

// members returns the members of a struct, without those of embedded structs, which are returned as embedded.
func members(t reflect.Type) (own []member, embedded []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded = append(embedded, f.Type)
		case f.IsExported() && name != "-":
			own = append(own, member{name, f})
		}
	}
	return own, embedded
}

// annotate gives the properties of a schema that was made of a type the descriptions of its members.
func (s *schemas) annotate(t reflect.Type, made *jsonschema.Schema) {
	if made == nil || made.Ref != "" || s.types[t] != nil {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		s.annotate(t.Elem(), made)
	case reflect.Slice:
		s.annotate(t.Elem(), made.Items)
	case reflect.Map:
		s.annotate(t.Elem(), made.AdditionalProperties)
	case reflect.Struct:
		own, embedded := members(t)
		for _, m := range own {
			if property := made.Properties[m.name]; property != nil {
				property.Description = aboutMembers()[t.String()][m.name]
				s.annotate(m.field.Type, property)
			}
		}
		for _, one := range embedded {
			s.annotate(one, made)
		}
	}
}
