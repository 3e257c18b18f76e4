package derive

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// scalar walks a value that is neither struct nor list, in the form that CUE has evaluated it to.
func (w *walker) scalar(v cue.Value, at place) *node {
	evaluated := v.Eval()
	op, operands := evaluated.Expr()
	if op == cue.OrOp {
		return w.choice(v, operands, at)
	}
	n := w.kind(v, at)
	w.constrain(n, evaluated, at, 0)
	return n
}

// canonicalBase64 is one text for every sequence of bytes, so that constants and exclusions can be compared as texts.
const canonicalBase64 = `^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$`

// kind says what a value's kinds are in JSON. A number whose fraction is zero is an integer to JSON, so that is what CUE
// is given for it, and `float` takes just the others. Bytes are base64; beside string, which takes every text, they add
// nothing.
func (w *walker) kind(v cue.Value, at place) *node {
	n := &node{pos: at.pos}
	kind := v.IncompleteKind()
	for _, k := range []struct {
		kind cue.Kind
		name string
	}{{cue.NullKind, "null"}, {cue.BoolKind, "boolean"}, {cue.StringKind | cue.BytesKind, "string"}} {
		if kind&k.kind != 0 {
			n.types = append(n.types, k.name)
		}
	}
	if kind&cue.BytesKind != 0 && kind&cue.StringKind == 0 {
		n.encoding = "base64"
		if !v.IsConcrete() {
			n.patterns = []string{canonicalBase64}
		}
	}
	switch {
	case kind&cue.NumberKind == cue.NumberKind:
		n.types = append(n.types, "number")
	case kind&cue.IntKind != 0:
		n.types = append(n.types, "integer")
	case kind&cue.FloatKind != 0:
		n.types = append(n.types, "number")
		if !v.IsConcrete() {
			n.not = append(n.not, &node{types: []string{"integer"}})
			w.warnOnce(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "float takes no whole number, not even 1.0, which arrives as 1: write number to take all of them")
		}
	}
	return n
}

// warnOnce is refuse for what is sound and yet seldom meant.
func (w *walker) warnOnce(code problem.Code, pos problem.Position, path, format string, args ...any) {
	if key := string(code) + pos.String(); !w.reported[key] {
		w.reported[key] = true
		w.problems.Warnf(code, pos, path, format, args...)
	}
}

// constrain adds what an evaluated value, or one part of it, demands. What no keyword says is a loss: n takes more then.
func (w *walker) constrain(n *node, v cue.Value, at place, depth int) {
	if v.IsConcrete() {
		w.constant(n, v, at)
		return
	}
	op, operands := v.Expr()
	switch op {
	case cue.AndOp:
		for _, o := range operands {
			w.constrain(n, o, at, depth+1)
		}
	case cue.NoOp:
		if len(operands) == 1 && operands[0] != v && depth < maxDepth {
			w.constrain(n, operands[0], at, depth+1)
		} else if !basic(v) {
			w.lose(contract.LossExpression, at, w.blameValue(at, v), "%s", short(v))
		}
	case cue.GreaterThanEqualOp, cue.GreaterThanOp, cue.LessThanEqualOp, cue.LessThanOp:
		w.bound(n, op, operands[0], v, at)
	case cue.NotEqualOp:
		w.notEqual(n, operands[0], v, at)
	case cue.RegexMatchOp, cue.NotRegexMatchOp:
		if re, ok := w.regexp(operands[0], at); ok && op == cue.RegexMatchOp {
			n.patterns = appendNew(n.patterns, re)
		} else if ok {
			n.not = append(n.not, &node{patterns: []string{re}})
		}
	case cue.CallOp:
		w.scalarValidator(n, v, at)
	default:
		w.lose(contract.LossExpression, at, w.blameValue(at, v), "%s", short(v))
	}
}

// basic reports whether v is a type and nothing more.
func basic(v cue.Value) bool {
	switch fmt.Sprint(v) {
	case "string", "int", "float", "number", "bool", "null", "bytes", "_":
		return true
	}
	return false
}

func (w *walker) constant(n *node, v cue.Value, at place) {
	raw, err := v.MarshalJSON()
	switch {
	case err != nil:
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "the constant can't be said in JSON: %v", err)
	case v.Kind()&cue.NumberKind != 0 && !sendable(raw):
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s is a number that no call can send: %s", short(v), largestNumber)
	case v.Kind() == cue.FloatKind && whole(v):
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s is a float in CUE and refuses the whole number that JSON takes it for: write it without the fraction", raw)
	case string(raw) == "null":
		n.types = []string{"null"}
	default:
		n.enum = []json.RawMessage{raw}
	}
}

// whole reports whether a number has no fraction.
func whole(v cue.Value) bool {
	f, err := v.Float(nil)
	return err == nil && f.IsInt()
}

// A call's numbers are within a float64 and have at most 400 characters (contract.Check).
const (
	longestNumber = 400
	largestNumber = "it has more than 400 characters or is beyond 1.8e308"
)

// sendable reports whether a call can have such a number.
func sendable(raw json.RawMessage) bool {
	f, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && !math.IsInf(f, 0) && len(raw) <= longestNumber
}

func (w *walker) bound(n *node, op cue.Op, limit, v cue.Value, at place) {
	pos := w.blameValue(at, v)
	switch {
	case !limit.IsConcrete():
		w.refuse(problem.UnsupportedConstr, pos, at.path, "%s has no limit that is known: write a constant", short(v))
		return
	case limit.Kind()&cue.NumberKind == 0:
		w.lose(contract.LossBound, at, pos, "%s", short(v))
		return
	}
	raw, err := limit.MarshalJSON()
	if err != nil || !sendable(raw) {
		w.refuse(problem.UnsupportedConstr, pos, at.path, "the bound %s is a number that no call can send: %s", short(limit), largestNumber)
		return
	}
	slot := map[cue.Op]*json.RawMessage{
		cue.GreaterThanEqualOp: &n.minimum, cue.GreaterThanOp: &n.exclusiveMinimum,
		cue.LessThanEqualOp: &n.maximum, cue.LessThanOp: &n.exclusiveMaximum,
	}[op]
	if *slot != nil && string(*slot) != string(raw) { // CUE keeps the tighter one of two
		w.refuse(problem.UnsupportedConstr, pos, at.path, "two bounds of the same side: write the narrower one")
		return
	}
	*slot = raw
}

func (w *walker) notEqual(n *node, value, v cue.Value, at place) {
	raw, err := value.MarshalJSON()
	switch kind := value.Kind(); {
	case err == nil && kind == cue.NullKind && len(n.types) > 0 && !slices.Contains(n.types, "null"):
	case err == nil && kind == cue.NullKind:
		n.not = append(n.not, &node{types: []string{"null"}})
	case err == nil && kind&(cue.StringKind|cue.BytesKind|cue.NumberKind|cue.BoolKind) != 0:
		if kind&cue.NumberKind == 0 || sendable(raw) { // else nothing to exclude
			n.not = append(n.not, &node{enum: []json.RawMessage{raw}})
		}
	default:
		w.lose(contract.LossBound, at, w.blameValue(at, v), "%s", short(v))
	}
}

// size is the single argument of a validator such as MinRunes(1).
func (w *walker) size(arguments []cue.Value, name string, at place) *int64 {
	if len(arguments) == 1 {
		if n, err := arguments[0].Int64(); err == nil && n >= 0 {
			return &n
		}
	}
	w.refuse(problem.UnsupportedConstr, w.blameName(at, name), at.path, "%s takes one whole number that is not negative, and a fixed one", name)
	return nil
}

func (w *walker) larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func (w *walker) smaller(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// short is a value in at most a few words.
func short(v cue.Value) string { return clip(strings.Join(strings.Fields(fmt.Sprint(v)), " ")) }
