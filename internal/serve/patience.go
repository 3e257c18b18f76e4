package serve

import (
	"context"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// A policy may loop for one tool, which hides that one, and it may loop for all of them, which must not hold a build up
// for a deadline a tool. Past either limit a build asks the point no more and is refused.
const (
	maxTimeoutsInARow = 5
	maxTimeouts       = 100
)

// patience is one decision point of one build. It is safe for concurrent use.
type patience struct {
	point decision.Point

	mu          sync.Mutex
	inARow, all int
	spent       bool
	last        string // what the last question that timed out was about, and what came of it
}

// ask asks about the subject. ok is false when the policy was too slow too often: nothing was asked then.
func (p *patience) ask(ctx context.Context, subject string, ask func() decision.Decision) (d decision.Decision, ok bool) {
	if p.gone() {
		return decision.Decision{}, false
	}
	d = patiently(ctx, ask)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case d.Code != decision.PolicyTimeout:
		p.inARow = 0
	case ctx.Err() == nil:
		p.inARow++
		p.all++
		p.last = subject + ": " + refusal(d)
		p.spent = p.spent || p.inARow >= maxTimeoutsInARow || p.all >= maxTimeouts
	}
	return d, true
}

func (p *patience) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// problems says that the policy was too slow to build with; nothing when it was not.
func (p *patience) problems() (l problem.List) {
	if p.gone() {
		l.Errorf(problem.PolicyTimeout, problem.Position{File: "policy"}, "data.catalogd."+string(p.point),
			"%d %s decisions ran into their deadline, the last one about %s; no more were asked: make the rules that the point asks cheaper", p.all, p.point, p.last)
	}
	return l
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
