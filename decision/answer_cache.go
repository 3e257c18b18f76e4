package decision

import (
	"context"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/internal/cache"
)

// maxAnswers is how many answers a point remembers.
const maxAnswers = 1 << 16

// answerCache remembers the answers of connect, which many tools ask about one target, and those answers of a
// point with calls that don't depend on what differs from call to call (pointSpec.perCall): arguments, time,
// the result. It may, as a decision is a function of its input and the data alone (allowedBuiltins), and an
// engine's data never changes. The key is every other part of the input that the point's modules read.
//
// If they read nothing that differs from call to call, each answer is the same for all calls. If they do, one
// evaluation shows for each branch, tool and principal whether it reads any of it (perCallTracer): often not,
// because a rule that reads an argument names the tool that has it first.
type answerCache struct {
	parts []part
	// readsPerCall says that the modules read something that differs from call to call.
	readsPerCall bool
	known        *cache.Cache[string, cachedAnswer]
}

// cachedAnswer is an answer that may hold for all calls. The zero cachedAnswer doesn't: each call is
// evaluated.
type cachedAnswer struct {
	// invariant says that decision is the answer to all calls; else decision may say how the evaluation
	// failed.
	invariant bool
	decision  Decision
	outputs   outputs
	// rules are the responsible rules; nil until they were asked for.
	rules *[]Rule
}

// newAnswerCache returns nil for a point whose answers are not cached.
func newAnswerCache(spec pointSpec, read *readSet) *answerCache {
	if len(spec.perCall) == 0 && spec.point != Connect {
		return nil // each question is asked once a generation
	}
	s := &answerCache{known: cache.New[string, cachedAnswer](maxAnswers)}
	for _, f := range spec.input.Fields {
		of := read.fields[f.Name]
		if read.whole {
			of = &readSet{whole: true}
		}
		parts := of.parts(f.Shape)
		if slices.Contains(spec.perCall, f.Name) {
			s.readsPerCall = s.readsPerCall || len(parts) > 0
			continue
		}
		for _, p := range parts {
			s.parts = append(s.parts, part{append([]int{f.Index}, p.index...), p.shape})
		}
	}
	return s
}

// key is the part of the input on which the cached answer depends.
func (s *answerCache) key(in reflect.Value) []byte {
	q := inquiryOf(in.Interface())
	key := append(appendParts(make([]byte, 0, 256), in, s.parts), q.yes...)
	if q.writes {
		key = append(key, '!')
	}
	return key
}

func (s *answerCache) get(key []byte) (cachedAnswer, bool) { return cache.GetBytes(s.known, key) }

// setRules records the rules responsible for a cached answer.
func (s *answerCache) setRules(key []byte, rules []Rule) {
	if at, ok := s.get(key); ok && at.invariant {
		at.rules = &rules
		s.put(key, at)
	}
}

func (s *answerCache) put(key []byte, at cachedAnswer) { s.known.Put(string(key), at) }

// decideInvariant evaluates the point without what differs from call to call, and says whether the answer
// holds for all calls. keep is false if the evaluation failed: the next one may succeed.
func (e *Engine) decideInvariant(ctx context.Context, p *compiledPoint, in reflect.Value) (at cachedAnswer, keep bool) {
	// Cleared, so that the answer can't depend on it.
	bare := reflect.New(in.Type()).Elem()
	bare.Set(in)
	for _, f := range p.spec.input.Fields {
		if slices.Contains(p.spec.perCall, f.Name) {
			bare.Field(f.Index).SetZero()
		}
	}
	var watch *perCallTracer
	var tracer topdown.QueryTracer
	if p.cache.readsPerCall {
		watch = &perCallTracer{fields: p.spec.perCall, known: map[*ast.Expr]bool{}}
		tracer = watch
	}
	d, out, ended := e.decideTraced(ctx, p.spec.point, bare.Interface(), tracer)
	if ended && watch != nil && watch.touched {
		return cachedAnswer{}, true
	}
	if d.Code == PolicyError || d.Code == PolicyTimeout {
		if watch != nil && d.Code == PolicyError {
			return cachedAnswer{}, false // an index may keep other calls from the rule that failed
		}
		return cachedAnswer{decision: d}, false
	}
	return cachedAnswer{invariant: true, decision: d, outputs: out}, true
}
