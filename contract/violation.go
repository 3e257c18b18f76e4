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

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// maxViolations caps the violations of one answer: a call with a million wrong items gets the first hundred.
const maxViolations = 100

// Violation is one error in a call's arguments. It quotes at most 60 characters of a value.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the value; empty for the arguments as a whole.
	Pointer string `json:"pointer"`
	// Got describes the value received: `the string "abc"`, `nothing`.
	Got string `json:"got"`
	// Expected describes what is accepted there: `an integer, at least 1`.
	Expected string `json:"expected"`
	// Nearest is the declared name most similar to an unexpected key; empty if none is similar.
	Nearest string `json:"nearest,omitempty"`
	// Sent is an undeclared key beside a missing one whose name is similar, and which the schema accepts.
	Sent string `json:"sent,omitempty"`
}

// String returns one line that a model can act on.
func (v Violation) String() string {
	where := v.Pointer
	if where == "" {
		where = "arguments"
	}
	s := fmt.Sprintf("%s: got %s, expected %s", where, v.Got, v.Expected)
	if v.Sent != "" {
		path := steps(v.Pointer)
		s += fmt.Sprintf("; %q was sent, did you mean %q?", v.Sent, path[len(path)-1])
	}
	if v.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", v.Nearest)
	}
	return s
}

// Got for a missing key, and the beginning of Got for an unexpected key.
const (
	nothing       = "nothing"
	unexpectedKey = "an unexpected key"
)

// explainer converts the validator's tree of errors to violations: one for each position, however many
// keywords it breaks, because its Expected describes all that applies there. The tree is walked in a fixed
// order, whatever the order of the validator.
type explainer struct {
	// root is the shape of all arguments; top is the shape of value, base steps below them.
	root, top *shape
	value     any
	base      int
	// beside are the shapes around top that apply to value as well.
	beside []*shape
	// secrets: the schema declares a secret somewhere.
	secrets bool
	seen    map[string]bool
	found   []Violation
	// located maps the validator's locations to shapes; shapeAt fills it.
	located map[string]*shape
}

// at returns the shapes that apply at a position, and the value there.
func (e *explainer) at(path []string) ([]*shape, any) {
	return applicableAt(e.top.applicable(e.value, nil, slices.Clone(e.beside)), e.value, path[e.base:])
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
		e.missing(at, k.Missing, "where "+quote.Clip(k.Prop)+" is given")
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

// inOrder sorts errors by position, keyword and message.
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
	if slices.IsSortedFunc(errs, order) { // the usual case for a long list
		return errs
	}
	return slices.SortedStableFunc(slices.Values(errs), order)
}

// compareSteps orders path steps; list items are ordered by index.
func compareSteps(a, b string) int {
	if a != "" && b != "" && strings.Trim(a, "0123456789") == "" && strings.Trim(b, "0123456789") == "" {
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// describe describes the value received; of a secret it gives only the type.
func (e *explainer) describe(v any, at []string) string {
	if e.secrets && (e.root.hides(at) || e.root.besideSecret(at)) {
		return describeSecret(v)
	}
	return describe(v)
}

// undistinguished reports a violation for the key that distinguishes the alternatives of an object if the
// value received has none of the declared values there. It returns whether there is such a key.
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
		found := Violation{Pointer: pointer(below), Got: nothing, Expected: "one of " + enumeration(values) + " (required)", Sent: sentFor(name, here, object)}
		if has {
			found.Got, found.Expected, found.Sent = e.describe(got, below), "one of "+enumeration(values), ""
		}
		e.add(found)
		return true
	}
	return false
}

// discriminator returns the first key, by name, for which every alternative of an object has its own
// constants, and all of these constants; name is empty if there is none.
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

// meant returns the one alternative that the value received can be meant for, so that its errors are worth
// reporting, and these errors.
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

// missing reports missing keys; when is the condition under which they are required, if there is one.
func (e *explainer) missing(at, names []string, when string) {
	here, v := e.at(at)
	object, _ := v.(map[string]any)
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
		e.add(Violation{
			Pointer: pointer(at) + "/" + escapePointer(name), Got: nothing, Expected: expected + ")",
			Sent: sentFor(name, here, object),
		})
	}
}

// sentFor returns the key of an object that was probably meant for a missing one: the most similar of those that
// no alternative or condition declares and that are accepted. What is not accepted has a violation of its own.
func sentFor(missing string, here []*shape, object map[string]any) string {
	const most = 100
	if len(object) > most {
		return ""
	}
	var possible []*shape
	for _, s := range here {
		possible = s.possible(possible)
	}
	known := append(declared(possible), missing)
	var sent []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		refused := func(s *shape) bool {
			return s.schema["unevaluatedProperties"] == false ||
				slices.ContainsFunc(s.members(key), func(m *shape) bool { return m.never })
		}
		if !slices.Contains(known, key) && nearest(key, known) == missing && !slices.ContainsFunc(here, refused) {
			sent = append(sent, key)
		}
	}
	return nearest(missing, sent)
}

func (e *explainer) unexpected(at, names []string) {
	here, v := e.top.at(e.value, at[e.base:]) // the shapes around an alternative add no keys to it
	object, _ := v.(map[string]any)
	known := declared(here)
	var rules []string
	var forms []patterned
	for _, s := range here {
		for _, p := range s.patterns {
			if rule := quote.Clip(p.re.String()); !p.never && !slices.Contains(rules, rule) {
				rules, forms = append(rules, rule), append(forms, p)
			}
		}
	}
	slices.Sort(rules)
	hidden := e.secrets && (e.root.hides(at) || e.root.besideSecret(at)) // a misspelt key carries the value of the intended one
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
			allowed = append(allowed, "keys matching "+quote.ClipTo(strings.Join(rules, " or "), 200))
		}
		expected := "no keys here"
		if len(allowed) > 0 {
			expected = "only " + strings.Join(allowed, " and ")
		}
		got := describe(object[name])
		if hidden {
			got = describeSecret(object[name])
		}
		near := nearest(name, known)
		for _, p := range forms {
			if near == "" {
				near = respelt(name, p.re.String())
			}
		}
		e.add(Violation{
			Pointer:  pointer(at) + "/" + quote.Clip(escapePointer(name)),
			Got:      unexpectedKey + " with " + got,
			Expected: expected,
			Nearest:  near,
		})
	}
}

// respelt returns another spelling of name that pattern matches: in lower or upper case, with - for _ or the
// reverse, without spaces, or with the prefix of the pattern. It returns "" if none matches, and for patterns
// that RE2 doesn't support, which may take long to match.
func respelt(name, pattern string) string {
	re, err := regexp.Compile(pattern)
	if err != nil || utf8.RuneCountInString(name) > 64 || !strings.ContainsFunc(name, unicode.IsLetter) {
		return ""
	}
	prefix := strings.TrimPrefix(pattern, "^")
	if i := strings.IndexAny(prefix, `\.+*?()[]{}|^$`); i >= 0 {
		prefix = prefix[:i]
	}
	if prefix == pattern { // the pattern may match anywhere
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
	e.add(Violation{Pointer: pointer(at) + "/" + quote.Clip(escapePointer(name)), Got: "a key of this name", Expected: expected, Nearest: near})
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
		if size += len(quote.Clip(n)) + 2; size > mostBytes {
			return quoteAll(names[:i]) + fmt.Sprintf(" and %d more", len(names)-i)
		}
	}
	return quoteAll(names)
}

// nearest returns the name with the smallest edit distance, if that is small for its length, else "".
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
