package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// schemas makes JSON Schemas of Go types. The types in named are components, which other schemas refer to.
type schemas struct {
	components map[string]*jsonschema.Schema
	types      map[reflect.Type]*jsonschema.Schema
}

// named are the types that are components, by name, each after those that it refers to.
var named = []struct {
	name string
	typ  reflect.Type
}{
	{"Error", reflect.TypeFor[Error]()},
	{"Problem", reflect.TypeFor[problem.Problem]()},
	{"Result", reflect.TypeFor[registry.Result]()},
	{"Call", reflect.TypeFor[invoke.Event]()},
	{"IntentStep", reflect.TypeFor[intent.Step]()},
	{"IntentApproval", reflect.TypeFor[intent.Approval]()},
	{"ListedIntent", reflect.TypeFor[ListedIntent]()},
	{"IntentPage", reflect.TypeFor[IntentPage]()},
	{"Intent", reflect.TypeFor[ShownIntent]()},
	{"Missing", reflect.TypeFor[generation.Missing]()},
	{"Branch", reflect.TypeFor[ListedBranch]()},
	{"ConversationBranch", reflect.TypeFor[ConversationBranch]()},
	{"Fork", reflect.TypeFor[ForkRequest]()},
	{"Terms", reflect.TypeFor[TermsRequest]()},
	{"OwnedBranch", reflect.TypeFor[OwnedBranch]()},
	{"Offers", reflect.TypeFor[ShownTools]()},
	{"UnknownTools", reflect.TypeFor[UnknownTools]()},
	{"Brief", reflect.TypeFor[daemon.Brief]()},
	{"Server", reflect.TypeFor[daemon.ServerStatus]()},
	{"Status", reflect.TypeFor[daemon.Status]()},
	{"Outcome", reflect.TypeFor[daemon.Outcome]()},
}

func newSchemas() *schemas {
	s := &schemas{
		components: map[string]*jsonschema.Schema{},
		types: map[reflect.Type]*jsonschema.Schema{
			reflect.TypeFor[json.RawMessage](): {},
			reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
			reflect.TypeFor[contract.Narrowing](): {
				Type: "object", Description: "A fragment of a JSON Schema about the arguments: docs/branches.md.",
			},
			reflect.TypeFor[decision.Decision](): {
				Type: "object", Description: "point, allow, code, reasons and obligations: docs/policy.md.",
			},
			reflect.TypeFor[registry.Status](): text("", names(registry.Statuses())...),
			reflect.TypeFor[intent.State]():    text("", names(intent.States())...),
			reflect.TypeFor[intent.Action]():   text("", names(intentActions)...),
		},
	}
	for _, one := range named {
		s.components[one.name] = s.of(one.typ)
		s.types[one.typ] = &jsonschema.Schema{Ref: "#/components/schemas/" + one.name}
	}
	return s
}

// of returns the schema of a type, or a reference to it. It panics if the type has none, or encodes itself
// and no schema says how: only our own types are described.
func (s *schemas) of(t reflect.Type) *jsonschema.Schema {
	s.check(t)
	made, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: s.types})
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	s.annotate(t, made)
	if t == reflect.TypeFor[ListedIntent]() { // never present in a list
		for _, name := range []string{"arguments", "result", "history"} {
			delete(made.Properties, name)
		}
		made.PropertyOrder = slices.DeleteFunc(made.PropertyOrder, func(name string) bool { return made.Properties[name] == nil })
	}
	plain(made, false)
	if t == reflect.TypeFor[ForkRequest]() || t == reflect.TypeFor[TermsRequest]() {
		for _, name := range []string{"select", "hide", "narrow"} { // null takes back what was said before
			if selector := made.Properties[name]; selector != nil { // else this is a reference
				selector.Type, selector.Types = "", []string{"object", "null"}
			}
		}
	}
	return made
}

// plain makes a schema that was made of a type say what an answer has: an optional member is left out rather
// than null, and members may be added.
func plain(s *jsonschema.Schema, optional bool) {
	if s == nil {
		return
	}
	if optional || s.Ref != "" {
		s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
		switch len(s.Types) {
		case 0:
			s.Types = nil
		case 1:
			s.Type, s.Types = s.Types[0], nil
		}
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	for name, member := range s.Properties {
		plain(member, !slices.Contains(s.Required, name))
	}
	plain(s.Items, false)
	plain(s.AdditionalProperties, false)
}

// check panics if a type that reaches an answer encodes itself in a way that its schema doesn't say.
func (s *schemas) check(t reflect.Type) {
	if s.types[t] != nil {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		s.check(t.Elem())
		return
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if tag := f.Tag.Get("json"); tag != "-" && f.IsExported() && !f.Anonymous {
				s.check(f.Type)
			}
		}
	}
	for _, encodes := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()} {
		if t.Kind() != reflect.Interface && (t.Implements(encodes) || reflect.PointerTo(t).Implements(encodes)) {
			panic(fmt.Sprintf("httpapi: %v encodes itself; schemas.types must say how", t))
		}
	}
}

// content describes the forms of a body.
func (s *schemas) content(all []content) map[string]media {
	if len(all) == 0 {
		return nil
	}
	out := map[string]media{}
	for _, c := range all {
		out[c.media] = media{s.schema(c.of)}
	}
	return out
}

func (s *schemas) schema(of schemaOf) *jsonschema.Schema {
	switch {
	case of.any != nil:
		out := &jsonschema.Schema{}
		for _, one := range of.any {
			out.AnyOf = append(out.AnyOf, s.schema(one))
		}
		return out
	case of.typ != nil:
		return s.of(of.typ)
	}
	return of.schema
}

// rawJSON is a JSON value of this source, for an example.
func rawJSON(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("httpapi: an example is not JSON: " + err.Error())
	}
	return v
}
