package derive

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/catalogd/catalogd/problem"
)

// scalar walks a value that is neither struct nor list, in the form that CUE has evaluated it to.
func (w *walker) scalar(v cue.Value, at place) *node {
	evaluated := v.Eval()
	op, operands := evaluated.Expr()
	if op == cue.OrOp {
		return w.choice(v, operands, at)
	}
	n := &node{types: w.kinds(v, at), pos: at.pos}
	w.constrain(n, evaluated, at, 0)
	return n
}

// kinds are the JSON types of a value's kinds.
func (w *walker) kinds(v cue.Value, at place) (types []string) {
	kind := v.IncompleteKind()
	for _, k := range []struct {
		kind cue.Kind
		name string
	}{{cue.NullKind, "null"}, {cue.BoolKind, "boolean"}, {cue.StringKind, "string"}} {
		if kind&k.kind != 0 {
			types = append(types, k.name)
		}
	}
	switch {
	case kind&cue.NumberKind == cue.NumberKind:
		types = append(types, "number")
	case kind&cue.IntKind != 0:
		types = append(types, "integer")
	case kind&cue.FloatKind != 0 && v.IsConcrete():
		types = append(types, "number")
	case kind&cue.FloatKind != 0:
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "float refuses 1 and takes 1.0, which JSON does not tell apart: write number")
	}
	if kind&cue.BytesKind != 0 {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "JSON has no bytes: write string, and say the encoding")
	}
	return types
}

// constrain adds what an evaluated value, or one part of it, demands.
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
			w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s can't be said in JSON Schema", short(v))
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
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s can't be said in JSON Schema", short(v))
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
	if err != nil {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "the constant can't be said in JSON: %v", err)
		return
	}
	if v.Kind() == cue.FloatKind && whole(v) {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s is a float in CUE and refuses the whole number that JSON takes it for: write it without the fraction", raw)
		return
	}
	if string(raw) == "null" {
		n.types = []string{"null"}
		return
	}
	n.enum = []json.RawMessage{raw}
}

// whole reports whether a number has no fraction.
func whole(v cue.Value) bool {
	f, err := v.Float(nil)
	return err == nil && f.IsInt()
}

func (w *walker) bound(n *node, op cue.Op, limit, v cue.Value, at place) {
	if limit.Kind()&cue.NumberKind == 0 || !limit.IsConcrete() {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s can't be said in JSON Schema: only numbers have bounds", short(v))
		return
	}
	raw, err := limit.MarshalJSON()
	if err != nil {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "the bound can't be said in JSON: %v", err)
		return
	}
	slot := map[cue.Op]*json.RawMessage{
		cue.GreaterThanEqualOp: &n.minimum, cue.GreaterThanOp: &n.exclusiveMinimum,
		cue.LessThanEqualOp: &n.maximum, cue.LessThanOp: &n.exclusiveMaximum,
	}[op]
	if *slot != nil && string(*slot) != string(raw) {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "two bounds of the same side: write the narrower one")
		return
	}
	*slot = raw
}

func (w *walker) notEqual(n *node, value, v cue.Value, at place) {
	raw, err := value.MarshalJSON()
	if err != nil || value.Kind()&(cue.StringKind|cue.NumberKind|cue.BoolKind) == 0 {
		w.refuse(problem.UnsupportedConstr, w.blameValue(at, v), at.path, "%s can't be said in JSON Schema", short(v))
		return
	}
	n.not = append(n.not, &node{enum: []json.RawMessage{raw}})
}

func (w *walker) scalarValidator(n *node, v cue.Value, at place) {
	name, arguments := callee(v)
	switch name {
	case "strings.MinRunes":
		n.minLength = w.larger(n.minLength, w.size(arguments, name, at))
	case "strings.MaxRunes":
		n.maxLength = w.smaller(n.maxLength, w.size(arguments, name, at))
	default:
		w.unknown(name, at)
	}
}

// callee is the name of what a validator calls, with its arguments.
func callee(v cue.Value) (string, []cue.Value) {
	op, operands := v.Expr()
	if op != cue.CallOp || len(operands) == 0 {
		return strings.TrimSuffix(short(v), "()"), nil
	}
	return strings.TrimSuffix(fmt.Sprint(operands[0]), "()"), operands[1:]
}

func (w *walker) unknown(name string, at place) {
	w.refuse(problem.UnsupportedConstr, w.blameName(at, name), at.path, "%s can't be said in JSON Schema", name)
}

// size is the single argument of a validator such as MinRunes(1).
func (w *walker) size(arguments []cue.Value, name string, at place) *int64 {
	if len(arguments) == 1 {
		if n, err := arguments[0].Int64(); err == nil && n >= 0 {
			return &n
		}
	}
	w.refuse(problem.UnsupportedConstr, w.blameName(at, name), at.path, "%s takes one whole number, and a fixed one", name)
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
func short(v cue.Value) string {
	s := strings.Join(strings.Fields(fmt.Sprint(v)), " ")
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
