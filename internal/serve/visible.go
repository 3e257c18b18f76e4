package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/state"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// listCache holds the list decisions of one generation by what they depend on: the policy, and the branch and the tool as
// the policy sees them. The next generation takes over what is unchanged, and nothing older is kept.
type listCache struct {
	policy  string
	answers map[state.Question]bool // whether the policy allowed
}

func newListCache(policy string) listCache {
	return listCache{policy: policy, answers: map[state.Question]bool{}}
}

// decide asks the list decision for the operator, and keeps what is answered. It returns the names of the tools that the
// branch admits, whether each may be seen, and how many decisions were asked.
func (c *listCache) decide(ctx context.Context, engine *decision.Engine, b registry.Branch, r *registry.Registry, old listCache, patience *patience) (visible map[string]bool, asked int) {
	var before map[state.Question]bool
	if old.policy == c.policy {
		before = old.answers
	}
	q := listQuestions{
		engine: engine, branch: b, principal: decision.Local(), registry: r, patience: patience,
		known: func(_ string, q state.Question) (allowed, ok bool) { allowed, ok = before[q]; return allowed, ok },
		keep:  func(q state.Question, allowed bool) { c.answers[q] = allowed },
	}
	return q.decide(ctx)
}

// listQuestions are the list decisions about one branch and principal.
type listQuestions struct {
	engine    *decision.Engine
	branch    registry.Branch
	principal decision.Principal
	registry  *registry.Registry
	known     knownAnswers
	keep      func(state.Question, bool) // one call at a time; may be nil
	patience  *patience
	failed    int // how many decisions had no answer
}

// decide asks the list decision for every tool that the branch admits, on all cores, and returns the names of those
// that may be seen and how many decisions it asked. A decision that fails hides its tool and no other; patience says when
// too many have.
func (l *listQuestions) decide(ctx context.Context) (visible map[string]bool, asked int) {
	branch := invoke.PolicyBranch(l.branch)
	type question struct {
		name string
		tool decision.Tool
		key  state.Question
	}
	visible = make(map[string]bool, l.registry.Len())
	var open []question
	ask := askAbout(branch)
	for _, e := range l.registry.Entries() {
		if e.Bound().Hidden != "" || !l.branch.Admits(*e.Declared()) {
			continue
		}
		tool := invoke.PolicyTool(e)
		q := question{e.Name(), tool, ask(tool)}
		if allowed, ok := l.known(q.name, q.key); ok {
			l.answer(q.key, allowed)
			visible[q.name] = allowed
			continue
		}
		open = append(open, q)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next = make(chan question)
	)
	for range min(len(open), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for q := range next {
				d, ok := l.patience.ask(ctx, fmt.Sprintf("tool %q in branch %q", q.name, l.branch.Name), func() decision.Decision {
					return l.engine.List(ctx, decision.ListInput{Branch: branch, Tool: q.tool, Principal: l.principal})
				})
				mu.Lock()
				if ok && answered(d) {
					l.answer(q.key, d.Allow)
				} else {
					l.failed++
				}
				if ok {
					visible[q.name] = d.Allow
				}
				mu.Unlock()
			}
		})
	}
	for _, q := range open {
		next <- q
	}
	close(next)
	wg.Wait()
	return visible, len(open)
}

func (l *listQuestions) answer(q state.Question, allowed bool) {
	if l.keep != nil {
		l.keep(q, allowed)
	}
}

// answered reports whether the policy gave this answer. What comes of an error or a time-out is not kept: the next build
// asks again.
func answered(d decision.Decision) bool {
	return d.Code == decision.Allowed || d.Code == decision.Denied || d.Code == decision.Undefined
}

// askAbout names the questions whether a branch may see a tool. Lengths keep the parts apart.
func askAbout(branch decision.Branch) func(decision.Tool) state.Question {
	prefix := appendPart(nil, branch.Name)
	for _, label := range slices.Sorted(maps.Keys(branch.Labels)) {
		prefix = appendPart(appendPart(prefix, label), branch.Labels[label])
	}
	// Hashing the branch first keeps its labels and the tool's tags apart.
	sum := sha256.Sum256(prefix)
	var b []byte
	return func(t decision.Tool) state.Question {
		b = append(b[:0], sum[:]...)
		for _, part := range [...]string{t.Name, t.Effect, t.Binding, t.Server, t.Trust, strconv.FormatBool(t.Deprecated)} {
			b = appendPart(b, part)
		}
		for _, tag := range t.Tags {
			b = appendPart(b, tag)
		}
		return sha256.Sum256(b)
	}
}

func appendPart(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}
