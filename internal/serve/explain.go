package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Explanation is everything that decides whether a call of a tool through a branch would run. It is for the operator: it
// names what a client of the branch is never told, such as that a hidden tool exists.
type Explanation struct {
	Generation string `json:"generation"`
	Branch     string `json:"branch"`
	Tool       string `json:"tool"`
	// Principal is who would call.
	Principal decision.Principal `json:"principal"`
	// Outcome is what a call would meet: "callable", "hidden" (not listed, and a call is answered as unknown), "denied",
	// "invalid_arguments", "effector_required", or "listed" where the tool needs arguments and none were given to ask about.
	Outcome string `json:"outcome"`
	// Why is the reason in one line, for everything but "callable".
	Why    string          `json:"why,omitempty"`
	Effect registry.Effect `json:"effect"`
	// Declared is where the tool stands, Fields where its parts do, BranchAt where the branch does.
	Declared problem.Position            `json:"declared"`
	Fields   map[string]problem.Position `json:"fields"`
	BranchAt problem.Position            `json:"branchDeclared"`
	// Admitted says whether the branch's own select and hide leave the tool.
	Admitted bool `json:"admitted"`
	// Server is the upstream server whose tool it is, and ServerAt where that is declared; unset for other bindings.
	Server   string           `json:"server,omitempty"`
	ServerAt problem.Position `json:"serverDeclared,omitzero"`
	// Lock is what is locked of a tool of a server that discovers its tools; nil where nothing is.
	Lock *Locked `json:"lock,omitempty"`
	// Violations are what is wrong with the arguments.
	Violations []Violated `json:"violations,omitempty"`
	// Steps are the decisions in the order in which they are met: connect (where the tool reaches out), discover (where the
	// tool's server discovers its tools), list, call. Call is asked only where arguments were given or needed none.
	Steps []decision.Explanation `json:"steps"`
}

// Violated is one thing that is wrong with the arguments, and where the field is declared that says so.
type Violated struct {
	contract.Violation
	Pos problem.Position `json:"pos"`
}

func (v Violated) String() string { return fmt.Sprintf("%s (declared at %s)", v.Violation, v.Pos) }

// Explain asks every decision that a call meets, with the rules that answered. The arguments may be empty: the call decision
// is then asked for {} where the contract accepts that.
func (g *Generation) Explain(ctx context.Context, branch string, req invoke.Request) (*Explanation, error) {
	tool, principal, args := req.Tool, req.Principal, req.Arguments
	path, ok := g.PathFor(branch, principal)
	if !ok {
		return nil, g.UnknownBranch(branch)
	}
	entry, ok := g.registry.Lookup(tool)
	if !ok {
		return nil, g.unknown(tool)
	}
	b, t := path.View.Branch(), entry.Tool()
	x := &Explanation{
		Generation: g.ID, Branch: branch, Tool: tool, Principal: principal, Effect: t.Effect, Declared: t.Pos, Fields: t.Fields, BranchAt: b.Pos,
		Admitted: b.Admits(t), Steps: []decision.Explanation{},
	}
	if err := g.explainReach(ctx, x, t); err != nil {
		return nil, err
	}
	if err := g.explainLock(ctx, x, t); err != nil {
		return nil, err
	}
	list, err := g.engine.Explain(ctx, decision.List, decision.ListInput{
		Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(entry), Principal: principal,
	})
	if err != nil {
		return nil, err
	}
	x.Steps = append(x.Steps, list)
	if shown, unknown := path.View.Lookup(tool); unknown == nil {
		entry = shown // the branch may be stricter than the tool
	}
	checked, invalid := invoke.Check(ctx, entry, req.Dialect.Arguments(entry.Declared().Args.Schema, args))
	if invalid != nil && len(args) > 0 {
		for _, v := range invalid.Violations {
			x.Violations = append(x.Violations, Violated{v, t.At("args" + strings.ReplaceAll(v.Pointer, "/", "."))})
		}
	}
	call := decision.Explanation{}
	if invalid == nil {
		call, err = g.explainCall(ctx, entry, checked, decision.CallInput{
			Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(entry), Principal: principal, Time: time.Now().UTC(),
		})
		if err != nil {
			return nil, err
		}
		x.Steps = append(x.Steps, call)
	}
	_, unlisted := path.View.Lookup(tool)
	switch {
	case entry.Bound().Hidden != "":
		x.Outcome, x.Why = "hidden", entry.Bound().Hidden
	case !x.Admitted:
		x.Outcome, x.Why = "hidden", leftOut(b)
	case unlisted != nil:
		x.Outcome, x.Why = "hidden", refusal(list.Decision)
	case invalid != nil && len(args) == 0:
		x.Outcome, x.Why = "listed", "the call decision is asked with the arguments; give them with --args"
	case invalid != nil:
		x.Outcome, x.Why = string(invalid.Code), oneLine.Replace(invalid.Msg)
	case !call.Decision.Allow:
		x.Outcome, x.Why = string(registry.Denied), refusal(call.Decision)
	case t.Effect != registry.Read:
		x.Outcome, x.Why = string(registry.EffectorRequired), onlyEffector
	default:
		x.Outcome = "callable"
	}
	return x, nil
}

// explainCall explains the call decision for these arguments without telling what is secret of them.
func (g *Generation) explainCall(ctx context.Context, entry *registry.Entry, args contract.Args, in decision.CallInput) (decision.Explanation, error) {
	in.Arguments = args.JSON()
	x, err := g.engine.Explain(ctx, decision.Call, in)
	if err != nil {
		return x, err
	}
	for i, reason := range x.Decision.Reasons {
		x.Decision.Reasons[i] = entry.Contract().Mask(args, reason)
	}
	in.Arguments = entry.Contract().Redact(args).JSON()
	x.Facts, err = x.FactsOf(in)
	return x, err
}

// oneLine makes a line of an error that lists what is wrong.
var oneLine = strings.NewReplacer(":\n- ", ": ", "\n- ", "; ")

// explainReach adds the connect decision of what the tool reaches: its binding's target, or its server.
func (g *Generation) explainReach(ctx context.Context, x *Explanation, t registry.Tool) error {
	for _, r := range g.reaches {
		own := r.Kind == "tool" && r.Name == t.Name
		server := r.Kind == "server" && t.Binding.MCP != nil && r.Name == t.Binding.MCP.Server
		if !own && !server {
			continue
		}
		step, err := g.engine.Explain(ctx, decision.Connect, r.asked)
		if err != nil {
			return err
		}
		x.Steps = append(x.Steps, step)
		if server {
			x.Server, x.ServerAt = r.Name, r.Pos
		}
	}
	return nil
}

// Locked is what catalog.lock.json has of a tool, and what became of it.
type Locked struct {
	lock.Change
	// Effect is the operator's; At is when it was locked, RFC 3339 in UTC, Version the server's at that time.
	Effect  registry.Effect `json:"effect"`
	At      string          `json:"at"`
	Version string          `json:"version"`
	// Pos is where the tool stands in the lock.
	Pos problem.Position `json:"pos"`
	// Quarantined says why the tool is hidden; empty where it is not.
	Quarantined string `json:"quarantined,omitempty"`
}

// explainLock adds what is locked of a discovered tool, and its discover decision.
func (g *Generation) explainLock(ctx context.Context, x *Explanation, t registry.Tool) error {
	if t.Binding.MCP == nil {
		return nil
	}
	at := remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}
	server, _ := g.made.locked.Server(at.server)
	locked, ok := server.Tool(at.tool)
	asked, discovers := g.questions[at]
	if !ok || !discovers {
		return nil
	}
	x.Lock = &Locked{
		Change: lock.Change{
			Server: at.server, Tool: at.tool, Kind: lock.Kind(asked.Change), From: asked.From, Details: asked.Details, Findings: asked.Findings,
			Locked: locked.Digest,
		},
		Effect: locked.Effect, At: locked.Locked, Version: locked.From, Pos: locked.Pos,
	}
	for _, q := range g.quarantined {
		if q.Server == at.server && q.Tool == at.tool {
			x.Lock.Change, x.Lock.Quarantined = q.Change, q.why()
		}
	}
	step, err := g.engine.Explain(ctx, decision.Discover, asked)
	if err != nil {
		return err
	}
	x.Steps = append(x.Steps, step)
	return nil
}

// ReachExplanation is why one server or tool may be reached or not: what was asked, and the rules that answered.
type ReachExplanation struct {
	Reach
	Explanation decision.Explanation `json:"explanation"`
}

// ExplainReach asks the connect decision of the server and of the outward tool of that name once more, and watches. There
// are two answers where both have the name; the error says that none has it.
func (g *Generation) ExplainReach(ctx context.Context, name string) ([]ReachExplanation, error) {
	var found []ReachExplanation
	var names []string
	for _, r := range g.reaches {
		names = append(names, r.Name)
		if r.Name != name {
			continue
		}
		x, err := g.engine.Explain(ctx, decision.Connect, r.asked)
		if err != nil {
			return nil, err
		}
		found = append(found, ReachExplanation{r, x})
	}
	if len(found) == 0 {
		err := fmt.Errorf("no server and no tool that reaches out has the name %q", name)
		if near := registry.Nearest(name, names); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
		return nil, err
	}
	return found, nil
}

// unknown is the operator's error for a name that the whole catalog doesn't have.
func (g *Generation) unknown(tool string) error {
	for _, d := range g.made.degraded {
		if d.Name == tool {
			return fmt.Errorf("the catalog has no tool %q: %q of server %q is left out: %s", tool, d.Tool, d.Server, d.Reason)
		}
	}
	var names []string
	for _, e := range g.registry.Entries() {
		names = append(names, e.Name())
	}
	err := fmt.Errorf("the catalog has no tool %q", tool)
	if near := registry.Nearest(tool, names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// UnknownBranch is the operator's error for a branch that there is not.
func (g *Generation) UnknownBranch(name string) error {
	all := g.Branches()
	return &UnknownBranchError{Name: name, Nearest: registry.Nearest(name, all), Branches: all}
}

// UnknownBranchError says that there is no branch of that name.
type UnknownBranchError struct {
	Name string
	// Nearest holds names that were perhaps meant, Branches all that there are.
	Nearest, Branches []string
}

func (e *UnknownBranchError) Error() string {
	msg := fmt.Sprintf("there is no branch %q", e.Name)
	switch {
	case len(e.Nearest) > 0:
		msg += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	case 0 < len(e.Branches) && len(e.Branches) <= 20:
		msg += "; there are " + strings.Join(e.Branches, ", ")
	}
	return msg
}

// String is the explanation for people.
func (x *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s through branch %s", x.Tool, x.Branch)
	if x.Principal.Name != decision.Local().Name {
		fmt.Fprintf(&b, " for %s", x.Principal.Name)
	}
	fmt.Fprintf(&b, ": %s", x.Outcome)
	if x.Why != "" && len(x.Violations) == 0 {
		fmt.Fprintf(&b, ": %s", x.Why)
	}
	fmt.Fprintf(&b, "\ntool declared at %s (effect: %s)\nbranch declared at %s", x.Declared, x.Effect, x.BranchAt)
	if !x.Admitted {
		b.WriteString(", which leaves the tool out")
	}
	if x.Server != "" {
		fmt.Fprintf(&b, "\nserver %s declared at %s", x.Server, x.ServerAt)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Fields)) {
		if strings.HasPrefix(name, "args.") {
			fmt.Fprintf(&b, "\nargument %s declared at %s", name[len("args."):], x.Fields[name])
		}
	}
	if x.Lock != nil {
		if x.Lock.Tool != x.Tool {
			fmt.Fprintf(&b, "\nit is %q of server %q", x.Lock.Tool, x.Lock.Server)
		}
		fmt.Fprintf(&b, "\nlocked at %s (effect: %s) on %s from version %s of the server: %s", x.Lock.Pos, x.Lock.Effect, x.Lock.At, x.Lock.Version, x.Lock.Locked)
		if x.Lock.Quarantined != "" {
			fmt.Fprintf(&b, "\nquarantined: %s", x.Lock.Quarantined)
		}
	}
	for _, v := range x.Violations {
		fmt.Fprintf(&b, "\nargument %s", v)
	}
	for _, step := range x.Steps {
		fmt.Fprintf(&b, "\n%s", step)
	}
	return b.String()
}
