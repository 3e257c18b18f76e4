package derive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	cuejson "cuelang.org/go/encoding/json"
	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// annotate adds what a field's documentation and attributes tell about it. It leaves n itself alone, which may be the node
// of a definition that others share.
//
// The attributes are @title("..."), @examples(v, ...) with values in JSON, @deprecated() and @secret(). All others are of
// other tools. A secret that a field refers to by name is one, too: what is forgotten here is shown for ever.
func (w *walker) annotate(n *node, v cue.Value, at place) *node {
	out := *n
	changed := false
	if d := w.description(at); d != "" {
		out.description, changed = d, true
	}
	for _, a := range v.Attributes(cue.FieldAttr) {
		changed = w.attribute(&out, a, v, at) || changed
	}
	for _, a := range v.Attributes(cue.DeclAttr) {
		if known(a.Name()) {
			w.refuse(problem.BadAttribute, at.pos, at.path, "@%s stands inside the braces, where it says nothing: write it behind the closing one", a.Name())
		}
	}
	if target := cue.Dereference(v); target != v {
		for _, a := range target.Attributes(cue.FieldAttr) {
			if a.Name() == "secret" {
				out.writeOnly, changed = true, true
			}
		}
	}
	if !changed {
		return n
	}
	return &out
}

var attributeNames = [...]string{"title", "examples", "deprecated", "secret"}

func known(name string) bool {
	for _, n := range attributeNames {
		if n == name {
			return true
		}
	}
	return false
}

// attribute adds what one attribute says, and reports whether it says anything.
func (w *walker) attribute(n *node, a cue.Attribute, v cue.Value, at place) bool {
	pos := w.attributePosition(a, at)
	bad := func(format string, args ...any) bool {
		w.refuse(problem.BadAttribute, pos, at.path, "@%s %s", a.Name(), fmt.Sprintf(format, args...))
		return false
	}
	contents := strings.TrimSpace(a.Contents())
	switch a.Name() {
	case "title":
		if json.Unmarshal([]byte(contents), &n.title) != nil || strings.TrimSpace(n.title) == "" {
			return bad(`takes one text: @title("...")`)
		}
	case "examples":
		var examples []json.RawMessage
		if err := json.Unmarshal([]byte("["+contents+"]"), &examples); err != nil || len(examples) == 0 {
			return bad(`takes values in JSON: @examples("a", 5, {"b": [true]})`)
		}
		for _, e := range examples {
			var b bytes.Buffer
			if err := json.Compact(&b, e); err != nil {
				return bad("takes values in JSON: %v", err)
			}
			n.examples = append(n.examples, b.Bytes())
			w.examples = append(w.examples, example{raw: b.Bytes(), node: n, value: v, path: at.path, pos: pos})
		}
	case "deprecated", "secret":
		if contents != "" {
			return bad("takes nothing: @%s()", a.Name())
		}
		if a.Name() == "secret" {
			n.writeOnly = true
		} else {
			n.deprecated = true
		}
	default:
		for _, name := range attributeNames {
			if levenshtein.ComputeDistance(strings.ToLower(a.Name()), name) <= 2 {
				w.problems.Warnf(problem.BadAttribute, pos, at.path, "there is no attribute @%s; is @%s meant?", a.Name(), name)
			}
		}
		return false
	}
	return true
}

// marksSecret reports whether a field is marked as a secret, where there is only what was written and no value.
func marksSecret(f *ast.Field) bool {
	for _, a := range f.Attrs {
		if name, _ := a.Split(); name == "secret" {
			return true
		}
	}
	return false
}

// attributePosition looks an attribute up in what was written for the field: CUE's own API does not tell where it stands.
func (w *walker) attributePosition(a cue.Attribute, at place) problem.Position {
	text := fmt.Sprint(a)
	for _, s := range at.syntax {
		if f, ok := s.(*ast.Field); ok {
			for _, written := range f.Attrs {
				if written.Text == text {
					return Position(written.Pos())
				}
			}
		}
	}
	return at.pos
}

// example is a value that @examples shows.
type example struct {
	raw   json.RawMessage
	node  *node
	value cue.Value
	path  string
	pos   problem.Position
}

// tryExamples refuses those that a call could not give: the schema does not take them, or CUE does not where the schema
// says less than CUE.
func (w *walker) tryExamples(top *node) {
	for _, e := range w.examples {
		shown := *e.node
		shown.examples = nil
		if why := e.wrong(&node{
			types: []string{"object"}, closed: true, defs: top.defs,
			properties: []property{{name: "x", node: &shown}},
		}, len(w.losses) > 0); why != "" {
			w.refuse(problem.BadAttribute, e.pos, e.path, "the example %s is none: %s", clip(string(e.raw)), why)
		}
	}
}

// wrong says why an example does not fit; empty where it does. The schema has the one property x.
func (e example) wrong(schema *node, lossy bool) string {
	c, err := contract.New(contract.Spec{Schema: schema.json(), Strictness: contract.Closed, Fields: []contract.Field{{Name: "x"}}}, nil)
	if err != nil {
		return err.Error()
	}
	args, found, err := c.Check(context.Background(), json.RawMessage(`{"x":`+string(e.raw)+`}`))
	switch {
	case err != nil:
		return err.Error()
	case len(found) > 0:
		return "it is " + found[0].Got + ", and what is taken is " + found[0].Expected
	case !lossy:
		return ""
	}
	var value cue.Value
	var text string
	if json.Unmarshal(e.raw, &text) == nil && e.raw[0] == '"' {
		//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
		value = e.value.Context().BuildExpr(textExpr(e.value, text))
	} else if e.node.encoded() {
		return "" // CUE does not read the bytes inside from JSON by itself; the schema has checked their form
	} else {
		expr, err := cuejson.Extract("example", args.JSON())
		if err != nil {
			return err.Error()
		}
		//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
		value = e.value.Context().BuildExpr(expr).LookupPath(cue.ParsePath("x"))
	}
	if err := e.value.Unify(value).Validate(); err != nil {
		return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), e.path+": ")
	}
	return ""
}

// encoded reports whether n may hold bytes.
func (n *node) encoded() bool { return bytes.Contains(n.json(), []byte(`"contentEncoding":"base64"`)) }

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
