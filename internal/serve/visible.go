package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// listCache holds the list decisions of one generation by what they depend on: the policy, the branch and the tool as
// the policy sees them. The next generation takes over what is unchanged, and nothing older is kept.
type listCache struct {
	policy   string
	branches map[string]map[string]bool // branch as the policy sees it -> tool as the policy sees it -> allowed
}

func newListCache(policy string) listCache {
	return listCache{policy: policy, branches: map[string]map[string]bool{}}
}

// decide asks the list decision for every tool that the branch admits, on all cores, and returns the names of those
// that it may see and how many decisions it asked. A decision that fails hides its tool and no other.
func (c *listCache) decide(ctx context.Context, engine *decision.Engine, b registry.Branch, r *registry.Registry, old listCache) (visible map[string]bool, asked int) {
	branch := invoke.PolicyBranch(b)
	principal := decision.Local()
	key := encode(branch)
	var known map[string]bool
	if old.policy == c.policy {
		known = old.branches[key]
	}
	type question struct {
		entry *registry.Entry
		key   string
	}
	answers := map[string]bool{}
	visible = map[string]bool{}
	var open []question
	for _, e := range r.Entries() {
		if e.Bound().Hidden != "" || !b.Admits(*e.Declared()) {
			continue
		}
		q := question{e, encode(invoke.PolicyTool(e))}
		if allowed, ok := known[q.key]; ok {
			answers[q.key] = allowed
			visible[e.Name()] = allowed
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
				d := patiently(ctx, func() decision.Decision {
					return engine.List(ctx, decision.ListInput{Branch: branch, Tool: invoke.PolicyTool(q.entry), Principal: principal})
				})
				mu.Lock()
				// An answer that the policy didn't give (an error, a time-out) is not kept: the next build asks again.
				if d.Code == decision.Allowed || d.Code == decision.Denied || d.Code == decision.Undefined {
					answers[q.key] = d.Allow
				}
				visible[q.entry.Name()] = d.Allow
				mu.Unlock()
			}
		})
	}
	for _, q := range open {
		next <- q
	}
	close(next)
	wg.Wait()
	c.branches[key] = answers
	return visible, len(open)
}

// patiently asks a decision up to three times while it runs into its deadline. A call that is denied on a busy machine
// is made again; what a build decides stands until the next change.
func patiently(ctx context.Context, ask func() decision.Decision) (d decision.Decision) {
	for range 3 {
		if d = ask(); d.Code != decision.PolicyTimeout || ctx.Err() != nil {
			break
		}
	}
	return d
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("serve: policy inputs are plain data: %v", err))
	}
	return string(b)
}
