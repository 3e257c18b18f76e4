package invoke

import (
	"fmt"

	"github.com/catalogd/catalogd/decision"
)

// Lineage holds, by decision point, the branches that must all allow what a conversation branch does: the
// declared branch first and the branch itself last. An ancestor is left out where the policy can't tell it
// from the next one. A Lineage is never modified.
type Lineage map[decision.Point][]decision.Branch

// Each asks each branch that must allow, in order, until one denies, and returns the decision that all of them
// make together (decision.Decision.And). id names the decision for the log: the last branch's has it, and those
// of its ancestors have a number behind it.
func (p *Path) Each(point decision.Point, id string, ask func(b decision.Branch, id string) decision.Decision) decision.Decision {
	if p.Lineage == nil {
		return ask(PolicyBranch(*p.View.Declared()), id)
	}
	var all decision.Decision
	branches := p.Lineage[point]
	for i, b := range branches {
		one := id
		if i < len(branches)-1 {
			one = fmt.Sprintf("%s-above-%d", id, len(branches)-1-i)
		}
		d := ask(b, one)
		if i > 0 {
			d = all.And(d)
		}
		if !d.Allow {
			return d
		}
		all = d
	}
	return all
}

// fork returns the lineage below which a branch is forked from parent. differs reports whether the policy can
// tell the two apart at a point.
func (l Lineage) fork(parent, b decision.Branch, differs func(decision.Point) bool) Lineage {
	next := Lineage{}
	for _, point := range []decision.Point{decision.List, decision.Call, decision.Result, decision.Release} {
		above := l[point]
		if l == nil {
			above = []decision.Branch{parent}
		}
		if !differs(point) {
			above = above[:len(above)-1]
		}
		next[point] = append(above[:len(above):len(above)], b)
	}
	return next
}

// Fork returns the path of a branch that was forked from that of p. differs reports whether the policy can tell
// the two apart at a point.
func (p *Path) Fork(b decision.Branch, differs func(decision.Point) bool) *Path {
	next := *p
	next.Lineage = p.Lineage.fork(PolicyBranch(*p.View.Declared()), b, differs)
	return &next
}
