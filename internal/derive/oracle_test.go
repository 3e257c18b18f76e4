package derive_test

import (
	"cmp"
	"context"
	b64 "encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	cuejson "cuelang.org/go/encoding/json"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// TestMain fixes the structs that the properties are held for: a change that has nothing to do with them must not fail
// because of them. `go test -rapid.seed=7`, RAPID_SEED and `make fuzz` look further.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, fixed := range map[string][2]string{"rapid.seed": {"0", "20261130"}, "rapid.checks": {"100", fmt.Sprint(structsATheme)}} {
		if f := flag.Lookup(name); f.Value.String() == fixed[0] {
			if err := f.Value.Set(fixed[1]); err != nil {
				panic(err)
			}
		}
	}
	debug.SetGCPercent(400) // a small heap is collected all the time
	os.Exit(m.Run())
}

const (
	// structsATheme is how many structs each theme of the grammar makes.
	structsATheme = 75
	// valuesAStruct is how many different calls each gets at most.
	valuesAStruct = 160
)

// allowed are the reasons for which a generated struct may be refused, with what their problems say.
var allowed = []struct{ name, says string }{
	{"CUE conflict", "no value can be given here"},
	{"default refused", "the default does not satisfy"},
	{"names", "the argument's name"},
	{"a whole float", "is a float in CUE"},
	{"messages", "error()"},
}

// derived is the least share of generated structs that is derived.
const derived = 0.85

// The derived contract and CUE agree on every call: what the schema accepts, and what is filled in.
func TestOracle(t *testing.T) {
	t.Parallel()
	total := &tally{refused: map[string]int{}}
	t.Run("themes", func(t *testing.T) {
		for _, th := range themes() {
			t.Run(th.name, func(t *testing.T) {
				t.Parallel()
				count := &tally{refused: map[string]int{}}
				rapid.Check(t, func(r *rapid.T) { oracle(r, t, th, count) })
				t.Log(count)
				total.add(count)
			})
		}
	})
	t.Log(total)
	if n := len(total.refused); total.structs > 0 && float64(total.structs-total.refusals()) < derived*float64(total.structs) {
		t.Errorf("fewer than %v are derived; there are %d reasons", derived, n)
	}
	if total.pairs < 100_000 && total.structs >= structsATheme*len(themes()) {
		t.Errorf("only %d pairs", total.pairs)
	}
}

// FuzzDerive is the oracle over structs that the fuzzer looks for.
func FuzzDerive(f *testing.F) {
	all := themes()
	for seed := range uint64(2 * len(all)) { // a struct takes some hundred bytes of bits
		bits := make([]byte, 2<<10)
		for i, draw := 0, rand.New(rand.NewPCG(seed, 0)); i < len(bits); i++ {
			bits[i] = byte(draw.Uint32())
		}
		f.Add(bits)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(r *rapid.T) {
			oracle(r, t, all[rapid.IntRange(0, len(all)-1).Draw(r, "theme")], &tally{refused: map[string]int{}})
		})(t, data)
	})
}

// tally counts what a run has tried.
type tally struct {
	mu                                             sync.Mutex
	structs, lossy, pairs, accepted, looser, crash int
	refused                                        map[string]int
}

func (c *tally) add(o *tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.structs += o.structs
	c.lossy += o.lossy
	c.pairs += o.pairs
	c.accepted += o.accepted
	c.looser += o.looser
	c.crash += o.crash
	for name, n := range o.refused {
		c.refused[name] += n
	}
}

func (c *tally) refusals() (n int) {
	for _, times := range c.refused {
		n += times
	}
	return n
}

func (c *tally) String() string {
	var refused []string
	for _, name := range slices.Sorted(maps.Keys(c.refused)) {
		refused = append(refused, fmt.Sprintf("%s %d", name, c.refused[name]))
	}
	return fmt.Sprintf("%d structs, %d of them lossy; %d pairs, %d accepted, %d accepted by the schema alone, %d beyond CUE; refused: %s",
		c.structs, c.lossy, c.pairs, c.accepted, c.looser, c.crash, strings.Join(refused, ", "))
}

func oracle(r *rapid.T, t *testing.T, th theme, count *tally) {
	o := th.args(grammar{r})
	text := strings.Join(o.lines, "\n")
	s, problems := newSubject(t, text)
	s.bytes = th.name == "bytes"
	count.structs++
	if problems.HasErrors() {
		count.refused[reason(r, text, problems)]++
		return
	}
	if len(s.spec.Losses) > 0 {
		count.lossy++
	}
	if count.structs%8 == 0 {
		s.stable(r, t)
	}
	var worst string
	for _, doc := range s.calls(o.shape()) {
		v, ok := s.judge(doc)
		if !ok {
			count.crash++
			continue
		}
		count.pairs++
		if v.cue == nil {
			count.accepted++
		} else if v.schema == nil {
			count.looser++
		}
		if v.wrong != "" && (worst == "" || len(v.wrong) < len(worst)) {
			worst = v.wrong
		}
	}
	if worst != "" {
		r.Fatalf("args {\n%s\n}\nschema %s\nlosses %v\n%s", text, s.spec.Schema, s.spec.Losses, worst)
	}
}

// reason names why a struct was refused, or fails where nothing allows it.
func reason(r *rapid.T, text string, problems problem.List) string {
	for _, p := range problems {
		for _, a := range allowed {
			if p.Severity == problem.Error && strings.Contains(p.Message, a.says) {
				return a.name
			}
		}
	}
	r.Fatalf("args {\n%s\n}\nare refused: %v", text, problems)
	return ""
}

// subject is one struct of arguments: to CUE, and as a contract without its remainder.
type subject struct {
	text     string
	bytes    bool // its texts are bytes
	spec     contract.Spec
	contract *contract.Contract
	whole    *contract.Contract // with its remainder; nil where it has none
	value    cue.Value
	bare     cue.Value // without the bounds of lists and structs
	computed []string
	guarded  cue.Value // where there are guards: without the {...} of schema.cue, which would let in what none declares
}

func newSubject(t *testing.T, text string) (*subject, problem.List) {
	s := &subject{text: text, value: toolValue(t, text)}
	spec, _, problems := deriveTool(s.value, contract.Closed)
	if problems.HasErrors() {
		return s, problems
	}
	s.spec = spec
	alone := spec.Clone()
	alone.Losses, alone.Remainder = nil, nil
	alone.Fields = slices.DeleteFunc(alone.Fields, func(f contract.Field) bool {
		if f.Computed {
			s.computed = append(s.computed, f.Name)
		}
		return f.Computed
	})
	var err error
	if s.contract, err = contract.New(alone, nil); err != nil {
		t.Fatalf("args {\n%s\n}\n%s\n%v", text, spec.Schema, err)
	}
	if spec.Remainder != nil {
		r, err := derive.NewRemainder(build(t, map[string]string{"tools.cue": toolSource(text), "z.cue": "package catalog\n\n#Remainder: tools.x.args\n"}), "#Remainder")
		if err != nil {
			t.Fatalf("args {\n%s\n}\n%v", text, err)
		}
		rest := func(_ context.Context, args json.RawMessage) (json.RawMessage, []contract.Violation, error) {
			filled, found, err := r.Check(args)
			if filled == nil {
				filled = args
			}
			return filled, found, err
		}
		if s.whole, err = contract.New(spec, rest); err != nil {
			t.Fatalf("args {\n%s\n}\n%s\n%v", text, spec.Schema, err)
		}
	}
	if strings.Contains(text, "if ") {
		s.guarded = guardedValue(t, text)
	}
	s.bare = s.value
	if bounded.MatchString(text) {
		s.bare = toolValue(t, bounded.ReplaceAllString(text, ""))
	}
	return s, problems
}

// stable holds that the same args, in files of another order, make the same contract byte by byte.
func (s *subject) stable(r *rapid.T, t *testing.T) {
	again, _, _ := deriveTool(s.value, contract.Closed)
	elsewhere, _, _ := deriveTool(toolValueBackwards(t, s.text), contract.Closed)
	for i := range elsewhere.Losses {
		elsewhere.Losses[i].File = "tools.cue"
	}
	for _, other := range []contract.Spec{again, elsewhere} {
		if diff := gocmp.Diff(jsonOf(s.spec), jsonOf(other)); diff != "" {
			r.Fatalf("args {\n%s\n}\n%s", s.text, diff)
		}
	}
}

// calls are different calls, from what the shape takes for right to what is wrong all over.
func (s *subject) calls(args shape) []string {
	seen := map[string]bool{}
	draw := &sampler{Rand: rand.New(rand.NewPCG(1, 2))}
	args.text(draw)
	for i := range 2 * valuesAStruct {
		draw.wrong = []float64{0, 0, 0.05, 0.1, 0.3}[i%5]
		// The top is an object, whatever else goes wrong.
		if doc := args.text(draw); strings.HasPrefix(doc, "{") && !seen[doc] {
			seen[doc] = true
			if len(seen) == valuesAStruct {
				break
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// verdict is what CUE and the schema say to a call; wrong is how they contradict each other.
type verdict struct {
	cue, schema error
	wrong       string
}

// judge asks both. It is not ok where CUE's evaluator has no answer.
func (s *subject) judge(doc string) (v verdict, ok bool) {
	want, err := s.accepted(doc)
	if _, panicked := err.(crash); panicked {
		return v, false
	}
	v.cue = err
	got, found := check(s.contract, json.RawMessage(doc))
	if len(found) > 0 {
		v.schema = fmt.Errorf("%v", found)
	}
	if s.whole != nil {
		if v.wrong = s.judgeWhole(doc, want, v.cue); v.wrong != "" {
			return v, true
		}
	}
	switch {
	case v.cue == nil && v.schema != nil:
		v.wrong = fmt.Sprintf("call %s\nCUE accepts it\nschema: %v", doc, v.schema)
	case v.cue != nil && v.schema == nil && len(s.spec.Losses) == 0:
		v.wrong = fmt.Sprintf("call %s\nCUE: %v\nthe schema accepts it, without a loss", doc, v.cue)
	case v.cue == nil:
		if diff := gocmp.Diff(normal(want), s.comparable(normal(want), normal(string(got.JSON())))); diff != "" {
			v.wrong = fmt.Sprintf("call %s\nCUE fills in %s\ncontract     %s", doc, want, got.JSON())
		}
	}
	return v, true
}

// judgeWhole holds that schema and remainder together accept what CUE accepts, and fill in what CUE fills in.
func (s *subject) judgeWhole(doc, want string, refused error) string {
	got, found, err := s.whole.Check(context.Background(), json.RawMessage(doc))
	switch {
	case err != nil:
		return fmt.Sprintf("call %s\nthe remainder is not decided: %v", doc, err)
	case refused == nil && found != nil:
		return fmt.Sprintf("call %s\nCUE accepts it\ncontract with its remainder: %v", doc, found)
	case refused != nil && found == nil:
		return fmt.Sprintf("call %s\nCUE: %v\nthe contract accepts it with its remainder", doc, refused)
	case refused == nil:
		if diff := gocmp.Diff(normal(want), normal(string(got.JSON()))); diff != "" {
			return fmt.Sprintf("call %s\nCUE fills in %s\ncontract     %s", doc, want, got.JSON())
		}
	}
	return ""
}

// comparable is what the schema has filled in, with what only the remainder fills in: the computed arguments, and where
// there are losses whatever else CUE has and the schema lacks.
func (s *subject) comparable(cue, schema any) any {
	whole, isObject := cue.(map[string]any)
	part, both := schema.(map[string]any)
	if isObject && both {
		for key, v := range whole {
			if _, has := part[key]; !has && (len(s.spec.Losses) > 0 || slices.Contains(s.computed, key)) {
				part[key] = v
			} else if has && len(s.spec.Losses) > 0 {
				part[key] = s.comparable(v, part[key])
			}
		}
	}
	list, isList := cue.([]any)
	parts, both := schema.([]any)
	if isList && both && len(s.spec.Losses) > 0 && len(list) == len(parts) {
		for i := range list {
			parts[i] = s.comparable(list[i], parts[i])
		}
	}
	return schema
}

// accepted is what CUE makes of a call. It holds a call to be closed where CUE has forgotten that: at the top, which
// schema.cue leaves to strictness, and see bounded.
func (s *subject) accepted(doc string) (string, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &keys); err != nil {
		return "", err
	}
	for k := range keys {
		if _, ok := s.spec.Field(k); !ok {
			return "", fmt.Errorf("%s: not declared", k)
		}
	}
	if s.guarded.Exists() {
		if _, err := accepted(s.guarded, doc); err != nil && strings.Contains(err.Error(), "field not allowed") {
			return "", err
		}
	}
	if s.bare != s.value {
		if _, err := s.ask(s.bare, doc); err != nil && !strings.Contains(err.Error(), "incomplete value") {
			return "", err // the bound may be what decides between alternatives
		}
	}
	return s.ask(s.value, doc)
}

func (s *subject) ask(v cue.Value, doc string) (string, error) {
	if s.bytes {
		return acceptedBytes(v, doc)
	}
	return accepted(v, doc)
}

// bounded is a list or struct with a bound. CUE v0.17.1 forgets that the structs inside are closed where a list of a
// definition has a bound ([...{a?: int}] & list.MaxItems(2) takes {zz: 1}), so it is asked again without the bounds.
var bounded = regexp.MustCompile(` & (list|struct)\.\w+\(\d*\)`)

// crash is a panic of CUE's evaluator.
type crash struct{ error }

// accepted asks CUE. Numbers without a fraction are integers, as they are to JSON Schema.
func accepted(args cue.Value, doc string) (string, error) {
	return acceptedAs(args, doc, func(ast.Expr) {})
}

// acceptedBytes takes every text of a call that is base64 for bytes.
func acceptedBytes(args cue.Value, doc string) (string, error) {
	return acceptedAs(args, doc, func(expr ast.Expr) {
		ast.Walk(expr, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.Field:
				ast.Walk(x.Value, nil, func(n ast.Node) { base64Literal(n) })
			}
			return true
		}, nil)
	})
}

func base64Literal(n ast.Node) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		panic(err)
	}
	// Go's decoder skips line breaks, which are no base64.
	if raw, err := b64.StdEncoding.Strict().DecodeString(text); err == nil && !strings.ContainsAny(text, "\r\n") && lit.Value[0] == '"' {
		lit.Value = literal.Bytes.Quote(string(raw))
	}
}

func acceptedAs(args cue.Value, doc string, change func(ast.Expr)) (out string, err error) {
	if args.LookupPath(cue.ParsePath("tools")).Exists() {
		args = closedArgs(args)
	}
	defer func() {
		if r := recover(); r != nil {
			err = crash{fmt.Errorf("CUE panics: %v", r)}
		}
	}()
	expr, err := cuejson.Extract("call.json", []byte(jsonOf(normal(doc))))
	if err != nil {
		return "", err
	}
	change(expr)
	//lint:ignore SA1019 the values are of one context, which knows the definitions they refer to
	v := args.Unify(args.Context().BuildExpr(expr))
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return "", err
	}
	raw, err := v.MarshalJSON()
	return string(raw), err
}

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

// toolValue is a package with the tool x, and the definition #Remainder of its arguments as CUE closes them.
func toolValue(t *testing.T, text string) cue.Value {
	return build(t, map[string]string{"tools.cue": toolSource(text), "z.cue": "package catalog\n\n#Remainder: tools.x.args\n"})
}

// closedArgs are the arguments in the value of a package as CUE closes them.
func closedArgs(root cue.Value) cue.Value {
	if v := root.LookupPath(cue.ParsePath("#Remainder")); v.Exists() {
		return v
	}
	return root.LookupPath(cue.ParsePath("tools.x.#Args"))
}

func toolSource(text string) string {
	return "package catalog\n\n" + imports(definitions+text) + "\n" + definitions + "\ntools: x: args: {\n" + text + "\n}\n"
}

// guardedValue is what a definition of the same fields takes, for which a field under a guard is only declared while the
// guard holds.
func guardedValue(t *testing.T, text string) cue.Value {
	source := "package catalog\n\n" + imports(definitions+text) + "\n" + definitions + "\n#Guarded: {\n" + text + "\n}\n"
	return build(t, map[string]string{"tools.cue": source}).LookupPath(cue.ParsePath("#Guarded"))
}

// toolValueBackwards has the definitions in a file of their own, which is read last.
func toolValueBackwards(t *testing.T, text string) cue.Value {
	return build(t, map[string]string{
		"a.cue": "package catalog\n\n" + imports(text) + "\n\ntools: x: args: {\n" + text + "\n}\n",
		"z.cue": "package catalog\n\n" + imports(definitions) + "\n" + definitions + "\n",
	})
}

func decoded(t *testing.T, s string) any {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
