package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// sub returns an explainer for the errors of an alternative at a position, by the shape of that alternative.
func (e *explainer) sub(b *shape, at []string) *explainer {
	here, v := e.at(at)
	return &explainer{
		root: e.root, top: b, value: v, beside: here, base: len(at), secrets: e.secrets, seen: map[string]bool{}, located: e.located,
	}
}

// alternatives reports the errors where one of several schemas must match: those of the alternative that the
// value is meant for, else the key that distinguishes the alternatives, else what the nearest alternative
// lacks.
func (e *explainer) alternatives(err *jsonschema.ValidationError) {
	at := err.InstanceLocation
	if k, ok := err.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 0 {
		e.several(err, k.Subschemas)
		return
	}
	if b, cause := e.meant(err); cause != nil {
		sub := e.sub(b, at)
		sub.walk(cause)
		for _, v := range sub.found {
			e.add(v)
		}
		return
	}
	if e.undistinguished(at) {
		return
	}
	here, v := e.at(at)
	expected := e.nearestAlternative(err)
	if expected == "" {
		expected = inWords(here, true, 0)
	}
	e.add(Violation{Pointer: pointer(at), Got: e.describe(v, at), Expected: expected})
}

// several reports that more than one alternative of a oneOf matches.
func (e *explainer) several(err *jsonschema.ValidationError, fitting []int) {
	at := err.InstanceLocation
	_, v := e.at(at)
	expected := "exactly one alternative to fit, and more do"
	if s := e.shapeAt(err.SchemaURL); s != nil {
		one, _ := s.schema["oneOf"].([]any)
		first := len(s.anyOf) - len(one) // the alternatives of anyOf come before those of oneOf
		var each []string
		for _, i := range fitting {
			if first+i < len(s.anyOf) {
				each = append(each, s.anyOf[first+i].signature())
			}
		}
		expected = fmt.Sprintf("exactly one of %d alternatives to fit, and %d do: %s", len(one), len(each), strings.Join(each, "; "))
	}
	e.add(Violation{Pointer: pointer(at), Got: e.describe(v, at), Expected: quote.ClipTo(expected, maxExpected)})
}

// maxExpected caps the description of alternatives, in characters.
const maxExpected = 600

// nearestAlternative describes which alternative of the value's type needs the fewest changes, and these
// changes; it returns "" if no alternative has that type.
func (e *explainer) nearestAlternative(err *jsonschema.ValidationError) string {
	at := err.InstanceLocation
	s := e.shapeAt(err.SchemaURL)
	_, v := e.at(at)
	if k := kindOf(v); s == nil || k != "object" && k != "array" {
		return ""
	}
	var best *shape
	var lacks []Violation
	least := 0
	for _, cause := range err.Causes {
		b := s.alternativeOf(cause)
		if b == nil || wrongType(cause, len(at)) {
			continue
		}
		sub := e.sub(b, at)
		sub.walk(cause)
		if cost := distance(sub.found, len(at)); best == nil || cost < least {
			best, lacks, least = b, sorted(sub.found), cost
		}
	}
	if best == nil {
		return ""
	}
	const most = 3
	var each []string
	for i, v := range lacks {
		if i == most {
			each = append(each, fmt.Sprintf("and %d more", len(lacks)-most))
			break
		}
		each = append(each, v.complaint(pointer(at)))
	}
	text := fmt.Sprintf("one of %d alternatives; nearest is alternative %s: %s", len(s.anyOf), best.signature(), strings.Join(each, "; "))
	return quote.ClipTo(text, maxExpected)
}

// alternativeOf returns the alternative that a cause of an error of anyOf or oneOf comes from.
func (s *shape) alternativeOf(cause *jsonschema.ValidationError) *shape {
	for _, b := range s.anyOf {
		if b.validator == nil {
			continue
		}
		if where, ok := strings.CutPrefix(cause.SchemaURL, b.validator.Location); ok && (where == "" || where[0] == '/') {
			return b
		}
	}
	return nil
}

// distance returns how far a value is from an alternative: a wrong value of a discriminating key weighs most,
// then a key that the alternative lacks, then any other violation.
func distance(found []Violation, depth int) (cost int) {
	for _, v := range found {
		switch {
		case strings.HasPrefix(v.Got, unexpectedKey):
			cost += 2
		case v.Got != nothing && strings.Count(v.Pointer, "/") == depth+1 && strings.HasPrefix(v.Expected, "exactly "):
			cost += 5
		default:
			cost++
		}
	}
	return cost
}

// complaint describes a violation briefly, by its position below another.
func (v Violation) complaint(around string) string {
	at := strings.TrimPrefix(strings.TrimPrefix(v.Pointer, around), "/")
	switch {
	case v.Got == nothing:
		what, _, _ := strings.Cut(v.Expected, " (required")
		text := at + " is missing (" + what + ")"
		if v.Sent != "" {
			text += fmt.Sprintf(", %q was sent", v.Sent)
		}
		return text
	case strings.HasPrefix(v.Got, unexpectedKey) && v.Nearest != "":
		return fmt.Sprintf("%s is none of its keys, did you mean %q", at, v.Nearest)
	case strings.HasPrefix(v.Got, unexpectedKey):
		return at + " is none of its keys"
	case at == "":
		return "expected " + v.Expected
	}
	return at + ": got " + v.Got + ", expected " + v.Expected
}

// signature briefly describes an alternative: the keys of an object with those that distinguish it, or what
// it accepts.
func (s *shape) signature() string {
	const most = 4
	var constants, required []string
	object, rest := false, 0
	for _, p := range s.always(nil) {
		needed := p.required()
		object = object || slices.Contains(p.types, "object") || p.properties != nil || needed != nil
		for _, name := range slices.Sorted(maps.Keys(p.properties)) {
			switch m := p.properties[name]; {
			case m.never:
			case len(m.enum) == 1:
				constants = append(constants, quote.Clip(name)+": "+quote.Clip(text(m.enum[0])))
			case !slices.Contains(needed, name):
				rest++
			}
		}
		for _, name := range needed {
			if m := p.properties[name]; m == nil || len(m.enum) != 1 {
				required = append(required, quote.Clip(name))
			}
		}
	}
	if !object {
		return inWords(s.always(nil), true, 1)
	}
	keys := slices.Compact(append(constants, required...))
	if len(keys) > most {
		keys, rest = keys[:most], 1
	}
	if rest > 0 {
		keys = append(keys, "...")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// required returns the names that a shape requires itself.
func (s *shape) required() (names []string) {
	list, _ := s.schema["required"].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// shapeAt returns the shape of the schema at a location of the validator, or nil.
func (e *explainer) shapeAt(location string) *shape {
	if len(e.located) == 0 {
		var visit func(s *shape)
		visit = func(s *shape) {
			if s == nil || s.validator == nil || e.located[s.validator.Location] != nil {
				return
			}
			e.located[s.validator.Location] = s
			for _, c := range slices.Concat(s.children(), s.judged, s.each, []*shape{s.when, s.names}) {
				visit(c)
			}
		}
		visit(e.root)
	}
	return e.located[location]
}
