package shapes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// The faults that a shape may show.
const (
	runsRefused     = "Check accepts what CUE refuses"
	refusesAllowed  = "Check refuses what CUE accepts"
	fillsOtherwise  = "Check fills in another value than CUE"
	schemaNarrower  = "the schema refuses what CUE accepts"
	schemaWider     = "the schema accepts what CUE refuses, and no loss says so"
	undecided       = "Check decides nothing"
	badSchema       = "the schema is not one for another validator"
	badContract     = "no contract can be made"
	fieldsOtherwise = "the contract's fields say otherwise than what runs"
	refusedAll      = "refused as a whole, and CUE accepts some call"
	refusedNowhere  = "refused at no line of the author's"
)

// faults are in the order in which a shape with several is sorted by its first.
var faults = []string{
	runsRefused, fillsOtherwise, refusesAllowed, undecided, schemaNarrower, schemaWider, fieldsOtherwise,
	badSchema, badContract, refusedAll, refusedNowhere,
}

// A finding is one fault of one shape, with the call that shows it.
type finding struct {
	shape shape
	fault string
	// also are other faults of the shape.
	also  []string
	call  string
	cue   answer
	check string
	// schema is what the other validator says of the call.
	schema string
	losses int
	// remainder: CUE is asked at each call.
	remainder bool
}

// An outcome is what became of one shape.
type outcome struct {
	shape    shape
	compiled compiled
	// finding is nil where all agree.
	finding *finding
	calls   int
	// satisfiable: CUE accepts some call; accepted is how many of the calls.
	satisfiable bool
	accepted    int
	// endless: CUE did not come to an end with it.
	endless bool
	// contradictions are calls that CUE itself answers in two ways, and ambiguous those that strictness open
	// can mean two things for. Neither says anything about catalogd.
	contradictions []string
	ambiguous      []string
}

// examine asks all four about each call of the shape.
func examine(ctx context.Context, s shape, c compiled) (o outcome, err error) {
	o = outcome{shape: s, compiled: c}
	all := calls(s.args)
	t, err := newTruth(s, all)
	if err != nil && !strings.HasPrefix(err.Error(), "panic") {
		return o, err
	}
	if err != nil {
		o.contradictions = append(o.contradictions, err.Error())
		return o, nil
	}
	found := func(f finding) {
		f.shape, f.losses, f.remainder = s, len(c.spec.Losses), c.spec.Remainder != nil
		switch old := o.finding; {
		case old == nil:
			o.finding = &f
		case f.fault == old.fault || slices.Contains(old.also, f.fault):
		case slices.Index(faults, f.fault) < slices.Index(faults, old.fault):
			f.also = append(old.also, old.fault)
			o.finding = &f
		default:
			old.also = append(old.also, f.fault)
		}
	}
	for _, p := range c.problems {
		if !s.owns(p.File) || p.Line < 1 || strings.Contains(p.Message, "schema.cue") {
			found(finding{fault: refusedNowhere, check: p.String()})
		}
	}
	if len(c.problems) > 0 {
		for i, call := range all {
			a, err := t.ask(i)
			if err != nil || !a.accepted {
				continue
			}
			o.satisfiable = true
			for _, p := range c.problems {
				if !mayRefuse(p) && s.sound() {
					found(finding{fault: refusedAll, call: call, cue: a, check: p.String()})
				}
			}
			break
		}
		return o, nil
	}
	if s.tightened && c.err != nil && strings.Contains(c.err.Error(), "can't be closed") && opens(s) {
		return o, nil // a branch may not close arguments whose author opens them
	}
	if c.err != nil || c.contract == nil {
		found(finding{fault: badContract, check: fmt.Sprint(c.err)})
		return o, nil
	}
	schema, err := schemaOf(c.spec.Schema)
	if err != nil {
		found(finding{fault: badSchema, schema: err.Error()})
		return o, nil
	}
	for i, call := range all {
		o.calls++
		want, err := t.ask(i)
		if err != nil {
			o.contradictions = append(o.contradictions, call+": "+err.Error())
			continue
		}
		if want.accepted {
			o.satisfiable = true
			o.accepted++
		}
		got, err := check(ctx, c.contract, call)
		says := "accepts"
		allowed := allows(schema, call)
		if allowed != nil {
			says = "refuses: " + allowed.Error()
		}
		f := finding{call: call, cue: want, check: got.String(), schema: says}
		computed := bringsComputed(s, call)
		switch {
		case err != nil:
			f.fault, f.check = undecided, err.Error()
		case got.accepted && !want.accepted:
			f.fault = runsRefused
		case want.accepted && !got.accepted && !computed:
			f.fault = refusesAllowed
		case want.accepted && got.accepted && want.filled != got.filled:
			f.fault = fillsOtherwise
		}
		g := f
		switch g.fault = ""; {
		case want.accepted && allowed != nil && !computed:
			g.fault = schemaNarrower
		case !want.accepted && allowed == nil && len(c.spec.Losses) == 0:
			g.fault = schemaWider
		}
		if f.fault == "" && g.fault == "" {
			if got.accepted {
				if is := misfit(c.spec, got.filled); is != "" {
					f.fault, f.check = fieldsOtherwise, f.check+"; "+is
					found(f)
				}
			}
			continue
		}
		if differ := t.otherwise(i, want); len(differ) > 0 {
			said := call + ": " + want.String() + "; " + strings.Join(differ, "; ")
			o.contradictions = append(o.contradictions, said)
			continue
		}
		if want.accepted && t.opened(i) {
			o.contradictions = append(o.contradictions, call+": accepted, and refused without its validators")
			continue
		}
		if s.strictness == contract.Open && !want.accepted && closedAccepts(s, call) ||
			s.strictness == contract.Closed && want.accepted && undeclared(s, call, got, want) {
			o.ambiguous = append(o.ambiguous, call)
			continue
		}
		for _, f := range []finding{f, g} {
			if f.fault != "" {
				found(f)
			}
		}
	}
	return o, nil
}

// misfit says what of the filled arguments is not as the contract's fields have it.
func misfit(spec contract.Spec, filled string) string {
	v, err := decode(filled)
	if err != nil {
		return err.Error()
	}
	for _, f := range spec.Fields {
		member, there := v.(object)[f.Name]
		if !there {
			if f.Always() {
				return f.Name + " is always there, and is not"
			}
			continue
		}
		t := jsonType(member)
		if !slices.Contains(f.Types, t) && (t != "integer" || !slices.Contains(f.Types, "number")) {
			return fmt.Sprintf("%s is one of %v, and is of type %s", f.Name, f.Types, t)
		}
	}
	return ""
}

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if strings.Contains(v.String(), "e") { // as canonical writes what is not whole
			return "number"
		}
		return "integer"
	}
	return "object"
}

// opens reports whether the author of the shape writes `...` somewhere.
func opens(s shape) bool { return strings.Contains(s.source(), "...") }

// bringsComputed reports whether the call has, at any depth, a field that CUE computes from others.
// docs/arguments.md lets such a call be refused, also where what it brings is what CUE computes.
func bringsComputed(s shape, call string) bool {
	var has func(v any) bool
	has = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, has)
		case object:
			for name, member := range v {
				if slices.Contains(s.args.computes, name) || has(member) {
					return true
				}
			}
		}
		return false
	}
	v, err := decode(call)
	return err == nil && has(v)
}

var patternLabel = regexp.MustCompile(`\[(string|=~|!~|N=|"p")`)

// undeclared reports whether Check refuses, under strictness closed, keys at the top that no field declares
// and that CUE lets through all the same, as it lets any: in `{matchN(1, [...])}` or `{_}`. docs/arguments.md
// says declared keys only.
func undeclared(s shape, call string, got, want answer) bool {
	v, err := decode(call)
	if err != nil || got.accepted || patternLabel.MatchString(s.source()) {
		return false
	}
	for _, line := range strings.Split(got.why, "; ") {
		pointer, _, _ := strings.Cut(line, ":")
		if !strings.Contains(line, "unexpected key") || strings.Count(pointer, "/") != 1 {
			return false
		}
	}
	t, err := newTruth(s, []string{encode(with(v, "zq", nil))})
	if err != nil {
		return false
	}
	a, err := t.ask(0)
	return err == nil && a.accepted
}

// closedAccepts reports whether the shape would accept the call's declared keys under strictness closed,
// though not beside further ones: a choice of structs that a missing key decides is undecided where every key
// may be there.
func closedAccepts(s shape, call string) bool {
	s.strictness = contract.Closed
	v, err := decode(call)
	if err != nil {
		return false
	}
	t, err := newTruth(s, []string{call, encode(without(v, "zz"))})
	if err != nil {
		return false
	}
	for i := range t.calls {
		if a, err := t.ask(i); err == nil && a.accepted {
			return true
		}
	}
	return false
}
