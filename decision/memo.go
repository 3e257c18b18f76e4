package decision

import (
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// memo is the topdown.VirtualCache of one evaluation: the values of rules and function calls, by their
// references. OPA's own is a tree of maps, allocated for each evaluation; a memo is one map and two slices,
// reused by the next evaluation.
type memo struct {
	entries []memoEntry
	terms   []*ast.Term // of the entries' references, one behind the other
	newest  map[int]int // of a hash: the last entry that has it, by its number from 1
	frames  []int       // where the entries of each frame begin
	most    int         // how many entries there were at once
}

type memoEntry struct {
	hash       int
	begin, end int // of the reference, in terms
	before     int // the entry of the same hash that came before it, as in newest
	value      *ast.Term
	undefined  bool
}

// maxMemo is how many entries a memo may have had at once to be used again.
const maxMemo = 1 << 12

var memos = sync.Pool{New: func() any { return &memo{newest: map[int]int{}, frames: []int{0}} }}

// release returns the memo of an evaluation that has ended to the pool.
func (m *memo) release() {
	if m.most > maxMemo {
		return
	}
	m.reset()
	memos.Put(m)
}

func (m *memo) reset() {
	m.drop(0)
	m.frames, m.most = m.frames[:1], 0
}

// Push is topdown.VirtualCache's.
func (m *memo) Push() { m.frames = append(m.frames, len(m.entries)) }

// Pop is topdown.VirtualCache's.
func (m *memo) Pop() {
	begin := m.frames[len(m.frames)-1]
	m.frames = m.frames[:len(m.frames)-1]
	m.drop(begin)
}

// drop removes the entries from begin on.
func (m *memo) drop(begin int) {
	if begin == len(m.entries) {
		return
	}
	for _, e := range slices.Backward(m.entries[begin:]) {
		if e.before == 0 {
			delete(m.newest, e.hash)
		} else {
			m.newest[e.hash] = e.before
		}
	}
	terms := m.entries[begin].begin
	clear(m.terms[terms:])
	clear(m.entries[begin:])
	m.terms, m.entries = m.terms[:terms], m.entries[:begin]
}

// Get is topdown.VirtualCache's.
func (m *memo) Get(ref ast.Ref) (value *ast.Term, undefined bool) {
	e := m.find(ref, hashOf(ref))
	switch {
	case e == nil:
		return nil, false
	case e.undefined:
		return nil, true
	}
	return e.value, false
}

// Put is topdown.VirtualCache's.
func (m *memo) Put(ref ast.Ref, value *ast.Term) {
	hash := hashOf(ref)
	e := m.find(ref, hash)
	if e == nil {
		begin := len(m.terms)
		m.terms = append(m.terms, ref...)
		m.entries = append(m.entries, memoEntry{hash: hash, begin: begin, end: len(m.terms), before: m.newest[hash]})
		m.newest[hash] = len(m.entries)
		m.most = max(m.most, len(m.entries))
		e = &m.entries[len(m.entries)-1]
	}
	if value == nil {
		e.undefined = true
		return
	}
	e.value = value
}

// find returns the entry of the last frame for the reference, or nil.
func (m *memo) find(ref ast.Ref, hash int) *memoEntry {
	begin := m.frames[len(m.frames)-1]
	for n := m.newest[hash]; n > begin; n = m.entries[n-1].before {
		if e := &m.entries[n-1]; slices.EqualFunc(m.terms[e.begin:e.end], ref, (*ast.Term).Equal) {
			return e
		}
	}
	return nil
}

// Keys is topdown.VirtualCache's.
func (m *memo) Keys() (keys []ast.Ref) {
	for _, e := range m.entries[m.frames[len(m.frames)-1]:] {
		if e.value != nil {
			keys = append(keys, slices.Clone(ast.Ref(m.terms[e.begin:e.end])))
		}
	}
	return keys
}

func hashOf(ref ast.Ref) int {
	hash := 0
	for _, term := range ref {
		hash = hash*31 + term.Hash()
	}
	return hash
}
