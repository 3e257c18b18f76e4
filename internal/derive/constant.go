package derive

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// value is a literal constant.
type value struct {
	raw   json.RawMessage // as JSON
	kind  token.Token     // STRING, INT, FLOAT, TRUE, FALSE, NULL
	bytes bool            // a string of bytes, in base64
	pos   token.Pos
}

// literalOf reads a constant: a literal, or the name of one outside the arguments. ok is false for any other
// expression; a number that no call can send is reported.
func (w *walker) literalOf(x ast.Expr, at place) (v value, ok bool) { return w.literalAt(x, at, 0) }

func (w *walker) literalAt(x ast.Expr, at place, depth int) (v value, ok bool) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.literalAt(x.X, at, depth)
	case *ast.BasicLit:
		return w.basicLit(x, at)
	case *ast.UnaryExpr:
		if x.Op == token.SUB || x.Op == token.ADD {
			if v, ok = w.literalAt(x.X, at, depth); !ok || v.kind != token.INT && v.kind != token.FLOAT {
				return value{}, false
			}
			if x.Op == token.SUB && strings.ContainsAny(mantissa(v.raw), "123456789") { // CUE has no -0
				if rest, negative := strings.CutPrefix(string(v.raw), "-"); negative {
					v.raw = json.RawMessage(rest)
				} else {
					v.raw = json.RawMessage("-" + rest)
				}
			}
			v.pos = x.Pos()
			return v, true
		}
	case *ast.Ident, *ast.SelectorExpr:
		if t := w.refer(x); t.field != nil && !t.fillable && depth < maxDepth {
			return w.literalAt(t.field.Value, at, depth+1)
		}
	}
	return value{}, false
}

func (w *walker) basicLit(x *ast.BasicLit, at place) (v value, ok bool) {
	v = value{kind: x.Kind, pos: x.Pos()}
	switch x.Kind {
	case token.NULL, token.TRUE, token.FALSE:
		v.raw = json.RawMessage(x.Value)
		return v, true
	case token.STRING:
		text, err := literal.Unquote(x.Value)
		if err != nil {
			return v, false
		}
		if strings.HasPrefix(strings.TrimLeft(x.Value, "#"), "'") {
			v.bytes, v.raw = true, quote(base64.StdEncoding.EncodeToString([]byte(text)))
			return v, true
		}
		v.raw = quote(text)
		return v, true
	case token.INT, token.FLOAT:
		if v.raw, ok = number(x.Value); !ok {
			w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path, "%s is a number that no call can send: %s", clip(x.Value), largestNumber)
			return value{raw: json.RawMessage("0"), kind: x.Kind, pos: x.Pos()}, true
		}
		return v, true
	}
	return v, false
}

// The numbers of a call are within a float64 and have at most 400 characters (contract.Check).
const (
	longestNumber = 400
	largestNumber = "it has more than 400 characters, is beyond 1.8e308 or so small that it counts as 0"
)

// number converts a CUE number literal (0x1f, 1_000, 2Ki, 1.5e3) to JSON. It returns false for one that no
// call can send.
func number(text string) (json.RawMessage, bool) {
	if !reachable(text) {
		return nil, false
	}
	var info literal.NumInfo
	if err := literal.ParseNum(text, &info); err != nil {
		return nil, false
	}
	raw := json.RawMessage(info.String())
	switch {
	case strings.HasPrefix(string(raw), "."):
		raw = append(json.RawMessage("0"), raw...)
	}
	raw = json.RawMessage(strings.Replace(string(raw), ".e", ".0e", 1))
	if strings.HasSuffix(string(raw), ".") {
		raw = append(raw, '0')
	}
	if !json.Valid(raw) || !sendable(raw) {
		return nil, false
	}
	return raw, true
}

// reachable prevents the expansion of literals whose exponent alone exceeds every call.
func reachable(text string) bool {
	i := strings.LastIndexAny(text, "eE")
	if i < 0 || strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
		return len(text) <= longestNumber
	}
	exponent, err := strconv.Atoi(strings.ReplaceAll(text[i+1:], "_", ""))
	return err == nil && exponent < longestNumber && exponent > -longestNumber && len(text) <= longestNumber
}

// sendable reports whether a call can contain such a number, and CUE reads it as written.
func sendable(raw json.RawMessage) bool {
	f, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && !math.IsInf(f, 0) && len(raw) <= longestNumber && (f != 0 || !strings.ContainsAny(mantissa(raw), "123456789"))
}

// mantissa returns a number without its exponent.
func mantissa(raw json.RawMessage) string {
	before, _, _ := strings.Cut(strings.ToLower(string(raw)), "e")
	return before
}

// whole reports whether a number has no fraction, so that JSON treats it as an integer.
func whole(raw json.RawMessage) bool {
	return !strings.ContainsAny(string(contract.Integer(json.Number(raw))), ".eE")
}

// constant walks a literal.
func (w *walker) constant(x ast.Expr, at place) *node {
	v, ok := w.literalOf(x, at)
	if !ok {
		return w.off(contract.LossExpression, x, at)
	}
	return w.constantNode(v, x, at)
}

func (w *walker) constantNode(v value, x ast.Expr, at place) *node {
	n := &node{enum: []json.RawMessage{v.raw}, pos: at.pos}
	switch {
	case v.kind == token.NULL:
		return &node{types: []string{"null"}, pos: at.pos}
	case v.kind == token.FLOAT && whole(v.raw):
		// JSON does not distinguish 1.0 from 1, and CUE does.
		w.lose(contract.LossNumber, at, Position(x.Pos()), "%s", written(x))
		n.types, n.lossy = []string{"number"}, true
		return n
	case v.bytes:
		n.types, n.encoding = []string{"string"}, "base64"
		return n
	}
	n.types = constantTypes(n.enum)
	return n
}

func constantTypes(enum []json.RawMessage) (types []string) {
	for _, raw := range enum {
		t := "integer"
		switch c := raw[0]; {
		case c == '"':
			t = "string"
		case c == 't' || c == 'f':
			t = "boolean"
		case c == 'n':
			t = "null"
		case slices.ContainsFunc(raw, func(b byte) bool { return b == '.' || b == 'e' || b == 'E' }):
			t = "number"
		}
		types = append(types, t)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types
}

// bound walks >=n and similar. Strings and bytes are ordered in CUE and not in JSON Schema.
func (w *walker) bound(x *ast.UnaryExpr, at place) *node {
	v, ok := w.literalOf(x.X, at)
	if !ok {
		n := w.off(w.unknownOperand(x.X), x, at)
		if t := w.refer(x.X); t.field != nil {
			if kinds := w.scalarTypes(t.field.Value); len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return k != "integer" && k != "number" }) {
				n.types = []string{"number"} // what a number bounds is a number
			}
		}
		return n
	}
	if v.kind != token.INT && v.kind != token.FLOAT {
		return w.off(contract.LossBound, x, at)
	}
	n := &node{types: []string{"number"}, pos: at.pos}
	switch x.Op {
	case token.GEQ:
		n.minimum = v.raw
	case token.GTR:
		n.exclusiveMinimum = v.raw
	case token.LEQ:
		n.maximum = v.raw
	case token.LSS:
		n.exclusiveMaximum = v.raw
	}
	return n
}

// notEqual walks !=c, which accepts every value of the constant's type except that one; !=null accepts every
// other type.
func (w *walker) notEqual(x *ast.UnaryExpr, at place) *node {
	v, ok := w.literalOf(x.X, at)
	switch {
	case !ok:
		return w.off(w.unknownOperand(x.X), x, at)
	case v.kind == token.STRING && !v.bytes:
		return &node{types: []string{"string"}, not: []*node{{enum: []json.RawMessage{v.raw}}}, pos: at.pos}
	case v.kind == token.INT, v.kind == token.FLOAT && !whole(v.raw):
		return &node{types: []string{"number"}, not: []*node{{enum: []json.RawMessage{v.raw}}}, pos: at.pos}
	}
	return w.off(contract.LossBound, x, at)
}

// canonicalBase64 matches one text for every sequence of bytes, so that constants and exclusions can be
// compared as strings.
const canonicalBase64 = `^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$`

// integers are the bounds of CUE's sized types, in CUE's notation.
var integers = map[string][2]string{
	"uint": {"0", ""}, "uint8": {"0", "255"}, "uint16": {"0", "65535"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
	"uint128": {"0", "340282366920938463463374607431768211455"},
	"int8":    {"-128", "127"}, "int16": {"-32768", "32767"}, "int32": {"-2147483648", "2147483647"},
	"int64":  {"-9223372036854775808", "9223372036854775807"},
	"int128": {"-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"},
	"rune":   {"0", "1114111"},
}

// basic walks a predeclared type. A number whose fraction is zero is an integer in JSON, so it is passed to
// CUE as one, and `float` accepts only the others. Bytes are base64.
func (w *walker) basic(name string, x ast.Expr, at place) *node {
	n := &node{pos: at.pos}
	switch name {
	case "_":
	case "bool":
		n.types = []string{"boolean"}
	case "string", "number":
		n.types = []string{name}
	case "bytes":
		n.types, n.encoding, n.patterns = []string{"string"}, "base64", []string{canonicalBase64}
	case "int":
		n.types = []string{"integer"}
	case "float":
		n.types, n.not = []string{"number"}, []*node{{types: []string{"integer"}}}
		w.warnOnce(problem.UnsupportedConstr, Position(x.Pos()), at.path,
			"float takes no whole number, not even 1.0, which arrives as 1: write number to take all of them")
	default:
		limits, ok := integers[name]
		if !ok { // float32, float64
			return w.off(contract.LossBound, x, at)
		}
		n.types, n.minimum = []string{"integer"}, json.RawMessage(limits[0])
		if limits[1] != "" {
			n.maximum = json.RawMessage(limits[1])
		}
	}
	return n
}

func itoa(i int) string { return strconv.Itoa(i) }
