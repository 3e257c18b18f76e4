package shapes_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/catalogd/catalogd/contract"
)

// A shape is the args of one tool.
type shape struct {
	number     int
	args       value
	strictness contract.Strictness
	// tightened: the tool says open, and a branch closed.
	tightened bool
}

// A family is a numbered part of the shapes. make answers false for a number that stands for no shape.
type family struct {
	name string
	size int
	make func(i int) (value, bool)
}

// families are all shapes but for their strictness, which is closed for even numbers and open for odd ones.
func families() []family {
	vs, ws, ds := values(), wrappers(), declarations()
	wrap := func(w wrapper, v value, level int) (value, bool) {
		if w.structs && !v.object {
			return value{}, false
		}
		return w.wrap(v, level), true
	}
	marks := []string{"!", "?", ""}
	infix := []string{"%s | %s", "*%s | %s", "%s & %s"}
	flat := append(leaves(), lists()...)
	pairs := len(flat) * len(flat)
	return []family{
		{"one declaration", len(ds), func(i int) (value, bool) { return structOf(ds[i]) }},
		{"one field of a value", len(vs) * len(marks), func(i int) (value, bool) {
			return asField(vs[i/len(marks)], marks[i%len(marks)]), true
		}},
		{"a value in a wrapper", len(ws) * len(vs), func(i int) (value, bool) {
			v, ok := wrap(ws[i/len(vs)], vs[i%len(vs)], 1)
			if ok && !v.object {
				v = asField(v, marks[i%len(marks)])
			}
			return v, ok
		}},
		{"two declarations", len(ds) * len(ds), func(i int) (value, bool) {
			if i/len(ds) == i%len(ds) {
				return value{}, false
			}
			return structOf(ds[i/len(ds)], ds[i%len(ds)])
		}},
		{"two values in one field", pairs * len(infix) * len(marks), func(i int) (value, bool) {
			x, y := flat[i%len(flat)], flat[i/len(flat)%len(flat)]
			i /= pairs
			both := value{src: fmt.Sprintf(infix[i%len(infix)], parens(x.src), parens(y.src))}
			both.samples = distinct(append(append([]any{}, x.samples...), y.samples...))
			return asField(both.use(infix[i%len(infix)], x, y), marks[i/len(infix)]), true
		}},
		{"two declarations in a wrapper", len(ds) * len(ds) * len(ws), func(i int) (value, bool) {
			a, b := i%len(ds), i/len(ds)%len(ds)
			if a == b {
				return value{}, false
			}
			v, ok := structOf(ds[a], ds[b])
			if !ok {
				return value{}, false
			}
			if v, ok = wrap(ws[i/len(ds)/len(ds)], v, 1); ok && !v.object {
				v = asField(v, marks[i%len(marks)])
			}
			return v, ok
		}},
		{"a value in two wrappers", len(ws) * len(ws) * len(vs), func(i int) (value, bool) {
			inside, outside := ws[i/len(vs)%len(ws)], ws[i/len(vs)/len(ws)]
			v, ok := wrap(inside, vs[i%len(vs)], 1)
			if ok {
				v, ok = wrap(outside, v, 2)
			}
			// Two recursions around a choice take CUE time that is exponential in the depth of a call.
			if inside.recursive && outside.recursive && slices.Contains(v.uses, "a choice of structs") {
				return value{}, false
			}
			if ok && !v.object {
				v = asField(v, marks[i%len(marks)])
			}
			return v, ok
		}},
		{"three declarations", len(ds) * len(ds) * len(ds), func(i int) (value, bool) {
			a, b, c := i%len(ds), i/len(ds)%len(ds), i/len(ds)/len(ds)
			if a >= b || b >= c {
				return value{}, false
			}
			return structOf(ds[a], ds[b], ds[c])
		}},
	}
}

// parens are needed where an operand is a default or a disjunction itself.
func parens(src string) string {
	if strings.ContainsAny(src, "|&+*") {
		return "(" + src + ")"
	}
	return src
}

// asField is a struct of one field of the value.
func asField(v value, mark string) value {
	v = v.inner()
	out := value{src: "{f" + mark + ": " + v.src + "}", defs: v.defs, computes: v.computes, object: true}
	out.uses = append([]string{"f" + mark}, v.uses...)
	out.samples = objects([]field{{"f", nested(v)}})
	return out
}

// A universe is all shapes, by number.
type universe struct {
	families []family
	ends     []int
}

func newUniverse() *universe {
	u := &universe{families: families()}
	end := 0
	for _, f := range u.families {
		end += 2 * f.size
		u.ends = append(u.ends, end)
	}
	return u
}

// shape is the shape of that number; ok is false where the number stands for none.
func (u *universe) shape(number int) (s shape, ok bool) {
	at := sort.SearchInts(u.ends, number+1)
	begin := 0
	if at > 0 {
		begin = u.ends[at-1]
	}
	i := number - begin
	v, ok := u.families[at].make(i / 2)
	if !ok || !v.object {
		return shape{}, false
	}
	s = shape{number: number, args: v, strictness: contract.Closed, tightened: i%8 == 0}
	if i%2 == 1 {
		s.strictness = contract.Open
	}
	return s, true
}

// order is an order of the numbers below size that is spread over all of them from the first on: steps of the
// golden section.
func order(size int) func(i int) int {
	step := int(float64(size)*0.6180339887) | 1
	for gcd(step, size) != 1 {
		step += 2
	}
	return func(i int) int { return i * step % size }
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// pick is a sequence of shapes: a fixed sample of each family, or all, in which the families of small shapes
// come first and the others take turns; or only the one of that number, unless it is negative.
func (u *universe) pick(all bool, only int) func(yield func(shape) bool) {
	return func(yield func(shape) bool) {
		if only >= 0 {
			if s, ok := u.shape(only); ok {
				yield(s)
			}
			return
		}
		const small = 2
		next := make([]int, len(u.families))
		take := func(f, begin, n int) bool {
			size := 2 * u.families[f].size
			nth := order(size)
			for taken := 0; taken < n && next[f] < size; next[f]++ {
				s, ok := u.shape(begin + nth(next[f]))
				if !ok {
					continue
				}
				taken++
				if !yield(s) {
					return false
				}
			}
			return true
		}
		begins := append([]int{0}, u.ends...)
		if !all {
			for f := range u.families {
				if !take(f, begins[f], sample[f]) {
					return
				}
			}
			return
		}
		for f := range small {
			if !take(f, begins[f], 2*u.families[f].size) {
				return
			}
		}
		for more := true; more; {
			more = false
			for f := small; f < len(u.families); f++ {
				if !take(f, begins[f], batch) {
					return
				}
				more = more || next[f] < 2*u.families[f].size
			}
		}
	}
}
