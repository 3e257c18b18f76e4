package derive_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/catalogd/catalogd/contract"
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
	structsATheme = 40
	// valuesAStruct is how many different calls each gets at most.
	valuesAStruct = 160
)

// allowed are the reasons for which a generated struct may be refused, with what their problems say.
var allowed = []struct{ name, says string }{
	{"CUE conflict", "no value can be given here"},
	{"a list that CUE checks before a call", "before a call has filled the list"},
}

// derived is the least share of generated structs that is derived.
const derived = 0.95

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
	if total.pairs < 50_000 && total.structs >= structsATheme*len(themes()) {
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
	mu                                     sync.Mutex
	structs, lossy, pairs, accepted, crash int
	refused                                map[string]int
}

func (c *tally) add(o *tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.structs += o.structs
	c.lossy += o.lossy
	c.pairs += o.pairs
	c.accepted += o.accepted
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
	return fmt.Sprintf("%d structs, %d of them lossy; %d pairs, %d accepted, %d beyond CUE; refused: %s",
		c.structs, c.lossy, c.pairs, c.accepted, c.crash, strings.Join(refused, ", "))
}

func oracle(r *rapid.T, t *testing.T, th theme, count *tally) {
	o := th.args(grammar{r})
	text := strings.Join(o.lines, "\n")
	d := newDeclared(t, definitions, text, contract.Closed)
	count.structs++
	if d.problems.HasErrors() {
		count.refused[reason(r, text, d.problems)]++
		return
	}
	if len(d.spec.Losses) > 0 {
		count.lossy++
	}
	if count.structs%8 == 0 {
		stable(r, t, d)
	}
	var worst string
	for _, call := range calls(o.shape()) {
		wrong, accepted, crash := d.judge(call)
		switch {
		case crash:
			count.crash++
			continue
		case accepted:
			count.accepted++
		}
		count.pairs++
		if wrong != "" && (worst == "" || len(wrong) < len(worst)) {
			worst = wrong
		}
	}
	if worst != "" {
		r.Fatalf("args {\n%s\n}\nschema %s\nlosses %v\n%s", text, d.spec.Schema, dumped(d.spec.Losses), worst)
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

// stable holds that the same args, in files of another order, make the same contract byte by byte.
func stable(r *rapid.T, t *testing.T, d *declared) {
	elsewhere := declaredIn(t, map[string]string{ // the definitions in a file of their own, which is read last
		"a.cue": source("", d.text),
		"y.cue": "package catalog\n\n" + imports(definitions) + "\n" + definitions + "\n",
	}, d.text, contract.Closed)
	for i := range elsewhere.spec.Losses {
		elsewhere.spec.Losses[i].File = "tools.cue"
	}
	again := newDeclared(t, definitions, d.text, contract.Closed)
	for _, other := range []*declared{again, elsewhere} {
		if diff := gocmp.Diff(jsonOf(d.spec), jsonOf(other.spec)); diff != "" {
			r.Fatalf("args {\n%s\n}\n%s", d.text, diff)
		}
	}
}

// calls are different calls, from what the shape takes for right to what is wrong all over.
func calls(args shape) []string {
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
