package shapes_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"

	"github.com/catalogd/catalogd/contract"
)

// An answer is what becomes of a call: refused, or run with the filled arguments as canonical JSON.
type answer struct {
	accepted bool
	filled   string
	// why is the reason of a refusal.
	why string
}

func (a answer) String() string {
	if a.accepted {
		return "accepted, runs " + a.filled
	}
	return "refused: " + a.why
}

func (a answer) same(b answer) bool { return a.accepted == b.accepted && a.filled == b.filled }

// imports declares those of CUE's packages that src uses.
func imports(src string) string {
	var out strings.Builder
	for _, p := range []string{"strings", "list", "struct", "math"} {
		if regexp.MustCompile(`\b` + p + `\.[A-Z]`).MatchString(src) {
			fmt.Fprintf(&out, "import %q\n", p)
		}
	}
	return out.String()
}

// definition is the shape in CUE alone: its args as the definition #A, to which a call's JSON is unified.
func (s shape) definition() string {
	args, defs := s.args.src, strings.Join(s.args.defs, "\n")
	top := "..."
	if s.strictness != contract.Open {
		top = ""
	}
	// strictness decides about the keys at the top, and not the author's `...`: closed means declared keys
	// only.
	for _, text := range []*string{&args, &defs} {
		if top == "" {
			*text = strings.ReplaceAll(*text, more+", ", "")
		}
		*text = strings.ReplaceAll(*text, more, top)
	}
	if s.strictness == contract.Open {
		args = "{" + args + ", ...}"
	}
	return imports(args+defs) + defs + "\n#A: " + args + "\n"
}

// A truth answers calls by CUE alone.
type truth struct {
	src   string
	calls []string
	outs  cue.Value
}

// newTruth writes the shape and its calls as one CUE file, in which outN is #A & the call number N.
func newTruth(s shape, calls []string) (t *truth, err error) {
	defer caught(&err)
	t = &truth{src: s.definition(), calls: calls}
	var all strings.Builder
	all.WriteString(t.src)
	for i, call := range calls {
		fmt.Fprintf(&all, "out%d: #A & %s\n", i, canonical(call))
	}
	if _, err := parser.ParseFile("x.cue", all.String()); err != nil {
		return nil, err
	}
	t.outs = cuecontext.New().CompileString(all.String())
	return t, nil
}

// caught turns a panic of CUE's evaluator into an error.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}

// item is what CUE v0.17.1 says of an item of a list that a closed struct embeds a validator for: an item is
// no field.
var item = regexp.MustCompile(`\.\d+: field not allowed`)

// ask is what CUE says of the call number i.
func (t *truth) ask(i int) (a answer, err error) {
	defer caught(&err)
	a = verdict(t.outs.LookupPath(cue.ParsePath(fmt.Sprint("out", i))))
	if item.MatchString(a.why) {
		err = fmt.Errorf("an item of a list is taken for a field: %s", a.why)
	}
	return a, err
}

// otherwise are CUE's answers to the same question in other words and orders, those that differ from a.
func (t *truth) otherwise(i int, a answer) (differ []string) {
	data := canonical(t.calls[i])
	ask := func(how string, of func(ctx *cue.Context) cue.Value) {
		var err error
		b := func() (b answer) {
			defer caught(&err)
			return verdict(of(cuecontext.New()))
		}()
		if err != nil {
			differ = append(differ, how+": "+err.Error())
		} else if !a.same(b) {
			differ = append(differ, how+": "+b.String())
		}
	}
	text := func(expr string) func(ctx *cue.Context) cue.Value {
		return func(ctx *cue.Context) cue.Value {
			return ctx.CompileString(t.src + expr).LookupPath(cue.ParsePath("out"))
		}
	}
	regular := strings.Replace(t.src, "\n#A: ", "\nargs: ", 1) + "#Args: args\nout: #Args & " + data
	ask("Value.Unify", func(ctx *cue.Context) cue.Value {
		return ctx.CompileString(t.src).LookupPath(cue.ParsePath("#A")).Unify(ctx.CompileString(data))
	})
	ask("data first", func(ctx *cue.Context) cue.Value {
		return ctx.CompileString(data).Unify(ctx.CompileString(t.src).LookupPath(cue.ParsePath("#A")))
	})
	ask("#A & data", text("out: #A & "+data))
	ask("data & #A", text("out: "+data+" & #A"))
	ask("out: #A, out: data", text("out: #A\nout: "+data))
	ask("#Args: args", func(ctx *cue.Context) cue.Value {
		return ctx.CompileString(regular).LookupPath(cue.ParsePath("out"))
	})
	return differ
}

// sound reports whether CUE has nothing against the args alone, as `cue vet -c=false` has not.
func (s shape) sound() (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	src := strings.Replace(s.definition(), "\n#A: ", "\nargs: ", 1)
	return cuecontext.New().CompileString(src).Validate() == nil
}

// validators are the calls that can only narrow what is beside them. So can !=null, and close what is in it.
var validators = regexp.MustCompile(`\b(list\.(MinItems|MaxItems|UniqueItems|Contains|MatchN|IsSortedStrings)|` +
	`struct\.(Min|Max)Fields|matchN|matchIf)\(`)

// opened reports whether a validator makes CUE take a key that it refuses without the validator. A definition
// is closed whatever stands beside it, and a validator can only narrow: where CUE v0.17.1 says otherwise, as
// for `[...{a!: int}] & list.MaxItems(5)`, it contradicts itself.
func (t *truth) opened(i int) bool {
	src := strings.ReplaceAll(strings.ReplaceAll(t.src, "!=null", "_"), "close(", "(")
	for at := validators.FindStringIndex(src); at != nil; at = validators.FindStringIndex(src) {
		end, depth := at[1], 1
		for ; depth > 0; end++ {
			switch src[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		src = src[:at[0]] + "_" + src[end:]
	}
	if src == t.src {
		return false
	}
	lines := strings.Split(src, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "import ") })
	src = strings.Join(lines, "\n")
	src = imports(src) + src + "out: #A & " + canonical(t.calls[i])
	v := cuecontext.New().CompileString(src).LookupPath(cue.ParsePath("out"))
	err := v.Validate(cue.Concrete(true), cue.Final())
	return err != nil && strings.Contains(errors.Details(err, nil), "not allowed")
}

func verdict(v cue.Value) answer {
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return answer{why: err.Error()}
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return answer{why: "export: " + err.Error()}
	}
	return answer{accepted: true, filled: canonical(string(b))}
}

// canonical is JSON with its keys in order and each number in its shortest form: 2.0 is 2.
func canonical(text string) string {
	v, err := decode(text)
	if err != nil {
		return "not JSON: " + text
	}
	return encode(shortest(v))
}

// decode reads JSON and keeps the digits of numbers.
func decode(text string) (v any, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func shortest(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return json.Number(r.Num().String())
		}
		mantissa, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		whole, fraction, _ := strings.Cut(mantissa, ".")
		e, _ := strconv.Atoi(exponent) // none is 0
		all := whole + fraction
		digits := strings.TrimRight(all, "0")
		unsigned := strings.TrimLeft(strings.TrimPrefix(digits, "-"), "0")
		sign := strings.Repeat("-", strings.Count(digits, "-"))
		return json.Number(fmt.Sprintf("%s%se%d", sign, unsigned, e-len(fraction)+len(all)-len(digits)))
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = shortest(v[i])
		}
		return v
	case object:
		out := object{}
		for k, member := range v {
			out[k] = shortest(member)
		}
		return out
	}
	return v
}
