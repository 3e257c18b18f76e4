package contract

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
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

// What Got says where a key is missing, and how it begins where there is one too many.
const (
	nothing       = "nothing"
	unexpectedKey = "an unexpected key"
)

// explainer turns the validator's tree of errors into violations: one for each place, however many keywords it breaks,
// since its Expected says all that holds there. The tree is walked in one order, whatever the order of the validator.
type explainer struct {
	// root is the shape of all arguments; top is that of value, which is base steps below them.
	root, top *shape
	value     any
	base      int
	// beside are the shapes around top that hold for value as well.
	beside []*shape
	// secrets: some of what the schema declares is secret.
	secrets bool
	seen    map[string]bool
	found   []Violation
	// located are the shapes by the validator's locations; shapeAt fills it.
	located map[string]*shape
}

// at lists the shapes that hold at a place, and the value there.
func (e *explainer) at(path []string) ([]*shape, any) {
	return placed(e.top.holding(e.value, nil, slices.Clone(e.beside)), e.value, path[e.base:])
}

func (e *explainer) walk(err *jsonschema.ValidationError) {
	if len(e.found) >= maxViolations {
		return
	}
	at := err.InstanceLocation
	here, v := e.at(at)
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		e.missing(at, k.Missing, e.needed(err.SchemaURL))
		return
	case *kind.DependentRequired:
		e.missing(at, k.Missing, "where "+clip(k.Prop)+" is given")
		return
	case *kind.AdditionalProperties:
		e.unexpected(at, k.Properties)
		return
	case *kind.FalseSchema:
		e.forbidden(at, err.SchemaURL)
		return
	case *kind.PropertyNames:
		e.misnamed(at, k.Property)
		return
	case *kind.AnyOf, *kind.OneOf:
		e.alternatives(err)
		return
	case *kind.Schema, *kind.Reference, *kind.AllOf, *kind.Group:
		for _, cause := range inOrder(err.Causes) {
			e.walk(cause)
		}
		return
	case *kind.MinProperties:
		expected := inWords(here, false, 0)
		if known := declared(here); len(known) > 0 {
			expected += " of " + enumerateNames(known)
		}
		e.add(Violation{Pointer: pointer(at), Got: e.describe(v, at), Expected: expected})
		return
	case *kind.UniqueItems:
		e.add(Violation{
			Pointer: pointer(at), Got: fmt.Sprintf("%s, of which %d and %d are the same", e.describe(v, at), k.Duplicates[0], k.Duplicates[1]),
			Expected: inWords(here, false, 0),
		})
		return
	}
	e.add(Violation{Pointer: pointer(at), Got: e.describe(v, at), Expected: inWords(here, false, 0)})
}

// inOrder sorts errors by place, keyword and what they say.
func inOrder(errs []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	order := func(a, b *jsonschema.ValidationError) int {
		if c := slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, compareSteps); c != 0 {
			return c
		}
		if c := cmp.Compare(a.SchemaURL, b.SchemaURL); c != 0 {
			return c
		}
		return cmp.Compare(fmt.Sprintf("%T%v", a.ErrorKind, a.ErrorKind), fmt.Sprintf("%T%v", b.ErrorKind, b.ErrorKind))
	}
	if slices.IsSortedFunc(errs, order) { // as those of a long list are
		return errs
	}
	return slices.SortedStableFunc(slices.Values(errs), order)
}

// compareSteps orders steps of places, the items of a list by their numbers.
func compareSteps(a, b string) int {
	if a != "" && b != "" && strings.Trim(a, "0123456789") == "" && strings.Trim(b, "0123456789") == "" {
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// describe says what came, and of a secret only its kind.
func (e *explainer) describe(v any, at []string) string {
	if e.secrets && (e.root.hides(at) || e.root.besideSecret(at)) {
		return undisclosed(v)
	}
	return describe(v)
}

// undistinguished tells of the key by which the alternatives for an object are told apart, where what came has none of
// their values there, and reports whether there is such a key.
func (e *explainer) undistinguished(at []string) bool {
	here, v := e.at(at)
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
		found := Violation{Pointer: pointer(below), Got: nothing, Expected: "one of " + enumeration(values) + " (required)"}
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

// meant is the one alternative that what came can be meant by, so that its own complaints are worth reporting, and these.
func (e *explainer) meant(err *jsonschema.ValidationError) (b *shape, one *jsonschema.ValidationError) {
	at := err.InstanceLocation
	_, v := e.at(at)
	s := e.shapeAt(err.SchemaURL)
	if kind := kindOf(v); s == nil || kind != "object" && kind != "array" {
		return nil, nil
	}
	if b := s.branch(v); b != nil {
		for _, cause := range err.Causes {
			if s.alternativeOf(cause) == b {
				return b, cause
			}
		}
	}
	for _, cause := range err.Causes {
		if wrongType(cause, len(at)) {
			continue
		}
		if one != nil {
			return nil, nil
		}
		one = cause
	}
	if one != nil {
		b = s.alternativeOf(one)
	}
	if b == nil {
		return nil, nil
	}
	return b, one
}

func wrongType(err *jsonschema.ValidationError, depth int) bool {
	if len(err.InstanceLocation) != depth {
		return false
	}
	switch err.ErrorKind.(type) {
	case *kind.Type, *kind.FalseSchema:
		return true
	}
	return slices.ContainsFunc(err.Causes, func(c *jsonschema.ValidationError) bool { return wrongType(c, depth) })
}

// missing reports keys that are not there; when says where they are required, where that is not always.
func (e *explainer) missing(at, names []string, when string) {
	here, _ := e.at(at)
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
		expected += " (required"
		if when != "" {
			expected += " " + when
		}
		e.add(Violation{Pointer: pointer(at) + "/" + escapePointer(name), Got: nothing, Expected: expected + ")"})
	}
}

func (e *explainer) unexpected(at, names []string) {
	here, v := e.top.at(e.value, at[e.base:]) // what is around an alternative adds no keys to it
	object, _ := v.(map[string]any)
	known := declared(here)
	var rules []string
	var forms []patterned
	for _, s := range here {
		for _, p := range s.patterns {
			if rule := clip(p.re.String()); !p.never && !slices.Contains(rules, rule) {
				rules, forms = append(rules, rule), append(forms, p)
			}
		}
	}
	slices.Sort(rules)
	hidden := e.secrets && (e.root.hides(at) || e.root.besideSecret(at)) // a misspelt key brings the value of the one that was meant
	slices.Sort(names)
	for _, name := range names {
		if len(e.found) >= maxViolations {
			return
		}
		var allowed []string
		if len(known) > 0 {
			allowed = append(allowed, enumerateNames(known))
		}
		if len(rules) > 0 {
			allowed = append(allowed, "keys matching "+clipTo(strings.Join(rules, " or "), 200))
		}
		expected := "no keys here"
		if len(allowed) > 0 {
			expected = "only " + strings.Join(allowed, " and ")
		}
		got := describe(object[name])
		if hidden {
			got = undisclosed(object[name])
		}
		near := nearest(name, known)
		for _, p := range forms {
			if near == "" {
				near = respelt(name, p.re.String())
			}
		}
		e.add(Violation{
			Pointer:  pointer(at) + "/" + clip(escapePointer(name)),
			Got:      unexpectedKey + " with " + got,
			Expected: expected,
			Nearest:  near,
		})
	}
}

// respelt is a name in another spelling that a pattern matches: in small or capital letters, with - for _ or the reverse,
// without spaces, with what the pattern begins with; empty where none does, and for patterns that RE2 has not, which may
// take long to match.
func respelt(name, pattern string) string {
	re, err := regexp.Compile(pattern)
	if err != nil || utf8.RuneCountInString(name) > 64 || !strings.ContainsFunc(name, unicode.IsLetter) {
		return ""
	}
	prefix := strings.TrimPrefix(pattern, "^")
	if i := strings.IndexAny(prefix, `\.+*?()[]{}|^$`); i >= 0 {
		prefix = prefix[:i]
	}
	if prefix == pattern { // it may match anywhere
		prefix = ""
	}
	for _, s := range []string{name, strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "-", "_"), strings.ReplaceAll(name, " ", "_"), strings.ReplaceAll(name, " ", "")} {
		for _, s := range []string{s, strings.ToLower(s), strings.ToUpper(s)} {
			for _, s := range []string{s, prefix + s} {
				if s != name && re.MatchString(s) {
					return s
				}
			}
		}
	}
	return ""
}

func (e *explainer) misnamed(at []string, name string) {
	here, _ := e.at(at)
	expected, near := "another key", ""
	for _, s := range here {
		if s.names == nil {
			continue
		}
		expected = "each key " + s.names.plain()
		for _, n := range s.names.always(nil) {
			var known []string
			for _, v := range n.enum {
				if text, ok := v.(string); ok {
					known = append(known, text)
				}
			}
			pattern, _ := n.schema["pattern"].(string)
			if near = nearest(name, known); near == "" && pattern != "" {
				near = respelt(name, pattern)
			}
		}
	}
	e.add(Violation{Pointer: pointer(at) + "/" + clip(escapePointer(name)), Got: "a key of this name", Expected: expected, Nearest: near})
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
