package generation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/registry"
)

// accessData is the file with the data of the shipped policy, and accessRules the package that reads it.
const (
	accessData    = "policy/access/data.yaml"
	accessRules   = "catalogd.lib.access"
	approvalRules = "catalogd.lib.approval"
)

// advise sets what to change, and the next command.
func (x *Explanation) advise(b *Brief) {
	switch {
	case x.Outcome == "callable":
		b.Change = "nothing; " + x.takenAwayBy()
	case x.Outcome == "listed":
		b.Change = "nothing; give the arguments of the call"
		x.askWithArguments(b)
	case len(x.Violations) > 0 && x.Outcome != "hidden":
		b.Change = "the arguments of the call"
		x.askWithArguments(b)
	case x.Outcome == string(Approval):
		b.Change = "nothing, if a person is to decide; " + x.asksForApproval()
	case x.unavailable != "":
		x.adviseUnavailable(b)
	case x.Outcome == "hidden" && x.Why == NoWrites:
		b.Change = "let the branch show a tool with a side effect; the built-in tools come with it"
	case x.Outcome == "hidden" && !x.byPolicy:
		b.Change = x.selecting()
	default:
		if s := x.deciding(); s != nil {
			b.Change = x.allowing(s)
		} else {
			b.Change = "what the reason names"
		}
	}
	if x.Outcome != "hidden" {
		return
	}
	// What else hides it, once that is changed.
	if x.unavailable != "" && !x.Admitted && x.Lineage == nil {
		b.Change += "; and then: " + x.selecting()
	}
	for _, s := range x.Steps {
		if more := x.allowing(&s); hides(s) && !strings.Contains(b.Change, more) {
			b.Change += "; and then: " + more
		}
	}
}

// hides reports whether a step hides the tool: a list decision that denies, or a call decision that does so whatever
// the arguments are, as far as its rules show.
func hides(s Step) bool {
	if s.Decision.Allow || s.Decision.Point != decision.Call {
		return !s.Decision.Allow && s.Decision.Point == decision.List
	}
	rules := s.Responsible()
	return evaluated(s, accessRules, "refusals") || len(rules) > 0 && rules[0].Name != "deny"
}

// askWithArguments makes the next command one with valid arguments, or one that shows what the tool takes.
func (x *Explanation) askWithArguments(b *Brief) {
	for _, e := range x.tool.Examples {
		if e.Rejected == "" && x.Narrowed == nil && x.Lineage == nil {
			b.Next, b.Arguments = fmt.Sprintf("catalogd explain %s %s", x.Branch, x.Tool), e.Args
			return
		}
	}
	b.Next = fmt.Sprintf("catalogd schema %s %s", x.Branch, x.shown)
}

// takenAwayBy says what would hide a tool that is listed.
func (x *Explanation) takenAwayBy() string {
	for _, s := range x.Steps {
		if s.Decision.Point == decision.List && evaluated(s, accessRules, "granted") {
			return fmt.Sprintf("`deny: [%s]` in the entry of branch %s in %s takes it away",
				x.Tool, x.root.Name, accessData)
		}
	}
	return fmt.Sprintf("`hide: names: [%q]` in the branch at %s takes it away", x.Tool, x.BranchAt)
}

// asksForApproval says what asks for the approval.
func (x *Explanation) asksForApproval() string {
	s := x.deciding()
	if slices.ContainsFunc(s.Rules, func(r decision.Rule) bool { return r.Package == approvalRules }) {
		return fmt.Sprintf("approve: of branch %s in %s asks for it", x.root.Name, accessData)
	}
	for _, r := range s.Responsible() {
		if r.Name == "require_approval" {
			return fmt.Sprintf("the rule at %s asks for it", r.Position)
		}
	}
	return "the policy asks for it"
}

// adviseUnavailable is for a tool that no branch can show.
func (x *Explanation) adviseUnavailable(b *Brief) {
	switch {
	case x.Lock != nil && x.Lock.Quarantined != "":
		b.Change = fmt.Sprintf("if the server's definition is wanted, review it and run `catalogd lock --accept %s`",
			x.Tool)
		if s := x.deciding(); s != nil && s.Decision.Code == decision.Denied {
			b.Change = x.allowing(s)
		}
		b.Next = "catalogd drift"
	case x.unavailable == absent:
		b.Change = "the program that embeds the catalog: register the function there, or describe it with --functions"
	case strings.HasSuffix(x.unavailable, notDecided):
		b.Change = "nothing for now: it is decided at the next build; the next command reports rules that are too slow"
		b.Next = "catalogd check"
	case strings.Contains(x.unavailable, notTrusted):
		name := x.Tool
		if x.Server != "" {
			name = x.Server
		}
		b.Change = "if it is meant, put the entry that the next command prints below entries: in policy/trust/data.yaml"
		b.Next = "catalogd trust --propose " + name
	case strings.Contains(x.unavailable, egress.NotHere):
		b.Change = "install the command on the machine that serves, and reload (SIGHUP, or any change of the files)"
		b.Next = "catalogd doctor"
	case strings.Contains(x.unavailable, egress.NotRunnable):
		b.Change = "the file that the reason names, on the machine that serves; " +
			"then reload (SIGHUP, or any change of the files)"
		b.Next = "catalogd doctor"
	default:
		b.Change = "what the reason names; the next command has its position, and what to do"
		b.Next = "catalogd check"
	}
}

// selecting says which change of a branch's selectors would admit the tool.
func (x *Explanation) selecting() string {
	if n := len(x.Lineage); n > 1 {
		return fmt.Sprintf("the conversation branch %s, by its owner (PATCH /branches/%[1]s); no file says it",
			x.Lineage[n-1].Branch)
	}
	if h := x.root.Hide; h != nil && h.Matches(x.tool) {
		return fmt.Sprintf("hide at %s: take out %s", x.root.At("hide"), matching(*h, x.tool))
	}
	if s := x.root.Select; s != nil && !s.Matches(x.tool) {
		change := fmt.Sprintf("add %q to `select: names: [...]` at %s", x.Tool, x.root.At("select"))
		if len(s.Tags) > 0 {
			change += fmt.Sprintf(", or the tag %q to the tool", s.Tags[0])
		}
		return change
	}
	return fmt.Sprintf("the branch at %s", x.BranchAt)
}

// matching names what of a selector matches the tool.
func matching(s registry.Selector, t registry.Tool) string {
	var all []string
	for _, name := range s.Names {
		if registry.MatchName(name, t.Name) {
			all = append(all, fmt.Sprintf("the name %q", name))
		}
	}
	for _, tag := range s.Tags {
		if slices.Contains(t.Tags, tag) {
			all = append(all, fmt.Sprintf("the tag %q", tag))
		}
	}
	if t.Binding.MCP != nil && slices.Contains(s.Servers, t.Binding.MCP.Server) {
		all = append(all, fmt.Sprintf("the server %q", t.Binding.MCP.Server))
	}
	return strings.Join(all, " and ")
}

// evaluated reports whether a rule was true for the step.
func evaluated(s Step, pkg, name string) bool {
	return slices.ContainsFunc(s.Rules, func(r decision.Rule) bool { return r.Package == pkg && r.Name == name })
}

// allowing says which change of the policy would make a decision that denies allow.
func (x *Explanation) allowing(s *Step) string {
	if s.Decision.Code != decision.Denied && s.Decision.Code != decision.Undefined {
		return "the policy, which fails to decide: the reason names the place"
	}
	rules := s.Responsible()
	if data := x.granting(s); data != "" {
		// The rule of the shipped policy that passes on what the data says is in the file of the point.
		rules = slices.DeleteFunc(slices.Clone(rules), func(r decision.Rule) bool {
			return r.File == fmt.Sprintf("policy/%s.rego", s.Decision.Point)
		})
		if len(rules) == 0 || rules[0].Name != "deny" {
			return data
		}
		return data + "; and " + x.changing(s, rules)
	}
	return x.changing(s, rules)
}

// granting says which change of the shipped policy's data would grant the tool to the branch; empty if the data is
// not why a step denies.
func (x *Explanation) granting(s *Step) string {
	branch := x.root.Name
	reads := func(name string) bool { return evaluated(*s, accessRules, name) }
	switch {
	case !reads("refusals"):
	case !reads("grant"):
		return fmt.Sprintf("put `%s: {tools: [%s]}` below branches: in %s", branch, x.Tool, accessData)
	case reads("denied"):
		return fmt.Sprintf("take what fits %s out of deny: of branch %s in %s", x.Tool, branch, accessData)
	case reads("hidden"):
		return fmt.Sprintf("the rule below hide: in %s that fits the branch's labels and a tag of the tool (%s)",
			accessData, strings.Join(x.tool.Tags, ", "))
	case !reads("offered"):
		return fmt.Sprintf("add %s to tools: of branch %s in %s, and %s to its effects: if it has that field",
			x.Tool, branch, accessData, x.Effect)
	}
	return ""
}

// changing says what to change where these rules of the policy are why a step denies.
func (x *Explanation) changing(s *Step, rules []decision.Rule) string {
	branch := x.root.Name
	if len(rules) == 0 {
		return fmt.Sprintf("add a rule `allow if ...` of package catalogd.%s to policy/", s.Decision.Point)
	}
	if rules[0].Name != "deny" && s.Decision.Point == decision.Discover {
		return fmt.Sprintf("make a rule at %s true, or add one", rules[0].Position)
	}
	if rules[0].Name != "deny" {
		also := ""
		if s.Decision.Point == decision.List {
			also = " (and to package catalogd.call, if that denies it too)"
		}
		return fmt.Sprintf("add `allow if [input.branch.name, input.tool.name] == [%q, %q]` to %s%s, "+
			"or make the rule there true", branch, x.Tool, rules[0].File, also)
	}
	var looksAt []string
	for _, f := range s.Facts {
		if !strings.HasPrefix(f.Path, "input.branch") && !strings.HasPrefix(f.Path, "input.tool") {
			looksAt = append(looksAt, f.Path)
		}
	}
	change := fmt.Sprintf("the rule `%s` at %s", rules[0].Text, rules[0].Position)
	if len(looksAt) > 0 {
		change += ", or what it looks at: " + strings.Join(looksAt, ", ")
	}
	return change
}
