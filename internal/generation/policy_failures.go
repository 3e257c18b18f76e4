package generation

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// policyFailures counts the decisions of one generation in which the policy failed instead of answering, so
// that something is unintentionally hidden or refused: their number at each point, and an example. It is safe
// for concurrent use; the zero value is ready to use.
type policyFailures struct {
	mu sync.Mutex
	by map[decision.Point]*policyFailure
}

type policyFailure struct {
	count   int
	example decision.Decision // the one with the smallest about, because list decisions run concurrently
	about   string            // such as `tool "clock" in branch "default"`
}

// note counts d if the policy failed, and logs the first failure of each point. Timeouts don't count, because
// the next attempt may succeed; neither do cancelled decisions.
func (f *policyFailures) note(ctx context.Context, log *slog.Logger, d decision.Decision, about string) {
	if d.Allow || d.At.File == "" || d.Code == decision.PolicyTimeout || ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.by[d.Point]
	if at == nil {
		if f.by == nil {
			f.by = map[decision.Point]*policyFailure{}
		}
		at = &policyFailure{example: d, about: about}
		f.by[d.Point] = at
		log.Warn("the policy failed to answer, which denies; no more of this point are logged for this generation", "point", string(d.Point),
			"about", about, "code", string(d.Code), "reasons", strings.Join(d.Reasons, "; "), "at", d.At.String())
	}
	if at.count++; about < at.about {
		at.example, at.about = d, about
	}
}

// problems returns one warning for each decision point.
func (f *policyFailures) problems() (l problem.List) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, point := range slices.Sorted(maps.Keys(f.by)) {
		at := f.by[point]
		l.Warnf(problem.PolicyFailed, at.example.At, "data.catalogd."+string(point), "the policy failed to answer %s, which denies; for example about %s: %s: %s",
			times(at.count), at.about, at.example.Code, strings.Join(at.example.Reasons, "; "))
	}
	return l
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// aboutTool describes the subject of a decision about a tool.
func aboutTool(tool, branch string) string { return fmt.Sprintf("tool %q in branch %q", tool, branch) }

// aboutCall describes the subject of a call or result decision.
func aboutCall(branch decision.Branch, tool decision.Tool, r *decision.Resource, p *decision.Prompt) string {
	switch {
	case r != nil:
		return fmt.Sprintf("resource %q in branch %q", r.Name, branch.Name)
	case p != nil:
		return fmt.Sprintf("prompt %q in branch %q", p.Name, branch.Name)
	}
	return aboutTool(tool.Name, branch.Name)
}

// noting returns a function that records failures of decisions about the tools of a branch.
func (g *Generation) noting(ctx context.Context, branch string) func(string, decision.Decision) {
	return func(tool string, d decision.Decision) { g.failures.note(ctx, g.log, d, aboutTool(tool, branch)) }
}
