package gotype

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
)

// reader reads one type: check finds what can't be described, and describe adds to the library's schema what the
// tags say and what the type itself bounds.
type reader struct {
	// input: values are read, not written.
	input bool
	// schemas replace the library's, by type; stated are those of the author among them.
	schemas map[reflect.Type]*jsonschema.Schema
	stated  Stated
	// open are the types that are being checked.
	open     map[reflect.Type]bool
	defaults []stand
}

// stand is a default, in the schema of its field.
type stand struct {
	path   string
	schema *jsonschema.Schema
}

// state is the advice for a type that can't be derived.
const state = "state its schema with registry.TypeSchema, or use another type"

// refuse returns the error for the field at path.
func refuse(path, format string, args ...any) error {
	if path == "" {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("field %s: %s", path, fmt.Sprintf(format, args...))
}

// check returns an error, with the path of the field, if values of the type have no exact schema.
func (r *reader) check(t reflect.Type, path string) error {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := r.stated[t]; ok {
		return nil
	}
	switch t {
	case timeType:
		r.schemas[t] = &jsonschema.Schema{Type: "string", Format: "date-time"}
		return nil
	case numberType:
		r.schemas[t] = &jsonschema.Schema{Type: "number"}
		return nil
	case rawType:
		if pointer {
			return refuse(path, "*json.RawMessage; use json.RawMessage, which holds null too")
		}
		r.schemas[t] = &jsonschema.Schema{}
		return nil
	}
	if method := r.method(t); method != "" {
		return refuse(path, "%s has its own form in JSON (%s), from which no schema can be derived; %s", t, method, state)
	}
	if r.text(t) {
		r.schemas[t] = &jsonschema.Schema{Type: "string"}
		return nil
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.String:
		return nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return refuse(path, "%s is an interface, and JSON does not say which type it holds; %s", t, state)
		}
		return nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			r.schemas[t] = &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
			return nil
		}
		return r.below(t, path+"[]", t.Elem())
	case reflect.Array:
		return r.below(t, path+"[]", t.Elem())
	case reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String || r.method(key) != "" || r.text(key) {
			return refuse(path, "%s has keys of type %s, and JSON has only strings; use a map with string keys", t, key)
		}
		return r.below(t, path+"[]", t.Elem())
	case reflect.Struct:
		return r.structure(t, path)
	}
	return refuse(path, "%s is a %s, which JSON does not have", t, t.Kind())
}

// below checks the type of an element of t.
func (r *reader) below(t reflect.Type, path string, element reflect.Type) error {
	if r.open[t] {
		return recursive(path, t)
	}
	r.open[t] = true
	defer delete(r.open, t)
	return r.check(element, path)
}

func recursive(path string, t reflect.Type) error {
	return refuse(path, "%s contains itself, and a schema that refers to itself is not derived; %s", t, state)
}

// method returns the name of a method with which values of a type read (or write) their own JSON; empty if there is none.
func (r *reader) method(t reflect.Type) string {
	p := reflect.PointerTo(t)
	names := []string{"MarshalJSON", "MarshalJSONTo"}
	if r.input {
		names = []string{"UnmarshalJSON", "UnmarshalJSONFrom"}
	}
	for _, name := range names {
		if _, ok := p.MethodByName(name); ok {
			return name
		}
	}
	return ""
}

// text reports whether values of a type read (or write) themselves as text.
func (r *reader) text(t reflect.Type) bool {
	if r.input {
		return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// names are the names that every provider of models takes for an argument.
var names = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (r *reader) structure(t reflect.Type, path string) error {
	if r.open[t] {
		return recursive(path, t)
	}
	r.open[t] = true
	defer delete(r.open, t)
	fields := map[string]string{} // the Go names by the JSON names in lower case
	for _, f := range reflect.VisibleFields(t) {
		at := join(path, f.Name)
		tag, tagged := f.Tag.Lookup("json")
		if f.Anonymous {
			switch {
			case tagged:
				return refuse(at, "it is embedded and has a json tag; give it a name, or leave the tag out")
			case f.Type.Kind() != reflect.Struct:
				return refuse(at, "%s is embedded; embed a struct (not a pointer to one), or give it a name", f.Type)
			case f.Type == timeType || r.schemas[f.Type] != nil || r.method(f.Type) != "" || r.text(f.Type):
				return refuse(at, "%s is embedded and is no plain struct; give it a name", f.Type)
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		name, left := nameOf(f)
		if left {
			continue
		}
		if _, options, _ := strings.Cut(tag, ","); options != "" {
			for option := range strings.SplitSeq(options, ",") {
				if option != "omitempty" && option != "omitzero" {
					return refuse(at, "its json tag has the option %q; there are omitempty and omitzero here", option)
				}
			}
		}
		if !names.MatchString(name) {
			return refuse(at, "its name in JSON is %q; use 1 to 64 letters, digits, _, - and . in a json tag", name)
		}
		if other, ok := fields[strings.ToLower(name)]; ok {
			return refuse(at, "its name in JSON, %q, is that of %s too, but for upper and lower case; give one another", name, other)
		}
		fields[strings.ToLower(name)] = f.Name
		if err := r.check(f.Type, at); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name of a field in JSON, and whether it is left out.
func nameOf(f reflect.StructField) (name string, left bool) {
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() {
		return "", true
	}
	if name, _, _ = strings.Cut(tag, ","); name == "" {
		name = f.Name
	}
	return name, false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// maxFloat32 is the largest float32 as it is written, which is a little more than what it is.
const maxFloat32 = 3.4028235e38

// describe changes the library's schema of a type to the exact one, with what the tags of its fields say.
func (r *reader) describe(t reflect.Type, s *jsonschema.Schema, path string) error {
	null := false
	for t.Kind() == reflect.Pointer {
		t, null = t.Elem(), true
	}
	if r.schemas[t] != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		s.Minimum, s.Maximum = jsonschema.Ptr(float64(math.MinInt64)), jsonschema.Ptr(float64(math.MaxInt64))
	case reflect.Uint, reflect.Uint64:
		s.Maximum = jsonschema.Ptr(float64(math.MaxUint64))
	case reflect.Float32:
		s.Minimum, s.Maximum = jsonschema.Ptr(-maxFloat32), jsonschema.Ptr(maxFloat32)
	case reflect.Slice, reflect.Array:
		if !null {
			s.Type, s.Types = "array", nil
		}
		return r.describe(t.Elem(), s.Items, path+"[]")
	case reflect.Map:
		return r.describe(t.Elem(), s.AdditionalProperties, path+"[]")
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, left := nameOf(f)
			if f.Anonymous || left {
				continue
			}
			if err := r.field(f, s, name, join(path, f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}
