package generation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/propose"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// unseenTool is a callable tool that no branch shows.
type unseenTool struct {
	*registry.Entry
	why string
	// admitting are the branches whose select and hide admit it.
	admitting []registry.Branch
}

// unseen warns of callable tools that no branch shows to anybody, and says which lines of the shipped policy's data
// would show them. The discovered tools of one server are one warning. If the policy distinguishes principals
// and the fixtures have none, a tool that the operator doesn't see may be meant for others, and is not reported. Where
// none of several tools is shown, that is one warning, and nothing is true.
func (g *Generation) unseen(ctx context.Context, fixtures Fixtures) (problems problem.List, nothing bool) {
	branches, principals := g.registry.Branches(), fixtures.Principals
	seen := map[string]bool{}
	if len(principals) == 0 {
		principals = []decision.Principal{decision.Local()}
		for _, path := range g.paths { // the views of the operator are known already
			for _, name := range path.View.Catalog() {
				seen[name] = true
			}
		}
	}
	callable := 0
	var found []unseenTool
	for _, e := range g.registry.Entries() {
		tool := e.Declared()
		if e.Hidden() != "" {
			continue
		}
		callable++
		if seen[tool.Name] {
			continue
		}
		admitting := slices.DeleteFunc(slices.Clone(branches), func(b registry.Branch) bool { return !b.Admits(*tool) })
		why := "none admits it by its select and hide" + admits(branches, *tool)
		if len(admitting) > 0 {
			d := g.shownTo(ctx, e, admitting, principals)
			others := g.engine.ReadsBearer(decision.List) || d.Point == decision.Call && g.engine.ReadsBearer(decision.Call)
			if len(fixtures.Principals) == 0 && others {
				continue
			}
			if d.Code == decision.PolicyTimeout { // the next questions would time out too
				problems.Errorf(problem.PolicyTimeout, tool.Pos, "tools."+tool.Name,
					"whether a branch shows the tool %q is not decided: %s; make the rules that the list point asks cheaper", tool.Name, refusal(d))
				return problems, false
			}
			if d.Allow {
				continue
			}
			why = refusal(d)
		}
		found = append(found, unseenTool{e, why, admitting})
	}
	grants := g.grants(ctx, found, principals)
	if len(found) > 1 && len(found) == callable {
		return problem.List{noneSeen(found, grants)}, true
	}
	reported := map[*toolGrant]bool{}
	for _, u := range found {
		tool := u.Declared()
		grant, ok := grants[tool.Name]
		p := problem.Problem{
			Code: problem.UnseenTool, Severity: problem.Warning, Position: tool.Pos, Path: "tools." + tool.Name,
			Message: fmt.Sprintf("no branch shows the tool %q: %s", tool.Name, u.why),
		}
		switch {
		case ok && reported[grant]:
			continue
		case ok && grant.server != "":
			reported[grant] = true
			p.Position, p.Path = g.serverPos(grant.server), "servers."+grant.server
			p.Message = fmt.Sprintf("no branch shows these tools of server %q", grant.server)
		}
		if ok {
			p.Message += grant.where()
			p.Paste = grant.lines()
		}
		problems = append(problems, p)
	}
	return problems, false
}

// noneSeen is the problem of a catalog none of whose tools is shown: it may be meant so while it is set up, and more
// often one mistake hides them all. It has the lines that would show those of one branch, where there are any.
func noneSeen(found []unseenTool, grants map[string]*toolGrant) problem.Problem {
	reasons := map[string]bool{}
	var grant *toolGrant
	for _, u := range found {
		reasons[u.why] = true
		if g := grants[u.Name()]; g != nil {
			if grant == nil {
				grant = &toolGrant{ToolGrant: g.ToolGrant, branch: g.branch}
			}
			if g.branch == grant.branch {
				grant.tools = append(grant.tools, u.Entry)
			}
		}
	}
	p := problem.Problem{
		Code: problem.UnseenTool, Severity: problem.Warning, Position: problem.Position{File: "policy"},
		Message: fmt.Sprintf("no branch shows any of the %d tools to anybody: ", len(found)),
	}
	if len(reasons) > 1 { // those of single tools, of which none says more than the others
		p.Message += fmt.Sprintf("of %s, as an example, ", found[0].Name())
	}
	p.Message += found[0].why
	if grant != nil {
		p.Message += grant.where()
		p.Paste = grant.lines()
	}
	return p
}

// toolGrant says what to write in the data of the shipped policy for a branch to show tools: one, or the discovered
// ones of a server.
type toolGrant struct {
	decision.ToolGrant
	branch, server string
	tools          []*registry.Entry
}

// grants returns what would show the tools, by their names, each on the first branch that admits it. A tool is left
// out if the policy would still deny it.
func (g *Generation) grants(
	ctx context.Context, found []unseenTool, principals []decision.Principal,
) map[string]*toolGrant {
	on := map[string][]unseenTool{}
	var branches []registry.Branch
	for _, u := range found {
		if len(u.admitting) > 0 {
			b := u.admitting[0]
			if on[b.Name] == nil {
				branches = append(branches, b)
			}
			on[b.Name] = append(on[b.Name], u)
		}
	}
	grants, servers := map[string]*toolGrant{}, map[string]*toolGrant{}
	for _, b := range branches {
		var names []string
		for _, u := range on[b.Name] {
			names = append(names, u.Name())
		}
		with, at, ok := g.engine.WithTools(b.Name, names)
		if !ok {
			continue
		}
		for _, u := range on[b.Name] {
			if !slices.ContainsFunc(principals, func(p decision.Principal) bool {
				return with.List(ctx, decision.ListInput{
					Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(u.Entry), Principal: p,
				}).Allow
			}) {
				continue
			}
			grant := &toolGrant{ToolGrant: at, branch: b.Name}
			if u.Declared().Discovered() {
				server := u.Declared().Binding.MCP.Server
				if known := servers[b.Name+"\x00"+server]; known != nil {
					grant = known
				}
				grant.server, servers[b.Name+"\x00"+server] = server, grant
			}
			grant.tools = append(grant.tools, u.Entry)
			grants[u.Name()] = grant
		}
	}
	return grants
}

func (g *Generation) serverPos(name string) problem.Position {
	for _, s := range g.registry.Servers() {
		if s.Name == name {
			return s.Pos
		}
	}
	return problem.Position{}
}

// where says what the lines are, and where they belong.
func (t *toolGrant) where() string {
	under := "branches: in policy/access/data.yaml"
	switch t.Under {
	case "branch":
		under = fmt.Sprintf("the branch %s at %s", t.branch, t.At)
	case "tools":
		under = fmt.Sprintf("tools: of branch %s at %s", t.branch, t.At)
	}
	below := "below"
	if t.Inline {
		below = "in the brackets of"
	}
	switch {
	case t.server == "" && len(t.tools) > 1:
		return fmt.Sprintf("; put those that are meant %s %s", below, under)
	case t.server == "":
		return fmt.Sprintf("; if it is meant, put this %s %s", below, under)
	}
	return fmt.Sprintf("; put those that are meant %s %s, and leave out what nobody uses (discover: except)", below, under)
}

// lines are the names as the data takes them; where each has a line, with its effect.
func (t *toolGrant) lines() string {
	var b strings.Builder
	if t.Inline {
		for i, e := range t.tools {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(propose.Scalar(e.Name()))
		}
		return b.String()
	}
	line := func(indent int, text string) { fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", indent), text) }
	indent := t.Indent
	if t.Under == "branches" {
		line(indent, t.branch+":")
		indent += 2
	}
	if t.Under != "tools" {
		line(indent, "tools:")
		indent += 2
	}
	for _, e := range t.tools {
		line(indent, "- "+propose.Scalar(e.Name())+" # "+string(e.Effect()))
	}
	return b.String()
}

// admits says which change of a branch's selectors would admit the tool.
func admits(branches []registry.Branch, tool registry.Tool) string {
	for _, b := range branches {
		if b.Select != nil && !b.Select.Matches(tool) && (b.Hide == nil || !b.Hide.Matches(tool)) {
			if len(b.Select.Tags) > 0 {
				return fmt.Sprintf("; give the tool the tag %q, or add its name to names in branches.%s.select", b.Select.Tags[0], b.Name)
			}
			return fmt.Sprintf("; add %q to names in branches.%s.select", tool.Name, b.Name)
		}
	}
	return ""
}

// shownTo returns the first decision that shows the tool to one of the principals or timed out, or else the
// first.
func (g *Generation) shownTo(ctx context.Context, e *registry.Entry, branches []registry.Branch, principals []decision.Principal) (first decision.Decision) {
	engine := g.engine.WithBuildDeadline()
	for i, b := range branches {
		for j, who := range principals {
			d := listed(ctx, engine, decision.ListInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(e), Principal: who})
			if d.Allow || d.Code == decision.PolicyTimeout {
				return d
			}
			if i == 0 && j == 0 {
				first = d
			}
		}
	}
	return first
}
