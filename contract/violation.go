package contract

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxViolations bounds an answer: a call of a million wrong items gets the first hundred.
const maxViolations = 100

// Violation is one thing in a call's arguments to mend. It tells at most 60 characters of a value.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the place; empty for the arguments as a whole.
	Pointer string `json:"pointer"`
	// Got says what came: `the string "abc"`, `nothing`.
	Got string `json:"got"`
	// Expected says what is accepted there: `an integer, at least 1`.
	Expected string `json:"expected"`
	// Nearest is the declared name that is most like an unexpected key; empty where none is near.
	Nearest string `json:"nearest,omitempty"`
}

// String is one line that a model can act on.
func (v Violation) String() string {
	where := v.Pointer
	if where == "" {
		where = "arguments"
	}
	s := fmt.Sprintf("%s: got %s, expected %s", where, v.Got, v.Expected)
	if v.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", v.Nearest)
	}
	return s
}

// explainer turns the validator's tree of errors into violations: one for each place, however many keywords it breaks,
// since its Expected says all that holds there.
type explainer struct {
	top   *shape
	value any
	// secrets: some of what the schema declares is secret.
	secrets bool
	seen    map[string]bool
	found   []Violation
}

func (e *explainer) walk(err *jsonschema.ValidationError) {
	if len(e.found) >= maxViolations {
		return
	}
	at := err.InstanceLocation
	whole := false
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		e.missing(at, k.Missing)
		return
	case *kind.DependentRequired:
		e.missing(at, k.Missing)
		return
	case *kind.AdditionalProperties:
		e.unexpected(at, k.Properties)
		return
	case *kind.PropertyNames:
		e.misnamed(at, k.Property)
		return
	case *kind.AnyOf, *kind.OneOf:
		if meant := e.meant(err); meant != nil {
			e.walk(meant)
			return
		}
		if e.undistinguished(at) {
			return
		}
		whole = true
	case *kind.Schema, *kind.Reference, *kind.AllOf, *kind.Group:
		for _, cause := range err.Causes {
			e.walk(cause)
		}
		return
	}
	here, v := e.top.at(e.value, at)
	e.add(Violation{Pointer: pointer(at), Got: e.describe(v, at), Expected: inWords(here, whole, 0)})
}

// describe says what came, and of a secret only its kind.
func (e *explainer) describe(v any, at []string) string {
	if e.secrets && (e.top.hides(at) || e.top.besideSecret(at)) {
		return undisclosed(v)
	}
	return describe(v)
}

// undistinguished tells of the key by which the alternatives for an object are told apart, where what came has none of
// their values there, and reports whether there is such a key.
func (e *explainer) undistinguished(at []string) bool {
	here, v := e.top.at(e.value, at)
	object, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, s := range here {
		name, values := s.discriminator()
		if got := object[name]; name == "" || simple(got) && slices.Contains(values, got) {
			continue
		}
		below := append(slices.Clone(at), name)
		got, has := object[name]
		found := Violation{Pointer: pointer(below), Got: "nothing", Expected: "one of " + enumeration(values) + " (required)"}
		if has {
			found.Got, found.Expected = e.describe(got, below), "one of "+enumeration(values)
		}
		e.add(found)
		return true
	}
	return false
}

// discriminator is the first key, by name, that every alternative for an object has with constants of its own, and all of
// these; empty without one.
func (s *shape) discriminator() (name string, values []any) {
	var alternatives []*shape
	for _, b := range s.anyOf {
		for b.target != nil {
			b = b.target
		}
		if slices.Contains(b.types, "object") {
			alternatives = append(alternatives, b)
		}
	}
	if len(alternatives) < 2 {
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(alternatives[0].properties)) {
		values = nil
		tells := func(b *shape) bool {
			p := b.properties[name]
			if p == nil || len(p.enum) == 0 {
				return false
			}
			for _, v := range p.enum {
				if !simple(v) || slices.Contains(values, v) {
					return false
				}
				values = append(values, v)
			}
			return true
		}
		if !slices.ContainsFunc(alternatives, func(b *shape) bool { return !tells(b) }) {
			return name, values
		}
	}
	return "", nil
}

// meant is the one alternative that what came can be meant by, so that its own complaints are worth telling.
func (e *explainer) meant(err *jsonschema.ValidationError) (one *jsonschema.ValidationError) {
	at := err.InstanceLocation
	here, v := e.top.at(e.value, at)
	if kind := kindOf(v); kind != "object" && kind != "array" {
		return nil
	}
	for _, s := range here {
		if b := s.branch(v); b != nil && b.validator != nil {
			for _, cause := range err.Causes {
				if where, ok := strings.CutPrefix(cause.SchemaURL, b.validator.Location); ok && (where == "" || where[0] == '/') {
					return cause
				}
			}
		}
	}
	for _, cause := range err.Causes {
		if wrongType(cause, len(at)) {
			continue
		}
		if one != nil {
			return nil
		}
		one = cause
	}
	return one
}

func wrongType(err *jsonschema.ValidationError, depth int) bool {
	if len(err.InstanceLocation) != depth {
		return false
	}
	if _, ok := err.ErrorKind.(*kind.Type); ok {
		return true
	}
	return slices.ContainsFunc(err.Causes, func(c *jsonschema.ValidationError) bool { return wrongType(c, depth) })
}

func (e *explainer) missing(at, names []string) {
	here, _ := e.top.at(e.value, at)
	for _, name := range names {
		var member []*shape
		for _, s := range here {
			for _, m := range s.members(name) {
				member = m.always(member)
			}
		}
		expected := "it to be there"
		if len(member) > 0 {
			expected = inWords(member, false, 0)
		}
		e.add(Violation{Pointer: pointer(at) + "/" + escapePointer(name), Got: "nothing", Expected: expected + " (required)"})
	}
}

func (e *explainer) unexpected(at, names []string) {
	here, v := e.top.at(e.value, at)
	object, _ := v.(map[string]any)
	known := declared(here)
	hidden := e.secrets && (e.top.hides(at) || e.top.besideSecret(at)) // a misspelt key brings the value of the one that was meant
	slices.Sort(names)
	for _, name := range names {
		if len(e.found) >= maxViolations {
			return
		}
		expected := "no keys here"
		if len(known) > 0 {
			expected = "only " + enumerateNames(known)
		}
		got := describe(object[name])
		if hidden {
			got = undisclosed(object[name])
		}
		e.add(Violation{
			Pointer:  pointer(at) + "/" + clip(escapePointer(name)),
			Got:      "an unexpected key with " + got,
			Expected: expected,
			Nearest:  nearest(name, known),
		})
	}
}

func (e *explainer) misnamed(at []string, name string) {
	here, _ := e.top.at(e.value, at)
	expected := "another key"
	for _, s := range here {
		if s.names != nil {
			expected = "each key " + s.names.plain()
		}
	}
	e.add(Violation{Pointer: pointer(at) + "/" + clip(escapePointer(name)), Got: "a key of this name", Expected: expected})
}

func (e *explainer) add(v Violation) {
	if len(e.found) < maxViolations && !e.seen[v.Pointer] {
		e.seen[v.Pointer] = true
		e.found = append(e.found, v)
	}
}

func enumerateNames(names []string) string {
	const mostBytes = 300
	size := 0
	for i, n := range names {
		if size += len(clip(n)) + 2; size > mostBytes {
			return quoteAll(names[:i]) + fmt.Sprintf(" and %d more", len(names)-i)
		}
	}
	return quoteAll(names)
}

// nearest is the name that fewest edits lead to, if they are few for its length.
func nearest(name string, names []string) string {
	const longest = 64
	best, least := "", 1+max(2, utf8.RuneCountInString(name)/3)
	if len(name) > longest {
		return ""
	}
	for _, n := range names {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n))
		if d < least && d < utf8.RuneCountInString(n) {
			best, least = n, d
		}
	}
	return best
}

func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer(step))
	}
	return b.String()
}

func sorted(found []Violation) []Violation {
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return found
}
