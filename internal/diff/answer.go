package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
)

// answer is a policy's answer to one question.
type answer struct {
	allow   bool
	reasons string
	// terms are the grants and obligations, by the name of the decision's field.
	terms map[string]any
}

// termKind is how two values of a term compare.
type termKind int

const (
	grants   termKind = iota // a set or a flag: more of it grants more
	duties                   // a set of obligations: less of it grants more
	limits                   // a number, 0 for unlimited
	rate                     // calls per period, empty for unlimited
	pins                     // a text that something must equal, empty for anything
	approval                 // somebody has to approve, empty for no approval
	informs                  // grants nothing
)

// terms are all terms. A difference in any other term is Unclassified.
var terms = map[string]termKind{
	"env": grants, "relay": grants, "elicitation_hosts": grants, "addresses": grants, "interpreter": grants, "unpinned": grants, "from_call": grants, "secrets": grants, "stdin": grants, "in_tree": grants, "headers": grants,
	"redact": duties, "redact_patterns": duties, "timeout": limits, "max_bytes": limits, "max_connections": limits, "rate_limit": rate, "sha256": pins, "require_approval": approval,
	"trust": informs,
}

// granted returns the terms of an allowed decision, with the additional ones of a trust.
func granted(d decision.Decision, of trusted) answer {
	a := answer{allow: d.Allow, reasons: strings.Join(d.Reasons, "; ")}
	if a.reasons == "" {
		a.reasons = string(d.Code)
	}
	if !d.Allow {
		return a
	}
	b, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(b, &a.terms)
	}
	if err != nil {
		panic(fmt.Sprintf("diff: a decision is plain data: %v", err))
	}
	for _, name := range []string{"point", "allow", "code", "reasons"} {
		delete(a.terms, name)
	}
	if of != nil {
		for name, v := range map[string]any{
			"max_connections": float64(of.MaxConnections()), "interpreter": of.Interpreter(), "unpinned": of.Unpinned(), "in_tree": of.InTree(), "sha256": of.SHA256(), "addresses": texts(of.Addresses()),
			"from_call": texts(of.FromCall()),
			"stdin":     of.Stdin(),
			"headers":   texts(of.Headers()),
			"secrets":   texts(of.Secrets()),
		} {
			if !zero(v) {
				a.terms[name] = v
			}
		}
	}
	return a
}

// trusted is implemented by trust.Trust.
type trusted interface {
	MaxConnections() int
	Interpreter() bool
	FromCall() []string
	Stdin() bool
	Headers() []string
	Secrets() []string
	Unpinned() bool
	InTree() bool
	Addresses() []string
	SHA256() string
}

// to compares two answers; differ are the terms that differ if both allow.
func (a answer) to(b answer) (class Class, differ []string) {
	switch {
	case !a.allow && !b.allow:
		return Neutral, nil
	case !a.allow:
		return Widening, nil
	case !b.allow:
		return Narrowing, nil
	}
	class = Neutral
	for _, name := range keys(a.terms, b.terms) {
		if c := termClass(name, a.terms[name], b.terms[name]); c != Neutral {
			class = class.with(c)
			differ = append(differ, name)
		}
	}
	return class, differ
}

func termClass(name string, from, to any) Class {
	if jsonText(from) == jsonText(to) {
		return Neutral
	}
	kind, known := terms[name]
	if !known {
		return Unclassified
	}
	switch kind {
	case grants:
		return setClass(members(from), members(to))
	case duties:
		return setClass(members(to), members(from))
	case limits:
		return limitClass(number(from), number(to))
	case rate:
		return rateClass(from, to)
	case approval:
		return approvalClass(from, to)
	case pins:
		if zero(from) {
			return Narrowing
		}
		return Widening
	}
	return Neutral
}

// setClass returns the class of a change of members in a set of grants.
func setClass(from, to []string) Class {
	more := slices.ContainsFunc(to, func(m string) bool { return !slices.Contains(from, m) })
	fewer := slices.ContainsFunc(from, func(m string) bool { return !slices.Contains(to, m) })
	switch {
	case more:
		return Widening
	case fewer:
		return Narrowing
	}
	return Neutral
}

func rateClass(from, to any) Class {
	before, ok1 := from.(map[string]any)
	after, ok2 := to.(map[string]any)
	switch {
	case !ok2:
		return Widening
	case !ok1:
		return Narrowing
	}
	if number(after["calls"]) > number(before["calls"]) || number(after["per"]) < number(before["per"]) {
		return Widening
	}
	return Narrowing
}

// approvalClass returns the class of a changed approval: more people who may give it, or more time to do so,
// widen. Its reason is text for people.
func approvalClass(from, to any) Class {
	before, asked := from.(map[string]any)
	after, asks := to.(map[string]any)
	switch {
	case !asks:
		return Widening
	case !asked:
		return Narrowing
	}
	return setClass(members(before["groups"]), members(after["groups"])).
		with(setClass(members(before["self"]), members(after["self"]))).
		with(limitClass(number(before["expires"]), number(after["expires"])))
}

// members returns the elements of a list, or the pairs of a mapping as text; true is one member and false
// none.
func members(v any) (out []string) {
	switch v := v.(type) {
	case bool:
		if v {
			out = append(out, "true")
		}
	case []any:
		for _, m := range v {
			out = append(out, word(m))
		}
	case map[string]any:
		for _, key := range keys(v) {
			out = append(out, key+"="+word(v[key]))
		}
	}
	return out
}

// number returns a number, or a duration in nanoseconds.
func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case json.Number:
		if n, err := v.Float64(); err == nil {
			return n
		}
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			return float64(d)
		}
	}
	return 0
}

func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// shown formats a term for people.
func shown(name string, v any) string {
	if v == nil {
		return "none"
	}
	if m, ok := v.(map[string]any); ok && name == "rate_limit" {
		return fmt.Sprintf("%v calls in %v", m["calls"], m["per"])
	}
	if m, ok := v.(map[string]any); ok && name == "require_approval" {
		return fmt.Sprintf("by groups %s, self %v, within %v", jsonText(m["groups"]), m["self"], m["expires"])
	}
	return jsonText(v)
}

func texts(all []string) (out []any) {
	for _, s := range all {
		out = append(out, s)
	}
	return out
}
