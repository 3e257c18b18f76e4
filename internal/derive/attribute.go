package derive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	cuejson "cuelang.org/go/encoding/json"
	"github.com/agnivade/levenshtein"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/problem"
)

// annotate adds the documentation and attributes of a field to its node. It doesn't modify n, which may be the
// node of a shared definition: it returns a copy if there is anything to add, else n.
//
// The attributes are @title("..."), @examples(v, ...) with values in JSON, @deprecated(), @secret() and
// @header("..."). All others are ignored, because they belong to other tools. A secret to which a field refers by name makes the
// field a secret, too (follow): a missed one would be disclosed.
func (w *walker) annotate(n *node, f *ast.Field, at place) *node {
	out := *n
	changed := false
	if d := w.withNotes(w.description(f, at), at); d != "" {
		out.description, changed = d, true
	}
	for _, a := range f.Attrs {
		changed = w.attribute(&out, a, at) || changed
	}
	if !changed {
		return n
	}
	return &out
}

var attributeNames = [...]string{"title", "examples", "deprecated", "secret", "header"}

func known(name string) bool {
	for _, n := range attributeNames {
		if n == name {
			return true
		}
	}
	return false
}

// attribute applies one attribute, and reports whether it has any effect.
func (w *walker) attribute(n *node, a *ast.Attribute, at place) bool {
	pos := Position(a.Pos())
	name, body := a.Split()
	bad := func(format string, args ...any) bool {
		w.refuse(problem.BadAttribute, pos, at.path, "@%s %s", name, fmt.Sprintf(format, args...))
		return false
	}
	contents := strings.TrimSpace(body)
	switch name {
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
			w.examples = append(w.examples, example{raw: b.Bytes(), node: n, below: at.below, path: at.path, pos: pos})
		}
	case "header":
		if json.Unmarshal([]byte(contents), &n.header) != nil || n.header == "" {
			return bad(`takes the name of a header behind Mcp-Param-: @header("Region")`)
		}
		w.headers = append(w.headers, header{n.header, at.path, pos})
	case "deprecated", "secret":
		if contents != "" {
			return bad("takes nothing: @%s()", name)
		}
		if name == "secret" {
			n.writeOnly, w.secrets = true, true
		} else {
			n.deprecated = true
		}
	default:
		for _, meant := range attributeNames {
			if levenshtein.ComputeDistance(strings.ToLower(name), meant) <= 2 {
				w.problems.Warnf(problem.BadAttribute, pos, at.path, "there is no attribute @%s; is @%s meant?", name, meant)
			}
		}
		return false
	}
	return true
}

// header is a @header of a field.
type header struct {
	name, path string
	pos        problem.Position
}

// tryHeaders refuses what clients of 2026-07-28 would not use the tool with, and a header that stands in no
// schema or would repeat a secret.
func (w *walker) tryHeaders(top *node, schema json.RawMessage) {
	if len(w.headers) == 0 {
		return
	}
	refuse := func(h header, format string, args ...any) {
		w.refuse(problem.BadAttribute, h.pos, h.path, "@header "+format, args...)
	}
	params, err := paramheader.Read(schema)
	var invalid *paramheader.Error
	for i, h := range w.headers {
		at := slices.IndexFunc(params, func(p paramheader.Param) bool { return p.Name == h.name })
		switch below := strings.TrimPrefix(h.path, w.base+"."); {
		case strings.HasSuffix(w.base, ".result"):
			refuse(h, "is for arguments, and this is of a result")
		case errors.As(err, &invalid) && (strings.Join(invalid.Path, ".") == below || i == len(w.headers)-1):
			refuse(h, "can't be kept: %v", invalid.Reason)
		case err == nil && at < 0:
			refuse(h, "can't be kept: the field is declared in several places or under a condition; declare it once, by a type alone")
		case err == nil && top.secretAt(params[at].Path):
			refuse(h, "would repeat a secret where proxies log it; take @header or @secret away")
		}
	}
}

// secretAt reports whether a value on the way of the names of properties is a secret.
func (n *node) secretAt(path []string) bool {
	for _, name := range path {
		i := n.index(name)
		if n.writeOnly || i < 0 {
			return true
		}
		n = n.properties[i].node
	}
	return n.writeOnly
}

// example is a value of @examples.
type example struct {
	raw   json.RawMessage
	node  *node
	below string
	path  string
	pos   problem.Position
}

// tryExamples refuses examples that a call could not contain: the schema refuses them, or CUE does where the
// schema is weaker than CUE.
func (w *walker) tryExamples(top *node, v cue.Value) {
	for _, e := range w.examples {
		shown := *e.node
		shown.examples = nil
		why := e.wrong(&node{
			types: []string{"object"}, closed: true, defs: top.defs,
			properties: []property{{name: "x", node: &shown}},
		})
		if why == "" && len(w.losses) > 0 {
			why = e.refused(v)
		}
		if why != "" {
			w.refuse(problem.BadAttribute, e.pos, e.path, "the example %s is invalid: %s", clip(string(e.raw)), why)
		}
	}
}

// wrong returns why an example does not match the schema; "" if it does. The schema has the one property x.
func (e example) wrong(schema *node) string {
	c, err := contract.New(contract.Spec{Schema: schema.json(), Strictness: contract.Closed, Fields: []contract.Field{{Name: "x"}}}, nil)
	if err != nil {
		return err.Error()
	}
	_, found, err := c.Check(context.Background(), json.RawMessage(`{"x":`+string(e.raw)+`}`))
	switch {
	case err != nil:
		return err.Error()
	case len(found) > 0:
		return "it is " + found[0].Got + ", and what is taken is " + found[0].Expected
	}
	return ""
}

// refused returns why CUE refuses an example at a field that can be looked up by path; "" if it accepts it.
func (e example) refused(v cue.Value) string {
	at := declared(v, strings.Split(e.below, "."))
	text := e.raw[0] == '"'
	if !at.Exists() || strings.Contains(e.path, "[") || e.node.encoded() && !text {
		return "" // CUE does not decode bytes from JSON by itself; the schema has checked their form
	}
	expr, err := cuejson.Extract("example", e.raw)
	if err != nil {
		return err.Error()
	}
	if text {
		expr = textExpr(at, unquote(e.raw))
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	if err := at.Unify(at.Context().BuildExpr(expr)).Validate(); err != nil {
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
