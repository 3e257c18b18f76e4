package shapes_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A tally counts what became of the shapes, and sorts their faults into kinds.
type tally struct {
	shapes, refused, calls, accepted, decided, lossy int
	// tried is how many compiled shapes use a production, or a pair of them.
	tried         map[string]int
	findings      []finding
	satisfiable   []outcome // refused, though CUE accepts some call
	refusals      map[string]*refusal
	contradictory []string
	ambiguous     int
}

// A refusal is one kind of problem.
type refusal struct {
	count, satisfiable int
	example            outcome
}

func newTally() *tally { return &tally{tried: map[string]int{}, refusals: map[string]*refusal{}} }

// productions are what a kind of fault may be blamed on: each production that the shape uses, and each pair.
func (s shape) productions() []string {
	uses := slices.Clone(s.args.uses)
	if s.tightened {
		uses = append(uses, "tightened to closed")
	}
	slices.Sort(uses)
	uses = slices.Compact(uses)
	out := slices.Clone(uses)
	for i, a := range uses {
		for _, b := range uses[i+1:] {
			out = append(out, a+"  WITH  "+b)
		}
	}
	return append(out, string(s.strictness)+"  WITH  "+strings.Join(uses, "  WITH  "))
}

func (t *tally) add(o outcome) {
	t.shapes++
	t.calls += o.calls
	t.accepted += o.accepted
	if o.finding != nil {
		t.findings = append(t.findings, *o.finding)
	}
	for _, p := range o.shape.productions() {
		t.tried[p]++
	}
	t.ambiguous += len(o.ambiguous)
	if o.endless {
		t.contradictory = append(t.contradictory,
			fmt.Sprintf("shape %d: no end within %s\n%s", o.shape.number, patience, o.shape.definition()))
		return
	}
	for _, c := range o.contradictions {
		t.contradictory = append(t.contradictory,
			fmt.Sprintf("shape %d: %s\n%s", o.shape.number, c, o.shape.definition()))
	}
	if len(o.compiled.problems) > 0 {
		t.refused++
		p := o.compiled.problems[0]
		kind := string(p.Code) + ": " + prefix(p.Message)
		r := t.refusals[kind]
		if r == nil {
			r = &refusal{example: o}
			t.refusals[kind] = r
		}
		r.count++
		if o.satisfiable {
			r.satisfiable++
			if r.satisfiable == 1 || size(o.shape) < size(r.example.shape) {
				r.example = o
			}
			t.satisfiable = append(t.satisfiable, o)
		}
		return
	}
	if o.compiled.spec.Remainder != nil {
		t.decided++
	}
	if len(o.compiled.spec.Losses) > 0 {
		t.lossy++
	}
}

var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|[0-9]+|#\\w+")

// prefix is the part of a message that its kind has in common.
func prefix(message string) string {
	m := quoted.ReplaceAllString(message, "…")
	if r := []rune(m); len(r) > 70 {
		m = string(r[:70])
	}
	return m
}

func size(s shape) int { return len(s.source()) }

// A kind is one fault that one production, or two together, bring about.
type kind struct {
	fault, blamed string
	count         int
	smallest      finding
}

// kinds sorts the findings: each is blamed on the production that most of the others share and that seldom
// goes well.
func (t *tally) kinds() (all []kind) {
	byFault := map[string][]finding{}
	for _, f := range t.findings {
		byFault[f.fault] = append(byFault[f.fault], f)
	}
	for _, fault := range slices.Sorted(maps.Keys(byFault)) {
		left := byFault[fault]
		failed := map[string]int{}
		for _, f := range left {
			for _, p := range f.shape.productions() {
				failed[p]++
			}
		}
		for len(left) > 0 {
			open := map[string]int{}
			for _, f := range left {
				for _, p := range f.shape.productions() {
					if 20*failed[p] >= t.tried[p] {
						open[p]++
					}
				}
			}
			score := func(p string) float64 {
				return float64(open[p]) * float64(failed[p]) / float64(t.tried[p])
			}
			best := ""
			for _, p := range slices.Sorted(maps.Keys(open)) {
				if best == "" || score(p) > score(best) || score(p) == score(best) && len(p) < len(best) {
					best = p
				}
			}
			if best == "" { // each alone is rare: the productions together are the kind
				best = left[0].shape.productions()[len(left[0].shape.productions())-1]
			}
			k := kind{fault: fault, blamed: best}
			left = slices.DeleteFunc(slices.Clone(left), func(f finding) bool {
				if !slices.Contains(f.shape.productions(), best) {
					return false
				}
				if k.count++; k.count == 1 || size(f.shape) < size(k.smallest.shape) {
					k.smallest = f
				}
				return true
			})
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.count, a.count),
			cmp.Compare(size(a.smallest.shape), size(b.smallest.shape)))
	})
	return all
}

func (k kind) String() string {
	f := k.smallest
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%d shapes, blamed on: %s)\n", k.fault, k.count, k.blamed)
	fmt.Fprintf(&out, "%s\n", indent(f.shape.source()))
	fmt.Fprintf(&out, "  shape    %d, %s\n  call     %s\n", f.shape.number, f.shape.strictness, f.call)
	fmt.Fprintf(&out, "  CUE      %s\n  Check    %s\n  schema   %s\n", f.cue, f.check, f.schema)
	fmt.Fprintf(&out, "  losses   %d, CUE is asked at the call: %v\n", f.losses, f.remainder)
	for _, also := range f.also {
		fmt.Fprintf(&out, "  also     %s\n", also)
	}
	return out.String()
}

// indent leaves out what every shape has.
func indent(src string) string {
	for _, same := range []string{description, effect, binding} {
		src = strings.Replace(src, "\n\t"+same, "", 1)
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(src, "\n"), "\n", "\n    ")
}

// write prints the figures, then at most limit kinds.
func (t *tally) write(w io.Writer, limit int) {
	kinds := t.kinds()
	byFault := map[string]int{}
	for _, f := range t.findings {
		byFault[f.fault]++
		for _, also := range f.also {
			byFault[also]++
		}
	}
	fmt.Fprintf(w, "%d shapes: %d accepted (%d ask CUE at the call, %d have losses), ",
		t.shapes, t.shapes-t.refused, t.decided, t.lossy)
	fmt.Fprintf(w, "%d refused (CUE accepts some call of %d)\n", t.refused, len(t.satisfiable))
	fmt.Fprintf(w, "%d calls: CUE accepts %d, contradicts itself about %d, and strictness leaves %d open\n",
		t.calls, t.accepted, len(t.contradictory), t.ambiguous)
	fmt.Fprintf(w, "%d shapes found something, of %d kinds\n", len(t.findings), len(kinds))
	for _, fault := range slices.Sorted(maps.Keys(byFault)) {
		fmt.Fprintf(w, "  %6d  %s\n", byFault[fault], fault)
	}
	fmt.Fprintf(w, "\n")
	for i, k := range kinds {
		if i == limit {
			fmt.Fprintf(w, "and %d kinds more\n", len(kinds)-limit)
			break
		}
		fmt.Fprintf(w, "%d. %s\n", i+1, k)
	}
	t.writeRefusals(w)
}

// writeRefusals prints the most frequent kinds of refusals, those first that CUE has a meaning for.
func (t *tally) writeRefusals(w io.Writer) {
	names := slices.Collect(maps.Keys(t.refusals))
	slices.SortFunc(names, func(a, b string) int {
		x, y := t.refusals[a], t.refusals[b]
		return cmp.Or(cmp.Compare(y.satisfiable, x.satisfiable), cmp.Compare(y.count, x.count),
			cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "refusals, of %d kinds:\n", len(names))
	for i, name := range names {
		if i == 15 {
			break
		}
		r := t.refusals[name]
		fmt.Fprintf(w, "%d times, CUE accepts some call of %d: %s\n", r.count, r.satisfiable, name)
		fmt.Fprintf(w, "  %s\n%s\n", r.example.compiled.problems[0], indent(r.example.shape.source()))
	}
	fmt.Fprintf(w, "\nCUE contradicts itself about:\n")
	for i, c := range t.contradictory {
		if i == 10 {
			break
		}
		fmt.Fprintf(w, "%s\n", c)
	}
}
