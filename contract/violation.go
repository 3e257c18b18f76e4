package contract

import (
	"cmp"
	"fmt"
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
	seen  map[string]bool
	found []Violation
}

func (e *explainer) walk(err *jsonschema.ValidationError) {
	if len(e.found) >= maxViolations {
		return
	}
	at := err.InstanceLocation
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		e.missing(at, k.Missing)
		return
	case *kind.AdditionalProperties:
		e.unexpected(at, k.Properties)
		return
	case *kind.AnyOf:
		if meant := e.meant(err); meant != nil {
			e.walk(meant)
			return
		}
	case *kind.Schema, *kind.Reference, *kind.AllOf, *kind.Group:
		for _, cause := range err.Causes {
			e.walk(cause)
		}
		return
	}
	s, v := e.top.at(e.value, at)
	if _, whole := err.ErrorKind.(*kind.AnyOf); whole {
		s, v = e.top.alternatives(e.value, at)
	}
	e.add(Violation{Pointer: pointer(at), Got: describe(v), Expected: s.plain()})
}

// meant is the one alternative whose type fits what came, so that its own complaints are worth telling.
func (e *explainer) meant(err *jsonschema.ValidationError) (one *jsonschema.ValidationError) {
	for _, branch := range err.Causes {
		if wrongType(branch, len(err.InstanceLocation)) {
			continue
		}
		if one != nil {
			return nil
		}
		one = branch
	}
	_, v := e.top.at(e.value, err.InstanceLocation)
	if kind := kindOf(v); kind != "object" && kind != "array" {
		return nil
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
	s, _ := e.top.at(e.value, at)
	for _, name := range names {
		expected := "it to be there"
		if s != nil {
			expected = s.member(name).plain()
		}
		e.add(Violation{Pointer: pointer(at) + "/" + escapePointer(name), Got: "nothing", Expected: expected + " (required)"})
	}
}

func (e *explainer) unexpected(at, names []string) {
	s, v := e.top.at(e.value, at)
	object, _ := v.(map[string]any)
	var declared []string
	if s != nil {
		declared = s.declared()
	}
	slices.Sort(names)
	for _, name := range names {
		if len(e.found) >= maxViolations {
			return
		}
		expected := "no keys here"
		if len(declared) > 0 {
			expected = "only " + enumerateNames(declared)
		}
		e.add(Violation{
			Pointer:  pointer(at) + "/" + clip(escapePointer(name)),
			Got:      "an unexpected key with " + describe(object[name]),
			Expected: expected,
			Nearest:  nearest(name, declared),
		})
	}
}

func (e *explainer) add(v Violation) {
	if len(e.found) < maxViolations && !e.seen[v.Pointer] {
		e.seen[v.Pointer] = true
		e.found = append(e.found, v)
	}
}

func enumerateNames(names []string) string {
	const most = 30
	if len(names) > most {
		return quoteAll(names[:most]) + fmt.Sprintf(" and %d more", len(names)-most)
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
