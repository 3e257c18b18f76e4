package generation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// Step is one decision of an Explanation.
type Step struct {
	// Branch is the one of which the decision is asked, where a conversation branch is explained. For are the
	// branches above it whose decision it is as well, because the policy can't tell them apart.
	Branch string   `json:"branch,omitempty"`
	For    []string `json:"for,omitempty"`
	decision.Explanation
}

// String returns the step as text for people.
func (s Step) String() string {
	text := s.Explanation.String()
	if s.Branch == "" {
		return text
	}
	asked := "\n  asked of " + s.Branch
	if len(s.For) > 0 {
		asked += ", and so of " + strings.Join(s.For, ", ") + ": the policy reads nothing in which they differ"
	}
	first, rest, more := strings.Cut(text, "\n")
	if more {
		rest = "\n" + rest
	}
	return first + asked + rest
}

// ExplainedBranch is what one branch of a lineage makes of a tool.
type ExplainedBranch struct {
	// Branch is the name of the branch.
	Branch string `json:"branch"`
	// Shows is the name by which it shows the tool; empty if it does not, and Why is the reason.
	Shows string `json:"shows,omitempty"`
	Why   string `json:"why,omitempty"`
	// Narrow is what a conversation branch narrows of the tool; nil if nothing.
	Narrow *registry.Narrowing `json:"narrow,omitempty"`
}

func (b ExplainedBranch) String() string {
	switch {
	case b.Shows == "":
		return fmt.Sprintf("branch %s does not show it: %s", b.Branch, b.Why)
	case b.Narrow != nil:
		return fmt.Sprintf("branch %s shows it as %s, narrowed", b.Branch, b.Shows)
	}
	return fmt.Sprintf("branch %s shows it as %s", b.Branch, b.Shows)
}

// withheld is why a branch does not show a tool; the zero value if it does.
type withheld struct {
	why string
	// policy says that a list decision, or a call decision about every call, is the reason.
	policy bool
}

// each explains a point for each branch that is asked, and returns the decision of all together.
func (x *explaining) each(
	point decision.Point, ask func(decision.Branch) (decision.Explanation, error),
) (all decision.Decision, err error) {
	for i, b := range x.path.Asked(point) {
		step, err := ask(b.Branch)
		if err != nil {
			return all, err
		}
		s := Step{Explanation: step}
		if x.Lineage != nil {
			s.Branch, s.For = cmp.Or(b.Session, b.Name), b.For
		}
		x.Steps = append(x.Steps, s)
		if i == 0 {
			all = step.Decision
		} else {
			all = all.And(step.Decision)
		}
	}
	return all, nil
}

// lineage sets what the declared branch and those below it make of the tool, and returns why the branch
// that is explained does not show it.
func (x *explaining) lineage(ctx context.Context) (withheld, error) {
	chain, forked := x.g.conversations.Chain(x.Branch, OwnerOf(x.who))
	path := x.path
	if forked {
		var ok bool
		if path, ok = x.g.PathFor(chain[0].Root, x.who); !ok {
			return withheld{}, x.g.UnknownBranch(x.Branch) // it has ended
		}
	}
	root := path.View.Branch()
	x.root = root
	x.BranchAt, x.Admitted = root.Pos, leavesIn(root, x.entry)
	x.narrowedBy(root)
	hidden := withheld{why: x.entry.Hidden()}
	if hidden.why == "" && !x.Admitted {
		hidden.why = leftOut(root)
	}
	from := slices.IndexFunc(chain, func(c conversation.Branch) bool { return c.Functions[x.Tool] == x.entry })
	switch {
	case hidden.why != "" || from >= 0 || path.View.Declares(x.Tool) != nil:
	case isBuiltin(x.entry) && !writes(path.View):
		hidden.why = NoWrites
	default:
		hidden = withheld{refusal(x.listed(ctx, root)), true}
	}
	if !forked {
		return hidden, nil
	}
	if from >= 0 {
		x.AddedTo = chain[from].Name
		x.made(root.Name, path, withheld{why: addedBelow}, nil)
	} else {
		x.made(root.Name, path, hidden, nil)
	}
	for i, c := range chain {
		if hidden.why != "" && i > from {
			return hidden, nil
		}
		parent := path
		var ok bool
		if path, ok = x.g.PathFor(c.Name, x.who); !ok {
			return withheld{}, x.g.UnknownBranch(x.Branch)
		}
		switch {
		case i < from:
			x.made(c.Name, path, withheld{why: addedBelow}, nil)
			continue
		case i == from:
			hidden = x.addedHere(parent, path, c)
			x.made(c.Name, path, hidden, nil)
			continue
		}
		hidden = x.belowParent(ctx, parent, path, c)
		var narrow *registry.Narrowing
		if n, ok := c.Narrow[parent.View.Declares(x.Tool).Name()]; ok {
			narrow = &n
		}
		x.made(c.Name, path, hidden, narrow)
	}
	return hidden, nil
}

// addedBelow is why a branch does not show a Go function.
const addedBelow = "the Go function was added to a fork below it"

// addedHere returns why a conversation branch does not show the Go function that was added to it.
func (x *explaining) addedHere(parent, own *invoke.Path, c conversation.Branch) withheld {
	if own.View.Find(x.Tool) == x.entry {
		return withheld{}
	}
	if what := x.g.nameHolder(parent.View, c.Terms, x.Tool); what != "" {
		return withheld{why: "its name is taken: " + what}
	}
	if x.g.leftOutAbove(c, x.entry) != "" {
		x.Admitted = false
		return withheld{why: x.g.withheldFunction(own, c, x.entry, x.who)}
	}
	return withheld{x.g.withheldFunction(own, c, x.entry, x.who), true}
}

func (x *explaining) made(branch string, path *invoke.Path, hidden withheld, narrow *registry.Narrowing) {
	b := ExplainedBranch{Branch: branch, Why: hidden.why, Narrow: narrow}
	if e := path.View.Declares(x.Tool); e != nil {
		b.Shows = e.Name()
	}
	x.Lineage = append(x.Lineage, b)
}

// narrowedBy sets what a declared branch narrows of the tool.
func (x *explaining) narrowedBy(b registry.Branch) {
	n, ok := b.Narrow[x.Tool]
	if !ok {
		return
	}
	at := "narrow." + x.Tool
	x.Narrowed = &NarrowedTool{Pos: b.At(at), Fields: below(b.Fields, at), Args: n.Args}
	if shown := b.Shown(x.Tool); shown != x.Tool {
		x.Narrowed.Name = shown
	}
}

// listed decides whether the policy shows the tool in a branch.
func (x *explaining) listed(ctx context.Context, b registry.Branch) decision.Decision {
	return listed(ctx, x.g.engine, decision.ListInput{
		Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(x.entry), Principal: x.who,
	})
}

// belowParent returns why a conversation branch does not show the tool that its parent shows.
func (x *explaining) belowParent(
	ctx context.Context, parent, own *invoke.Path, c conversation.Branch,
) withheld {
	if own.View.Declares(x.Tool) != nil {
		return withheld{}
	}
	e := parent.View.Declares(x.Tool)
	n, narrowed := c.Narrow[e.Name()]
	if !termsAdmit(c.Terms, e) {
		x.Admitted = false
		if _, said := c.Tools[e.Name()]; said {
			return withheld{why: "it was removed from the branch"}
		}
		return withheld{why: "the branch's select or hide leaves it out"}
	}
	if isBuiltin(e) && !writes(own.View) {
		return withheld{why: NoWrites}
	}
	if narrowed {
		if err := parent.View.CheckNarrowing(e.Name(), n); err != nil {
			return withheld{why: "narrow doesn't fit it: " + err.Error()}
		}
	}
	if d := x.listed(ctx, own.View.Branch()); !d.Allow {
		return withheld{refusal(d), true}
	}
	return withheld{why: fmt.Sprintf("the branch would show two tools as %q", c.Shown(e.Name()))}
}
