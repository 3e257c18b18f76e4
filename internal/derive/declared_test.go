package derive_test

import (
	"context"
	b64 "encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// declared is one tool's arguments: its contract, with CUE for what the schema can't say, and what CUE says by itself.
type declared struct {
	text      string // the CUE of the arguments
	spec      contract.Spec
	positions map[string]problem.Position
	problems  problem.List
	whole     *contract.Contract // as it is served
	alone     *contract.Contract // the schema by itself
	closed    cue.Value          // the arguments as CUE closes them
}

// deriveTool derives the arguments of the tool x in the value of a package.
func deriveTool(root cue.Value, strictness contract.Strictness) (contract.Spec, map[string]problem.Position, problem.List) {
	return derive.Args(derive.NewPackage(root, nil), root.LookupPath(cue.ParsePath("tools.x.args")), root.LookupPath(cue.ParsePath("tools.x.#Args")), strictness, "tools.x.args")
}

// source is a file with the tool x. The arguments begin on line 6, the definitions stand on line 4.
func source(definitions, args string) string {
	return "package catalog\n\n" + imports(definitions+args) + "\n" + definitions + "\ntools: x: args: {\n" + args + "\n}\n"
}

func newDeclared(t testing.TB, definitions, args string, strictness contract.Strictness) *declared {
	t.Helper()
	return declaredIn(t, map[string]string{"tools.cue": source(definitions, args)}, args, strictness)
}

// declaredIn is the tool x of files.
func declaredIn(t testing.TB, files map[string]string, text string, strictness contract.Strictness) *declared {
	t.Helper()
	files["z.cue"] = "package catalog\n\n#Remainder: tools.x.args\n"
	if strictness == contract.Open {
		files["z.cue"] = "package catalog\n\n#Remainder: {tools.x.args, ...}\n"
	}
	root := build(t, files)
	d := &declared{text: text, closed: root.LookupPath(cue.ParsePath("#Remainder"))}
	d.spec, d.positions, d.problems = deriveTool(root, strictness)
	if d.problems.HasErrors() {
		return d
	}
	var err error
	d.alone, err = contract.New(d.spec, func(_ context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		return args, nil, nil
	})
	if err != nil {
		t.Fatalf("args {\n%s\n}\n%v\n%s", text, err, d.spec.Schema)
	}
	r, err := derive.NewRemainder(root, "#Remainder")
	if err != nil {
		t.Fatalf("args {\n%s\n}\n%v", text, err)
	}
	d.whole, err = contract.New(d.spec, func(_ context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
		filled, found, err := r.Check(args)
		if filled == nil {
			filled = args
		}
		return filled, found, err
	})
	if err != nil {
		t.Fatalf("args {\n%s\n}\n%v\n%s", text, err, d.spec.Schema)
	}
	return d
}

// judge says how the contract and CUE contradict each other about a call, and whether CUE accepts it. The contract as it is
// served accepts what CUE accepts and fills in what CUE fills in. Its schema accepts all of that, and more only where a
// loss says so. crash: CUE's evaluator has no answer.
func (d *declared) judge(call string) (wrong string, accepted, crash bool) {
	want, refused := d.truth(call)
	if errors.As(refused, &panicked{}) {
		return "", false, true
	}
	got, found, err := d.whole.Check(context.Background(), json.RawMessage(call))
	_, bySchema := check(d.alone, json.RawMessage(call))
	switch {
	case err != nil:
		wrong = fmt.Sprintf("the contract does not decide: %v", err)
	case refused == nil && bySchema != nil:
		wrong = fmt.Sprintf("CUE accepts it, the schema says %v", bySchema)
	case refused == nil && found != nil:
		wrong = fmt.Sprintf("CUE accepts it, the contract says %v", found)
	case refused != nil && found == nil:
		wrong = fmt.Sprintf("the contract accepts it, CUE says %v", refused)
	case refused != nil && bySchema == nil && d.spec.Remainder == nil:
		wrong = fmt.Sprintf("the schema accepts it without a loss, CUE says %v", refused)
	case refused == nil && !same(want, string(got.JSON())):
		wrong = fmt.Sprintf("CUE fills in %s, the contract %s", want, got.JSON())
	}
	if wrong != "" {
		wrong = "call " + call + ": " + wrong
	}
	return wrong, refused == nil, false
}

// agrees holds the contract and CUE to agree on calls, and reports how many of them CUE accepts.
func (d *declared) agrees(t testing.TB, calls ...string) (accepted int) {
	t.Helper()
	for _, call := range calls {
		wrong, ok, _ := d.judge(call)
		if wrong != "" {
			t.Errorf("args {\n%s\n}\nschema %s\nlosses %v\n%s", d.text, d.spec.Schema, dumped(d.spec.Losses), wrong)
			return accepted
		}
		if ok {
			accepted++
		}
	}
	return accepted
}

// panicked is a panic of CUE's evaluator.
type panicked struct{ reason any }

func (p panicked) Error() string { return fmt.Sprint("CUE panics: ", p.reason) }

// truth is what CUE says of a call by itself, and what it fills in. A call may not bring what CUE computes, and at the top it
// has the keys that strictness leaves.
func (d *declared) truth(call string) (filled string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked{r}
		}
	}()
	object, ok := normal(call).(map[string]any)
	if !ok {
		return "", errors.New("no object")
	}
	for key := range object {
		if f, ok := d.spec.Field(key); ok && f.Computed {
			return "", fmt.Errorf("%s is computed", key)
		}
	}
	brought := &ast.StructLit{}
	for key, v := range object {
		// float itself takes no whole number, as a warning says.
		floats := !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `[!?]?:.*\bfloat\b`).MatchString(d.text)
		brought.Elts = append(brought.Elts, &ast.Field{Label: ast.NewString(key), Value: expr(v, below(d.closed, cue.Str(key), cue.Str(key).Optional()), floats)})
	}
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	v := d.closed.Unify(d.closed.Context().BuildExpr(brought))
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return "", err
	}
	raw, err := v.MarshalJSON()
	return string(raw), err
}

// expr is JSON in CUE: base64 where CUE wants bytes and no text, and a whole number as a float where it takes
// floats and no integer. at is what CUE has in the place; it may not exist.
func expr(v any, at cue.Value, floats bool) ast.Expr {
	switch v := v.(type) {
	case nil:
		return ast.NewNull()
	case bool:
		return ast.NewBool(v)
	case string:
		if kind := at.IncompleteKind(); kind&cue.BytesKind != 0 && kind&cue.StringKind == 0 {
			// Go's decoder skips line breaks, which are no base64.
			if raw, err := b64.StdEncoding.Strict().DecodeString(v); err == nil && !strings.ContainsAny(v, "\r\n") {
				return &ast.BasicLit{Kind: token.STRING, Value: literal.Bytes.Quote(string(raw))}
			}
		}
		return ast.NewString(v)
	case json.Number:
		text, kind := string(v), token.INT
		if strings.ContainsAny(text, ".eE") {
			kind = token.FLOAT
		} else if floats && at.IncompleteKind()&cue.NumberKind == cue.FloatKind {
			text, kind = text+".0", token.FLOAT
		}
		if rest, negative := strings.CutPrefix(text, "-"); negative {
			return &ast.UnaryExpr{Op: token.SUB, X: ast.NewLit(kind, rest)}
		}
		return ast.NewLit(kind, text)
	case []any:
		list := &ast.ListLit{}
		for i, item := range v {
			list.Elts = append(list.Elts, expr(item, below(at, cue.Index(i), cue.AnyIndex), floats))
		}
		return list
	case map[string]any:
		object := &ast.StructLit{}
		for name, member := range v {
			object.Elts = append(object.Elts, &ast.Field{Label: ast.NewString(name), Value: expr(member, below(at, cue.Str(name), cue.Str(name).Optional()), floats)})
		}
		return object
	}
	panic("JSON is one of six kinds")
}

// below is what a value has under the first selector, else under the second.
func below(v cue.Value, first, second cue.Selector) cue.Value {
	if at := v.LookupPath(cue.MakePath(first)); at.Exists() {
		return at
	}
	return v.LookupPath(cue.MakePath(second))
}

// same reports whether two JSON texts say the same. 1.0 and 1 are one number.
func same(a, b string) bool { return gocmp.Equal(normal(a), normal(b)) }

// normal decodes JSON with every number in one form: digits where it is whole, else the shortest fraction.
func normal(doc string) any {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%s: %v", doc, err))
	}
	return normalNumbers(v)
}

func normalNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(string(x))
		if !ok {
			panic("no number: " + string(x))
		}
		if r.IsInt() {
			return json.Number(r.Num().String())
		}
		n, _ := r.FloatPrec()
		return json.Number(r.FloatString(n))
	case []any:
		for i := range x {
			x[i] = normalNumbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = normalNumbers(x[k])
		}
	}
	return v
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
