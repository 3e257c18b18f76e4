package invoke

import (
	"fmt"

	"github.com/catalogd/catalogd/decision"
)

// Asked is a branch of which a decision is asked.
type Asked struct {
	decision.Branch
	// For are the addresses of the ancestors whose decision it is as well, the declared one first: the policy
	// can't tell them from the branch.
	For []string
}

// Lineage holds, by decision point, the branches that must all allow what a conversation branch does: the
// declared branch first and the branch itself last. A Lineage is never modified.
type Lineage map[decision.Point][]Asked

// Asked returns the branches that must all allow at a point, in the order in which they are asked: the
// declared branch first and that of the path last. What is returned must not be modified.
func (p *Path) Asked(point decision.Point) []Asked {
	if p.Lineage == nil {
		return []Asked{{Branch: PolicyBranch(*p.View.Declared())}}
	}
	return p.Lineage[point]
}

// Each asks each branch that must allow (Asked) until one denies, and returns the decision that all of them
// make together (decision.Decision.And). id names the decision for the log: the last branch's has it, and
// those of its ancestors have a number behind it.
func (p *Path) Each(
	point decision.Point, id string, ask func(b decision.Branch, id string) decision.Decision,
) decision.Decision {
	var all decision.Decision
	branches := p.Asked(point)
	for i, b := range branches {
		one := id
		if i < len(branches)-1 {
			one = fmt.Sprintf("%s-above-%d", id, len(branches)-1-i)
		}
		d := ask(b.Branch, one)
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

// fork returns the lineage below which a branch is forked from that of p. differs reports whether the
// policy can tell the two apart at a point.
func (p *Path) fork(b decision.Branch, differs func(decision.Point) bool) Lineage {
	next := Lineage{}
	for _, point := range []decision.Point{decision.List, decision.Call, decision.Result, decision.Release} {
		above, asked := p.Asked(point), Asked{Branch: b}
		if !differs(point) {
			last := above[len(above)-1]
			asked.For = append(last.For[:len(last.For):len(last.For)], p.View.Declared().Address())
			above = above[:len(above)-1]
		}
		next[point] = append(above[:len(above):len(above)], asked)
	}
	return next
}

// Fork returns the path of a branch that was forked from that of p. differs reports whether the policy can
// tell the two apart at a point.
func (p *Path) Fork(b decision.Branch, differs func(decision.Point) bool) *Path {
	next := *p
	next.Lineage = p.fork(b, differs)
	return &next
}
