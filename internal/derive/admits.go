package derive

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
)

// takes reports whether n certainly accepts a default, as a call sends it.
func (n *node) takes(fallback json.RawMessage) bool {
	if slices.Equal(n.types, []string{"array"}) {
		return n.admitsList(fallback)
	}
	return !n.lossy && n.admits(asSent(fallback))
}

// asSent returns a constant as a call sends it: a whole number without a fraction.
func asSent(raw json.RawMessage) json.RawMessage {
	if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
		return json.RawMessage(contract.Integer(json.Number(raw)))
	}
	return raw
}

// admits reports whether n, a constraint of scalars, certainly accepts a constant.
func (n *node) admits(raw json.RawMessage) bool {
	if n.ref != nil || len(n.anyOf) > 0 || len(n.not) > 0 || len(n.also) > 0 || n.multipleOf != nil || n.encoding != "" || n.format != "" {
		return false
	}
	kind := constantTypes([]json.RawMessage{raw})[0]
	if !slices.Contains(n.types, kind) && !(kind == "integer" && slices.Contains(n.types, "number")) {
		return false
	}
	if len(n.enum) > 0 {
		return slices.ContainsFunc(n.enum, func(e json.RawMessage) bool { return string(e) == string(raw) })
	}
	switch kind {
	case "string":
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return false
		}
		for _, p := range n.patterns {
			if re, err := regexp.Compile(p); err != nil || !re.MatchString(text) {
				return false
			}
		}
		runes := int64(utf8.RuneCountInString(text))
		return (n.minLength == nil || runes >= *n.minLength) && (n.maxLength == nil || runes <= *n.maxLength)
	case "integer", "number":
		return n.within(raw)
	}
	return true
}

// within reports whether a number is within the bounds of n.
func (n *node) within(raw json.RawMessage) bool {
	v, ok := new(big.Rat).SetString(string(raw))
	if !ok {
		return false
	}
	holds := func(limit json.RawMessage, test func(int) bool) bool {
		if limit == nil {
			return true
		}
		l, ok := new(big.Rat).SetString(string(limit))
		return ok && test(v.Cmp(l))
	}
	return holds(n.minimum, func(c int) bool { return c >= 0 }) && holds(n.exclusiveMinimum, func(c int) bool { return c > 0 }) &&
		holds(n.maximum, func(c int) bool { return c <= 0 }) && holds(n.exclusiveMaximum, func(c int) bool { return c < 0 })
}

// admitsList reports whether n, a list without structs, certainly accepts a list of constants.
func (n *node) admitsList(raw json.RawMessage) bool {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return false
	}
	count := int64(len(items))
	if n.minItems != nil && count < *n.minItems || n.maxItems != nil && count > *n.maxItems || len(n.contains) > 0 || n.unique || len(n.anyOf) > 0 {
		return false
	}
	for i, item := range items {
		switch {
		case i < len(n.prefix):
			if !n.prefix[i].admits(asSent(item)) {
				return false
			}
		case n.items != nil && !n.items.admits(asSent(item)):
			return false
		}
	}
	return true
}
