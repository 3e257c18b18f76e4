package decision

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxSettled is how many answers a point remembers; what comes then begins anew.
const maxSettled = 1 << 14

// settled remembers the answers of a point that don't hang on what each call brings anew (pointSpec.brings): arguments,
// time, the result. A policy is a function of its input and its data alone (allowedBuiltins), and an engine's data never
// changes, so what depends on nothing else it would answer again. It is kept by every other part of the input that the
// point's modules mention.
//
// Where they mention nothing of that, each answer holds for all calls. Where they do, one evaluation shows for each branch,
// tool and principal whether it looks at any of it (blind): often not, because a rule that looks at an argument names the
// tool that has it first.
type settled struct {
	parts []part
	// late says that something is mentioned that a call brings.
	late  bool
	mu    sync.RWMutex
	known map[string]standing
}

// standing is whether a question is answered. The zero standing is not: the policy is evaluated.
type standing struct {
	// answered says that decision is the answer, whatever the call brings.
	answered bool
	decision Decision
	// rules are the ones that it comes from; nil until somebody asks.
	rules *[]Rule
}

// settle returns nil for a point of which nothing is remembered.
func settle(spec pointSpec, read *reads) *settled {
	if len(spec.brings) == 0 {
		return nil // it is asked once a generation
	}
	s := &settled{known: map[string]standing{}}
	for _, f := range spec.input.fields {
		of := read.fields[f.name]
		if read.whole {
			of = &reads{whole: true}
		}
		parts := of.parts(f.shape)
		if slices.Contains(spec.brings, f.name) {
			s.late = s.late || len(parts) > 0
			continue
		}
		for _, p := range parts {
			s.parts = append(s.parts, part{append([]int{f.index}, p.index...), p.shape})
		}
	}
	return s
}

// key is what the standing of in depends on.
func (s *settled) key(in reflect.Value) []byte {
	return appendParts(make([]byte, 0, 256), in, s.parts)
}

func (s *settled) find(key []byte) (standing, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.known[string(key)]
	return at, ok
}

// ruled notes the rules that a remembered answer comes from.
func (s *settled) ruled(key []byte, rules []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.known[string(key)]; ok && at.answered {
		at.rules = &rules
		s.known[string(key)] = at
	}
}

func (s *settled) keep(key []byte, at standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSettled {
		clear(s.known)
	}
	s.known[string(key)] = at
}

// standing works out how far the policy can answer in before it knows what the call brings. A policy that fails to answer
// has not, and keep says so: the next question may find the time.
func (e *Engine) standing(ctx context.Context, p *asked, in reflect.Value) (at standing, keep bool) {
	// Unread, and nothing about it may make this answer differ from the next.
	bare := reflect.New(in.Type()).Elem()
	bare.Set(in)
	for _, f := range p.spec.input.fields {
		if slices.Contains(p.spec.brings, f.name) {
			bare.Field(f.index).SetZero()
		}
	}
	var watch *blind
	var tracer topdown.QueryTracer
	if p.settled.late {
		watch = &blind{brings: p.spec.brings, known: map[*ast.Expr]bool{}}
		tracer = watch
	}
	d, _ := e.decide(ctx, p.spec.point, bare.Interface(), tracer)
	if watch != nil && watch.touched {
		return standing{}, true
	}
	if d.Code == PolicyError || d.Code == PolicyTimeout {
		return standing{}, false
	}
	return standing{answered: true, decision: d}, true
}

// unremarkable reports whether arguments are JSON that an evaluation would certainly have taken (rawValue): what is not,
// or has anything like a number with an exponent, is to be evaluated, and refused there.
func unremarkable(raw json.RawMessage) bool {
	for i, c := range raw {
		if (c == 'e' || c == 'E') && i > 0 && (raw[i-1] == '.' || raw[i-1] >= '0' && raw[i-1] <= '9') {
			return false
		}
	}
	return len(raw) == 0 || json.Valid(raw)
}

// appendKey writes v such that two values of the shape have the same bytes only if a policy can't tell them apart: every
// text and every list is preceded by its length.
func (s *shape) appendKey(key []byte, v reflect.Value) []byte {
	switch s.kind {
	case stringShape:
		return appendText(key, v.String())
	case boolShape:
		if v.Bool() {
			return append(key, 1)
		}
		return append(key, 0)
	case intShape:
		return binary.AppendVarint(key, v.Int())
	case listShape:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		for i := range v.Len() {
			key = s.elem.appendKey(key, v.Index(i))
		}
		return key
	case mapShape:
		key = binary.AppendUvarint(key, uint64(v.Len()))
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			key = s.elem.appendKey(appendText(key, name.String()), v.MapIndex(name))
		}
		return key
	case objectShape:
		for _, f := range s.fields {
			key = f.shape.appendKey(key, v.Field(f.index))
		}
		return key
	case pointerShape:
		if v.IsNil() {
			return append(key, 0)
		}
		return s.elem.appendKey(append(key, 1), v.Elem())
	}
	panic("decision: no key is made of arguments or times") // settle leaves them out
}

func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}
