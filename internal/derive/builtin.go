package derive

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// The builtins of time and uuid parse text with Go's parsers, which accept more than the standards behind
// JSON Schema's formats, so each is expressed as what Go accepts.
const (
	// dateTime leaves what a pattern can't express, the days of the months, to the format.
	dateTime = contract.PatternDateTime
	// duration also accepts durations over 292 years.
	duration = contract.PatternDuration
	anUUID   = contract.PatternUUID
)

// layouts are the time layouts for which CUE has names.
var layouts = map[string]string{"time.RFC3339": time.RFC3339, "time.RFC3339Nano": time.RFC3339Nano, "time.RFC3339Date": time.DateOnly}

// callee returns the builtin that a call calls, such as strings.MinRunes; "" for any other function.
func (w *walker) callee(x *ast.CallExpr) string {
	if t := w.refer(x.Fun); t.builtin != "" {
		return t.builtin
	}
	if id, ok := x.Fun.(*ast.Ident); ok && id.Node == nil {
		return id.Name
	}
	return ""
}

// isFunction reports whether x is a function of a standard CUE package. Anything else that can be called has
// no such name.
func (w *walker) isFunction(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	spec := importOf(sel.X)
	t := w.refer(sel)
	if spec == nil || t.builtin == "" {
		return true
	}
	text := "function " + spec.Path.Value + t.builtin
	if w.pkg.proven.has(text) {
		return true
	}
	_, name, _ := strings.Cut(t.builtin, ".")
	v := cuecontext.New().CompileString("import p " + spec.Path.Value + "\nf: p." + name)
	if v.LookupPath(cue.ParsePath("f")).Err() != nil {
		return false
	}
	w.pkg.proven.add(text)
	return true
}

// validator walks a call that constrains a scalar, or counts a list or struct; it returns nil for any other
// call.
func (w *walker) validator(x *ast.CallExpr, at place) *node {
	name := w.callee(x)
	if !w.isFunction(x.Fun) {
		w.refuse(problem.CUEReference, Position(x.Pos()), at.path, "there is no function %s; correct the name", written(x.Fun))
		return &node{lossy: true, pos: at.pos}
	}
	switch {
	case counts(name):
		return w.countOf(x, at)
	case name == "list.MatchN" && len(x.Args) == 2:
		w.eager(name, x, at)
		return nil
	case name == "error":
		w.lose(contract.LossMessage, at, Position(x.Pos()), "%s", written(x))
		return &node{never: true, lossy: true, pos: at.pos}
	}
	return w.builtin(name, x.Args, x, at)
}

// builtin walks a validator of scalars, called or only named; it returns nil for anything else.
func (w *walker) builtin(name string, arguments []ast.Expr, x ast.Expr, at place) *node {
	n := &node{types: []string{"string"}, pos: at.pos}
	var first value
	known := false
	if len(arguments) == 1 {
		first, known = w.literalOf(arguments[0], at)
		if layout, ok := layouts[w.refer(arguments[0]).builtin]; ok {
			first, known = value{raw: quote(layout), kind: token.STRING}, true
		}
	} else if len(arguments) > 1 {
		return nil
	}
	text := known && first.kind == token.STRING && !first.bytes
	switch name {
	case "strings.MinRunes", "strings.MaxRunes":
		size := w.size(first, known, name, x, at)
		if size == nil {
			return nil
		}
		if name == "strings.MinRunes" {
			n.minLength = size
		} else {
			n.maxLength = size
		}
	case "strings.HasPrefix", "strings.HasSuffix", "strings.Contains":
		form := map[string]string{"strings.HasPrefix": "^%s", "strings.HasSuffix": "%s$", "strings.Contains": "%s"}[name]
		if !text {
			return nil
		}
		re, err := portable(fmt.Sprintf(form, regexp.QuoteMeta(unquote(first.raw))))
		if err != nil {
			return nil
		}
		n.patterns = []string{re}
	case "time.Time":
		n.format, n.patterns = "date-time", []string{dateTime}
	case "time.Format":
		switch {
		case !text:
			return nil
		case slices.Contains([]string{time.RFC3339, time.RFC3339Nano}, unquote(first.raw)):
			n.format, n.patterns = "date-time", []string{dateTime}
		case unquote(first.raw) == time.DateOnly:
			n.format = "date"
		default:
			return nil
		}
	case "time.Duration":
		n.patterns, n.lossy = []string{duration}, true
		w.lose(contract.LossFormat, at, Position(x.Pos()), "time.Duration() takes no more than 2562047h47m16.854775807s")
	case "uuid.Valid":
		n.patterns = []string{anUUID}
	case "net.IPv4", "net.IPv6", "net.IP", "net.IPCIDR":
		if len(arguments) > 0 {
			return nil
		}
		w.lose(contract.LossFormat, at, Position(x.Pos()), "%s() takes addresses as Go reads them", name)
		n.lossy = true
		n.patterns = []string{map[string]string{
			"net.IPv4": contract.PatternIP, "net.IPv6": contract.PatternIPv6, "net.IP": contract.PatternIP, "net.IPCIDR": contract.PatternCIDR,
		}[name]}
		if name != "net.IPCIDR" { // or the bytes of the address
			n.types = []string{"array", "string"}
		}
	default:
		return nil
	}
	return n
}

func unquote(raw json.RawMessage) (text string) {
	if err := json.Unmarshal(raw, &text); err != nil {
		panic("derive: what was quoted is unquoted: " + err.Error())
	}
	return text
}

// size returns the single argument of a validator such as MinRunes(1): a non-negative integer.
func (w *walker) size(v value, known bool, name string, x ast.Expr, at place) *int64 {
	if !known {
		return nil
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil || v.kind != token.INT || n < 0 {
		w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path, "%s takes one whole number that is not negative", name)
		return nil
	}
	return &n
}

// counts reports whether a builtin counts the items of a list or the fields of a struct.
func counts(name string) bool {
	switch name {
	case "list.MinItems", "list.MaxItems", "list.UniqueItems", "list.Contains", "struct.MinFields", "struct.MaxFields":
		return true
	}
	return false
}

// eager reports a validator of lists that CUE applies to the empty list, before a call has filled it.
func (w *walker) eager(name string, x ast.Expr, at place) {
	if !at.lazy && w.pkg.root.Err() != nil { // not if no list literal is written with it, or a guard is undecided
		w.refuse(problem.UnsupportedConstr, Position(x.Pos()), at.path,
			"CUE applies %s before a call has filled the list, and then refuses every call: make the argument optional, or check it in a hidden field, as in _check: true & %s(%s, ...)",
			name, name, strings.TrimPrefix(at.below[strings.LastIndexByte(at.below, '.')+1:], "."))
	}
}

// countOf walks such a builtin without a list or struct.
func (w *walker) countOf(x *ast.CallExpr, at place) *node {
	name := w.callee(x)
	n := &node{types: []string{"array"}, pos: at.pos, counter: true}
	if name[0] == 's' {
		n.types = []string{"object"}
	}
	lost := func() *node {
		w.lose(contract.LossValidator, at, Position(x.Pos()), "%s", written(x))
		n.lossy = true
		return n
	}
	var size *int64
	if name != "list.UniqueItems" {
		if len(x.Args) != 1 {
			return lost()
		}
		v, known := w.literalOf(x.Args[0], at)
		if name == "list.Contains" {
			w.eager(name, x, at)
			if !known || v.bytes || v.kind == token.FLOAT {
				return lost()
			}
			n.contains = []*node{{enum: []json.RawMessage{v.raw}}}
			return n
		}
		if size = w.size(v, known, name, x, at); size == nil {
			return lost()
		}
	} else if len(x.Args) > 0 {
		return lost()
	}
	switch name {
	case "list.MinItems":
		n.minItems = size
	case "list.MaxItems":
		n.maxItems = size
	case "list.UniqueItems":
		n.unique = true
	case "struct.MinFields":
		n.minProperties = size
	case "struct.MaxFields":
		n.maxProperties = size
	}
	return n
}

// counted joins a list or struct with the validators that count its items or fields. CUE counts after
// defaults are filled in, and no longer closes the structs that are written out in such a list.
func (w *walker) counted(n *node, calls []*ast.CallExpr, at place) *node {
	if len(calls) == 0 {
		return n
	}
	out := *n
	if n.ref != nil {
		out = node{also: []*node{n}, types: w.kinds(n), pos: at.pos, lossy: n.lossy}
	}
	for _, call := range calls {
		c := w.countOf(call, at)
		if len(out.types) == 0 || !slices.Equal(out.types, c.types) {
			return w.off(contract.LossValidator, call, at)
		}
		out.lossy = out.lossy || c.lossy
		out.minItems, out.maxItems = larger(out.minItems, c.minItems), smaller(out.maxItems, c.maxItems)
		out.minProperties, out.maxProperties = larger(out.minProperties, c.minProperties), smaller(out.maxProperties, c.maxProperties)
		out.unique = out.unique || c.unique
		out.contains = append(slices.Clone(out.contains), c.contains...)
		fills := n.fills(map[*definition]bool{}) || len(n.derived) > 0
		if fills && (c.unique || c.minProperties != nil || c.maxProperties != nil) {
			w.lose(contract.LossValidator, at, Position(call.Pos()), "%s counts what CUE fills in", written(call))
			out.lossy, out.unique, out.minProperties, out.contains = true, n.unique, n.minProperties, n.contains
		}
		if c.minProperties != nil || c.maxProperties != nil {
			for _, p := range out.properties { // a field with its own value is counted, and a call need not send it
				if p.fallback != nil && !out.lossy {
					w.lose(contract.LossValidator, at, Position(call.Pos()), "%s counts what CUE fills in", written(call))
					out.lossy, out.minProperties = true, n.minProperties
				}
			}
		}
	}
	if slices.Equal(out.types, []string{"array"}) && (n.ref != nil || !out.itemsKept()) {
		w.lose(contract.LossValidator, at, Position(calls[0].Pos()), "CUE leaves the structs in a list with %s open: write their definition's name as the item", written(calls[0]))
		w.warnOnce(problem.UnsupportedConstr, Position(calls[0].Pos()), at.path,
			"CUE leaves the structs in a list with %s open, so a misspelt key in an item passes: declare the item as a definition, and write its name as the item", written(calls[0]))
		out.lossy, out.also = true, nil
		out.leaveOpen()
	}
	return &out
}

// leaveOpen opens the structs in a list, and removes what follows from their being closed.
func (n *node) leaveOpen() {
	if n.items != nil {
		n.items = n.items.opened()
	}
	n.prefix = slices.Clone(n.prefix)
	for i, p := range n.prefix {
		n.prefix[i] = p.opened()
	}
}

// opened returns what certainly holds for n if CUE doesn't close the structs in it.
func (n *node) opened() *node {
	if n.ref != nil {
		return &node{lossy: true, pos: n.pos}
	}
	out := *n
	out.closed, out.guards, out.lossy, out.definition = false, nil, true, false
	each := func(properties []property) []property {
		properties = slices.Clone(properties)
		for i, p := range properties {
			properties[i].node = p.node.opened()
		}
		return properties
	}
	out.properties, out.patternProperties = each(n.properties), each(n.patternProperties)
	for _, below := range []*[]*node{&out.anyOf, &out.also} {
		*below = slices.Clone(*below)
		for i, a := range *below {
			(*below)[i] = a.opened()
		}
	}
	if n.additional != nil {
		out.additional = n.additional.opened()
	}
	out.leaveOpen()
	return &out
}

// itemsKept reports whether the items of a list keep their meaning together with a validator: no struct in
// them is written out.
func (n *node) itemsKept() bool {
	kept := func(m *node) bool {
		return m == nil || m.definition || !m.composite() || m.empty() && !m.lossy
	}
	return kept(n.items) && !slices.ContainsFunc(n.prefix, func(m *node) bool { return !kept(m) })
}

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smaller(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
