package generation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// listCache caches the list decisions of one generation by what they depend on: the policy, and the branch
// and the tool as the policy sees them. The next generation reuses the unchanged ones; older ones are
// dropped.
type listCache struct {
	policy  string
	answers map[buildcache.Question]bool // whether the policy allowed
}

func newListCache(policy string) listCache {
	return listCache{policy: policy, answers: map[buildcache.Question]bool{}}
}

// decide requests the list decisions for the operator, and caches them. It returns the tools that the branch
// admits, with whether each may be seen, and how many decisions were requested.
func (c *listCache) decide(ctx context.Context, engine *decision.Engine, b registry.Branch, r *registry.Registry, old listCache, undecided *undecided, note func(string, decision.Decision)) (visible map[string]bool, asked int) {
	var before map[buildcache.Question]bool
	if old.policy == c.policy {
		before = old.answers
	}
	q := listQuestions{
		engine: engine, branch: b, principal: decision.Local(), entries: r.Entries(), undecided: undecided, note: note,
		known: func(_ string, q buildcache.Question) (allowed, ok bool) { allowed, ok = before[q]; return allowed, ok },
		keep:  func(q buildcache.Question, allowed bool) { c.answers[q] = allowed },
	}
	return q.decide(ctx)
}

// listQuestions are the list decisions about one branch and principal.
type listQuestions struct {
	engine    *decision.Engine
	branch    registry.Branch
	principal decision.Principal
	entries   []*registry.Entry // those that the branch doesn't admit are not asked about
	known     knownAnswers
	keep      func(buildcache.Question, bool) // not called concurrently; may be nil
	undecided *undecided
	failed    int // number of decisions without an answer
	note      func(tool string, d decision.Decision)
}

// decide requests the list decision for every tool that the branch admits, on all cores. It returns those
// tools, with whether each may be seen, and how many decisions were requested. A decision that fails hides
// only its tool; undecided collects those that timed out.
func (l *listQuestions) decide(ctx context.Context) (visible map[string]bool, asked int) {
	branch := invoke.PolicyBranch(l.branch)
	type question struct {
		name string
		tool decision.Tool
		key  buildcache.Question
		pos  problem.Position
	}
	visible = make(map[string]bool, len(l.entries))
	var open []question
	ask := askAbout(branch)
	for _, e := range l.entries {
		if e.Hidden() != "" || !l.branch.Admits(*e.Declared()) {
			continue
		}
		tool := invoke.PolicyTool(e)
		q := question{e.Name(), tool, ask(tool), e.Declared().Pos}
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
	step := progress.Current(ctx)
	step.Of(len(open))
	for range min(len(open), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for q := range next {
				subject := Undecided{Point: decision.List, Kind: "tool", Name: q.name, Branch: l.branch.Name, Pos: q.pos}
				d, ok := l.undecided.ask(ctx, subject, func() decision.Decision {
					return listed(ctx, l.engine, decision.ListInput{Branch: branch, Tool: q.tool, Principal: l.principal})
				})
				mu.Lock()
				if ok && answered(d) {
					l.answer(q.key, d.Allow)
				} else if !ok || d.Code == decision.PolicyTimeout {
					l.failed++
				}
				if ok && d.Code != decision.PolicyTimeout {
					visible[q.name] = d.Allow
					l.note(q.name, d)
				}
				mu.Unlock()
				step.Done()
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

func (l *listQuestions) answer(q buildcache.Question, allowed bool) {
	if l.keep != nil {
		l.keep(q, allowed)
	}
}

// answered reports whether the policy itself gave this answer. Failures and timeouts are not cached: the next
// build asks again.
func answered(d decision.Decision) bool {
	return d.Code == decision.Allowed || d.Code == decision.Denied
}

// askAbout returns a function that computes the cache key of a tool for a branch. Length prefixes keep the
// parts distinct.
func askAbout(branch decision.Branch) func(decision.Tool) buildcache.Question {
	prefix := appendPart(appendPart(nil, branch.Name), branch.Session)
	for _, label := range slices.Sorted(maps.Keys(branch.Labels)) {
		prefix = appendPart(appendPart(prefix, label), branch.Labels[label])
	}
	// Hashing the branch first keeps its labels and the tool's tags distinct.
	sum := sha256.Sum256(prefix)
	var b []byte
	return func(t decision.Tool) buildcache.Question {
		b = append(b[:0], sum[:]...)
		for _, part := range [...]string{t.Name, t.Effect, t.Binding, t.Server, t.Trust, strconv.FormatBool(t.Deprecated),
			strconv.FormatBool(t.Discovered)} {
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
