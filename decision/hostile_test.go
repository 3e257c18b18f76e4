package decision

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

const mega = 1 << 20

// How much work a built-in may do: one of promptBuiltins at all, any other after it is cancelled, which is
// done after some work. These are processor times, as machines are busy.
const (
	promptWork  = time.Second
	cancelAfter = 100 * time.Millisecond
	cancelWork  = 10 * time.Second
)

// TestHostile calls every built-in that a policy may call with arguments that are meant to keep it busy, of
// about 1 MB: each ends on its own in a moment, or soon after it is cancelled.
func TestHostile(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("it takes two minutes of processor time, and is about how much work a built-in does: `make test` runs it without the race detector")
	}
	for _, name := range append(slices.Clone(allowedBuiltins), "internal.member_2", "internal.member_3", "internal.template_string") {
		t.Run(name, func(t *testing.T) {
			builtin, limit := ast.BuiltinMap[name], cancelWork
			if builtin == nil || topdown.GetBuiltin(name) == nil {
				if name != "eq" && name != "assign" && name != "print" { // these are no functions
					t.Fatal("there is no such function")
				}
				return
			}
			if slices.Contains(fastBuiltins, name) {
				limit = promptWork
			}
			var of [][]*ast.Term
			for _, arg := range builtin.Decl.FuncArgs().Args {
				of = append(of, hostile(arg))
			}
			for _, args := range append(nasty(name), everyCombination(of)...) {
				if took := invoked(builtin, args); took > limit {
					var shown []string
					for _, a := range args {
						text := a.String()
						shown = append(shown, fmt.Sprintf("%s (%d)", text[:min(len(text), 60)], len(text)))
					}
					t.Errorf("it worked %s, want at most %s: %s", took, limit, strings.Join(shown, ", "))
				}
			}
		})
	}
}

// hostileStrings are about 1 MB each, or small and meant to blow up.
var hostileStrings = []string{
	"", "a", "*", "%999999999d%999999.999999f%v", strings.Repeat("%[1]999999d", mega/11), strings.Repeat("%[1]*[1]d", mega/9), "1e1000000", "-1e-1000000", "(a*)*b", "(((((a{30}){30}){30})))", "**/**/**/{a,b,*}**",
	strings.Repeat("a", mega),
	strings.Repeat("ab", mega/2),
	strings.Repeat("9", mega),
	strings.Repeat("1.", mega/2),
	strings.Repeat("é", mega/2),
	strings.Repeat("%s", mega/2),
	strings.Repeat("[", mega),
	strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
	"[" + strings.Repeat("1,", mega/2) + "1]",
	strings.Repeat("- ", mega/2),
	strings.Repeat("k: &a\n", mega/6),
	"a: &a [x,x,x,x,x,x,x,x,x]\n" + func() (s string) {
		for c := 'b'; c < 'q'; c++ {
			p := string(c - 1)
			s += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 8) + "*" + p + "]\n"
		}
		return s
	}(),
	strings.Repeat("(a|", mega/4) + "a" + strings.Repeat(")", mega/4),
	strings.Repeat("a?", mega/4) + strings.Repeat("a", mega/2),
	strings.Repeat("{a,", mega/4) + "b" + strings.Repeat("}", mega/4),
	strings.Repeat("*a", mega/2),
	strings.Repeat("a/", mega/2),
	strings.Repeat("%41", mega/3),
	strings.Repeat("a=b&", mega/4),
	strings.Repeat("1h", mega/2),
	strings.Repeat("2006 Jan ", mega/9),
	"1.0.0-" + strings.Repeat("a.", mega/2) + "a",
	strings.Repeat(" ", mega),
	strings.Repeat("\x00", mega),
	base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", mega*3/4))),
}

// hostileNumbers are as long as numbers can be.
var hostileNumbers = []json.Number{
	"0", "1", "-1", "0.5", "100000000", "9223372036854775807", "1e999", "-1e999", "1e-999",
	json.Number(strings.Repeat("9", shape.MaxDigits)), json.Number("0." + strings.Repeat("0", shape.MaxDigits-3) + "1"),
}

// hostileLists are lists, which are sets where a function wants those.
func hostileLists() (lists [][]*ast.Term) {
	times := func(n int, of func(int) *ast.Term) []*ast.Term {
		list := make([]*ast.Term, n)
		for i := range list {
			list[i] = of(i)
		}
		return list
	}
	nested := ast.StringTerm("x")
	for range 9000 {
		nested = ast.ArrayTerm(nested)
	}
	return [][]*ast.Term{
		nil,
		{ast.StringTerm("a")},
		{nested},
		times(100_000, func(i int) *ast.Term { return ast.IntNumberTerm(i) }),
		times(100_000, func(i int) *ast.Term { return ast.StringTerm(fmt.Sprint("a", i)) }),
		times(1000, func(i int) *ast.Term { return ast.StringTerm(strings.Repeat("a", mega/1000) + fmt.Sprint(i)) }),
		times(2, func(i int) *ast.Term { return ast.StringTerm(strings.Repeat("a", mega)) }),
		times(len(hostileNumbers), func(i int) *ast.Term { return ast.NewTerm(ast.Number(hostileNumbers[i])) }),
		times(1000, func(i int) *ast.Term {
			return ast.NewTerm(ast.Number(strings.Repeat("9", shape.MaxDigits-4) + fmt.Sprint(1000+i)))
		}),
		times(10_000, func(i int) *ast.Term { return ast.ArrayTerm(ast.IntNumberTerm(i), ast.StringTerm("b")) }),
		times(5_000, func(i int) *ast.Term {
			return ast.ObjectTerm(ast.Item(ast.StringTerm(fmt.Sprint("k", i)), ast.IntNumberTerm(i)))
		}),
		times(1_000, func(i int) *ast.Term {
			return ast.SetTerm(times(50, func(k int) *ast.Term { return ast.IntNumberTerm(i * k) })...)
		}),
		times(10_000, func(i int) *ast.Term { return ast.StringTerm("a/b/" + fmt.Sprint(i)) }),
		times(10_000, func(i int) *ast.Term {
			return ast.ObjectTerm(ast.Item(ast.StringTerm("op"), ast.StringTerm("add")), ast.Item(ast.StringTerm("path"), ast.StringTerm("/0")), ast.Item(ast.StringTerm("value"), ast.StringTerm("x")))
		}),
		times(10_000, func(i int) *ast.Term {
			return ast.ObjectTerm(ast.Item(ast.StringTerm("op"), ast.StringTerm("copy")), ast.Item(ast.StringTerm("from"), ast.StringTerm("")), ast.Item(ast.StringTerm("path"), ast.StringTerm("/0")))
		}),
		times(10_000, func(i int) *ast.Term { return ast.StringTerm(fmt.Sprintf("10.%d.%d.0/24", i/256%256, i%256)) }),
	}
}

// hostileObjects are objects, among them graphs whose nodes are all joined.
func hostileObjects() (objects []*ast.Term) {
	graph := func(n int, set bool) *ast.Term {
		nodes := make([]*ast.Term, n)
		for i := range nodes {
			nodes[i] = ast.StringTerm(fmt.Sprint("a", i))
		}
		nodes[0] = ast.StringTerm("a")
		to := ast.ArrayTerm(nodes...)
		if set {
			to = ast.SetTerm(nodes...)
		}
		o := ast.NewObject()
		for _, from := range nodes {
			o.Insert(from, to)
		}
		return ast.NewTerm(o)
	}
	large, texts, deep := ast.NewObject(), ast.NewObject(), ast.ObjectTerm()
	for i := range 50_000 {
		large.Insert(ast.StringTerm(fmt.Sprint("k", i)), ast.IntNumberTerm(i))
	}
	for i := range 1000 {
		texts.Insert(ast.StringTerm(strings.Repeat("a", i)), ast.StringTerm(strings.Repeat("a", 1000)))
	}
	for range 9000 {
		deep = ast.ObjectTerm(ast.Item(ast.StringTerm("a"), deep))
	}
	empty := ast.ObjectTerm(ast.Item(ast.StringTerm(""), ast.StringTerm(strings.Repeat("b", mega))))
	return []*ast.Term{ast.ObjectTerm(), graph(14, false), graph(14, true), graph(300, false), ast.NewTerm(large), ast.NewTerm(texts), deep, empty}
}

// hostile are the arguments to try for a parameter of a type.
func hostile(t types.Type) (all []*ast.Term) {
	any := types.Compare(t, types.A) == 0
	fits := func(other types.Type) bool { return any || types.Compare(t, other) == 0 || isAnyOf(t, other) }
	values := everyHostile()
	if fits(types.S) {
		all = append(all, values.strings...)
	}
	if fits(types.N) {
		all = append(all, values.numbers...)
	}
	if fits(types.B) {
		all = append(all, ast.BooleanTerm(false))
	}
	array, set, object := holdsTo(t)
	if any || array {
		all = append(all, values.arrays...)
	}
	if any || set {
		all = append(all, values.sets...)
	}
	if any || object {
		all = append(all, values.objects...)
	}
	return all
}

type hostileValues struct{ strings, numbers, arrays, sets, objects []*ast.Term }

var everyHostile = sync.OnceValue(func() (v hostileValues) {
	for _, s := range hostileStrings {
		v.strings = append(v.strings, ast.StringTerm(s))
	}
	for _, n := range hostileNumbers {
		v.numbers = append(v.numbers, ast.NewTerm(ast.Number(n)))
	}
	for _, list := range hostileLists() {
		v.arrays = append(v.arrays, ast.ArrayTerm(list...))
		v.sets = append(v.sets, ast.SetTerm(list...))
	}
	v.objects = hostileObjects()
	return v
})

// nasty are arguments that one built-in takes badly.
func nasty(name string) (all [][]*ast.Term) {
	s := func(parts ...string) (args []*ast.Term) {
		for _, p := range parts {
			args = append(args, ast.StringTerm(p))
		}
		return args
	}
	text := strings.Repeat("a", mega)
	patterns := []string{"(a*)*b", "(a|aa)+$", "a.*z|a", "(.*)(.*)(.*)(.*)z", strings.Repeat("a?", 400) + strings.Repeat("a", 400), "((a{10}){10}){9}z", "[a-z]+[a-z]+[a-z]+@"}
	switch name {
	case "regex.match":
		for _, p := range patterns {
			all = append(all, s(p, text), s(p, text[:100_000]), s(p, text[:10_000]))
		}
	case "regex.split", "regex.find_n", "regex.find_all_string_submatch_n":
		for _, p := range patterns {
			for n := 1000; n <= mega; n *= 4 {
				args := s(p, text[:n])
				if name != "regex.split" {
					args = append(args, ast.IntNumberTerm(-1))
				}
				all = append(all, args)
			}
		}
	case "regex.replace":
		for _, p := range patterns {
			for n := 1000; n <= mega; n *= 4 {
				all = append(all, s(text[:n], p, "$0$0"))
			}
		}
	case "json.patch":
		op := func(of ...string) *ast.Term {
			o := ast.NewObject()
			for i := 0; i < len(of); i += 2 {
				o.Insert(ast.StringTerm(of[i]), ast.StringTerm(of[i+1]))
			}
			return ast.NewTerm(o)
		}
		for _, n := range []int{4, 100} {
			var copies, adds []*ast.Term
			for i := range n {
				copies = append(copies, op("op", "copy", "from", "", "path", fmt.Sprint("/k", i)))
				adds = append(adds, op("op", "add", "path", "/0", "value", "x"))
			}
			for _, to := range append(everyHostile().arrays, everyHostile().objects...) {
				all = append(all, []*ast.Term{to, ast.ArrayTerm(copies...)}, []*ast.Term{to, ast.ArrayTerm(adds...)})
			}
		}
	case "glob.match":
		for _, p := range []string{strings.Repeat("*a", 30) + "b", strings.Repeat("**a", 30) + "b", strings.Repeat("{a,aa}", 30) + "b", strings.Repeat("?*", 30) + "b", strings.Repeat("{*a,*b}", 12) + "c"} {
			for n := 100; n <= mega; n *= 10 {
				all = append(all, append(s(p), ast.ArrayTerm(), ast.StringTerm(text[:n])))
			}
		}
	case "replace":
		for n := 100; n <= mega; n *= 10 {
			all = append(all, s(text, text[:n], "b"), s(text, "b"+text[:n], "c"), s(text, text[:n]+"b", "c"))
		}
	case "strings.replace_n":
		for n := 100; n <= mega; n *= 10 {
			for _, old := range []string{text[:n], "b" + text[:n], text[:n] + "b"} {
				all = append(all, []*ast.Term{ast.ObjectTerm(ast.Item(ast.StringTerm(old), ast.StringTerm("c")), ast.Item(ast.StringTerm(old+"x"), ast.StringTerm("d"))), ast.StringTerm(text)})
			}
		}
	}
	return all
}

func isAnyOf(t, other types.Type) bool {
	of, ok := t.(types.Any)
	if !ok {
		return false
	}
	for _, each := range of {
		if types.Compare(each, other) == 0 {
			return true
		}
	}
	return false
}

func holdsTo(t types.Type) (array, set, object bool) {
	switch t := t.(type) {
	case types.Any:
		for _, each := range t {
			a, s, o := holdsTo(each)
			array, set, object = array || a, set || s, object || o
		}
	case *types.NamedType:
		return holdsTo(t.Type)
	case *types.Array:
		array = true
	case *types.Set:
		set = true
	case *types.Object:
		object = true
	}
	return array, set, object
}

// everyCombination is argument lists: all of them up to some, else a part of them, with each value of each parameter.
func everyCombination(of [][]*ast.Term) (all [][]*ast.Term) {
	product := 1
	for _, values := range of {
		product *= max(1, len(values))
	}
	const most = 30
	step := 1
	if product > most {
		step = product/most | 1
	}
	for i := 0; i < product; i += step {
		args := make([]*ast.Term, len(of))
		for n, rest := 0, i; n < len(of); n++ {
			args[n] = of[n][rest%len(of[n])]
			rest /= len(of[n])
		}
		all = append(all, args)
	}
	return all
}

// ended is when a built-in ended: how much work it did, all in all and since it was to end.

// invoked is how much work a call is, which is cancelled after a while.
func invoked(b *ast.Builtin, args []*ast.Term) (work time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := threadClock()
	begin := clock()
	defer func() {
		_ = recover() // an evaluation that panics is an error
		work = clock() - begin
	}()
	bctx := topdown.BuiltinContext{Location: ast.NewLocation(nil, "x.rego", 1, 1)}
	if !b.CanSkipBctx {
		bctx.Context, bctx.Capabilities = context.Background(), capabilities()
		bctx.Cancel = &evaluation{ctx: context.Background(), budget: cancelAfter, begin: time.Now()}
	}
	_ = topdown.GetBuiltin(b.Name)(bctx, args, func(*ast.Term) error { return nil })
	return 0
}
