package decision

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// maxSettled is how many answers a point remembers; what comes then begins anew.
const maxSettled = 1 << 14

// settled remembers the answers of a point that reads nothing of a call but what many calls have in common: the branch,
// the tool, the principal. A policy is a function of its input and its data alone (allowedBuiltins), and an engine's data
// never changes, so what such a point has answered once it would answer again. It is kept by every part of the input that
// the point's modules mention. A point that mentions the arguments or the time, or takes the input as a whole, has no
// settled: it is evaluated each time.
type settled struct {
	parts []part
	mu    sync.RWMutex
	known map[string]Decision
}

// settle returns nil for a point whose answers can't be told from what recurs.
func settle(spec pointSpec, read *reads) *settled {
	if spec.point != Call {
		return nil // the others are asked once a generation
	}
	parts := read.parts(spec.input)
	for _, p := range parts {
		if !p.shape.settling() {
			return nil
		}
	}
	return &settled{parts: parts, known: map[string]Decision{}}
}

// key is what the answer to in depends on.
func (s *settled) key(in reflect.Value) []byte {
	return appendParts(make([]byte, 0, 256), in, s.parts)
}

func (s *settled) find(key []byte) (Decision, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	d, ok := s.known[string(key)]
	return d, ok
}

// keep remembers an answer of the policy. A failure to answer is none: the next question may find the time.
func (s *settled) keep(key []byte, d Decision) {
	if d.Code == PolicyError || d.Code == PolicyTimeout {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSettled {
		clear(s.known)
	}
	s.known[string(key)] = d
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
