package derive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// scalarValidator adds what a builtin demands of a scalar, or of a value of any kind.
func (w *walker) scalarValidator(n *node, v cue.Value, at place) {
	name, arguments := callee(v)
	switch name {
	case "strings.MinRunes":
		n.minLength = w.larger(n.minLength, w.size(arguments, name, at))
	case "strings.MaxRunes":
		n.maxLength = w.smaller(n.maxLength, w.size(arguments, name, at))
	case "strings.HasPrefix":
		w.literalText(n, v, arguments, "^%s", at)
	case "strings.HasSuffix":
		w.literalText(n, v, arguments, "%s$", at)
	case "strings.Contains":
		w.literalText(n, v, arguments, "%s", at)
	case "math.MultipleOf":
		w.multipleOf(n, v, arguments, at)
	default:
		if !w.format(n, v, name, arguments, at) {
			w.unknown(v, at)
		}
	}
}

// anyKind walks a value that only builtins and exclusions constrain, which hold for values of several kinds, structs and
// lists among them: net.IP(), !=null. It is nil for every other.
func (w *walker) anyKind(v cue.Value, at place) *node {
	evaluated := v.Eval()
	op, operands := evaluated.Expr()
	if op != cue.AndOp {
		operands = []cue.Value{evaluated}
	}
	for _, o := range operands {
		if op, _ := o.Expr(); op != cue.CallOp && op != cue.NotEqualOp {
			return nil
		}
	}
	n := &node{pos: at.pos}
	if kind := v.IncompleteKind(); kind&cue.NullKind == 0 {
		n = w.kind(v, at)
		if kind&cue.ListKind != 0 {
			n.types = append(n.types, "array")
		}
		if kind&cue.StructKind != 0 {
			n.types = append(n.types, "object")
		}
	}
	for _, o := range operands {
		w.constrain(n, o, at, 0)
	}
	return n
}

// callee is the name of what a validator calls, with its arguments.
func callee(v cue.Value) (string, []cue.Value) {
	op, operands := v.Expr()
	if op != cue.CallOp || len(operands) == 0 {
		return strings.TrimSuffix(short(v), "()"), nil
	}
	return strings.TrimSuffix(fmt.Sprint(operands[0]), "()"), operands[1:]
}

// unknown declares the loss of a validator that no keyword corresponds to.
func (w *walker) unknown(call cue.Value, at place) {
	w.lose(contract.LossValidator, at, w.blameCall(at, call), "%s", short(call))
}

// blameCall is the position of a call of a builtin, or of its name where it stands without brackets.
func (w *walker) blameCall(at place, call cue.Value) problem.Position {
	if e, ok := call.Source().(ast.Expr); ok && e.Pos().IsValid() {
		return Position(e.Pos())
	}
	name, _ := callee(call)
	return w.blameName(at, name)
}

// literalText says strings.HasPrefix("a") and its like as a pattern.
func (w *walker) literalText(n *node, v cue.Value, arguments []cue.Value, form string, at place) {
	if len(arguments) == 1 {
		if text, err := arguments[0].String(); err == nil {
			if re, err := portable(fmt.Sprintf(form, regexp.QuoteMeta(text))); err == nil {
				n.patterns = appendNew(n.patterns, re)
				return
			}
		}
	}
	w.unknown(v, at)
}

// multipleOf is exact up to 34 digits; with more, CUE rounds the quotient and takes numbers for multiples that are none.
func (w *walker) multipleOf(n *node, v cue.Value, arguments []cue.Value, at place) {
	if len(arguments) != 1 || arguments[0].Kind()&cue.NumberKind == 0 {
		w.unknown(v, at)
		return
	}
	raw, err := arguments[0].MarshalJSON()
	raw = bytes.TrimPrefix(raw, []byte("-"))
	mantissa, _, _ := bytes.Cut(bytes.ToLower(raw), []byte("e"))
	switch {
	case err != nil || !sendable(raw):
		w.unknown(v, at)
	case !bytes.ContainsAny(mantissa, "123456789"):
		w.refuse(problem.UnsupportedConstr, w.blameCall(at, v), at.path, "nothing is a multiple of 0")
	case n.multipleOf != nil:
		n.also = append(n.also, &node{multipleOf: raw})
	default:
		n.multipleOf = raw
	}
}

func (w *walker) listValidators(n *node, p *parts, at place) {
	for _, c := range p.validators {
		if _, err := c.List(); err == nil && len(p.values) != 1 {
			continue // a list that is computed, whose items have been walked
		}
		w.listValidator(n, c, at)
	}
}

// listValidator adds what a builtin demands of a list.
func (w *walker) listValidator(n *node, call cue.Value, at place) {
	name, arguments := callee(call)
	switch name {
	case "list.MinItems":
		n.minItems = w.larger(n.minItems, w.size(arguments, name, at))
	case "list.MaxItems":
		n.maxItems = w.smaller(n.maxItems, w.size(arguments, name, at))
	case "list.UniqueItems":
		n.unique = true
		if n.fills(map[*definition]bool{}) {
			w.lose(contract.LossValidator, at, w.blameCall(at, call), "list.UniqueItems() compares items with their defaults filled in")
		}
	case "list.Contains":
		w.contains(n, call, arguments, at)
	default:
		w.unknown(call, at)
	}
}

// contains says list.Contains of a constant. One that is a float without fraction is in no list that a call can send.
func (w *walker) contains(n *node, call cue.Value, arguments []cue.Value, at place) {
	const scalar = cue.StringKind | cue.NumberKind | cue.BoolKind | cue.NullKind
	if len(arguments) == 1 && arguments[0].Kind()&scalar != 0 && !(arguments[0].Kind() == cue.FloatKind && whole(arguments[0])) {
		if raw, err := arguments[0].MarshalJSON(); err == nil && (raw[0] == '"' || sendable(raw) || arguments[0].Kind()&cue.NumberKind == 0) {
			n.contains = append(n.contains, &node{enum: []json.RawMessage{raw}})
			return
		}
	}
	w.unknown(call, at)
}

// fills reports whether a default is filled in anywhere in n.
func (n *node) fills(seen map[*definition]bool) bool {
	if n == nil {
		return false
	}
	if n.ref != nil {
		if seen[n.ref] || n.ref.node == nil {
			return false // a definition that is being walked tells of its own defaults where it is first met
		}
		seen[n.ref] = true
		return n.ref.node.fills(seen)
	}
	within := func(m *node) bool { return m.fills(seen) }
	member := func(p property) bool { return p.fallback != nil || p.node.fills(seen) }
	return n.items.fills(seen) || n.additional.fills(seen) || slices.ContainsFunc(n.prefix, within) || slices.ContainsFunc(n.anyOf, within) ||
		slices.ContainsFunc(n.properties, member) || slices.ContainsFunc(n.patternProperties, member)
}

// structValidator adds what a builtin demands of a struct whose members are known.
func (w *walker) structValidator(n *node, call cue.Value, at place) {
	name, arguments := callee(call)
	switch name {
	case "struct.MinFields":
		w.minFields(n, call, w.size(arguments, name, at), at)
	case "struct.MaxFields":
		w.maxFields(n, call, w.size(arguments, name, at), at)
	default:
		w.unknown(call, at)
	}
}

// minFields counts as CUE does, which counts the fields that it has filled in. What a call sends may have as many fewer.
func (w *walker) minFields(n *node, call cue.Value, least *int64, at place) {
	if least == nil {
		return
	}
	filled := n.filled()
	sent := max(0, *least-filled)
	if sent <= int64(len(n.requiredNames())) && filled > 0 {
		return // the fields that are always there are enough
	}
	n.minProperties = w.larger(n.minProperties, &sent)
	if filled > 0 {
		w.lose(contract.LossValidator, at, w.blameCall(at, call), "%s counts the fields that defaults fill in", short(call))
	}
}

// maxFields is minFields for the upper bound.
func (w *walker) maxFields(n *node, call cue.Value, most *int64, at place) {
	if most == nil {
		return
	}
	n.maxProperties = w.smaller(n.maxProperties, most)
	if all := int64(len(n.properties)); n.filled() > 0 && !(n.closed && !n.patterned() && all <= *most) {
		w.lose(contract.LossValidator, at, w.blameCall(at, call), "%s counts the fields that defaults fill in", short(call))
	}
}

// filled is how many fields CUE fills in where a call leaves them out.
func (n *node) filled() (count int64) {
	for _, p := range n.properties {
		if p.fallback != nil {
			count++
		}
	}
	return count
}
