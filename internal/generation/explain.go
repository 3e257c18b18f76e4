package generation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Explanation is everything that decides whether a call of a tool through a branch would run. It is for the
// operator only: it contains what clients of the branch must not learn, such as that a hidden tool exists.
type Explanation struct {
	Generation string `json:"generation"`
	Branch     string `json:"branch"`
	Tool       string `json:"tool"`
	// Principal is the caller.
	Principal decision.Principal `json:"principal"`
	// Outcome is the result of a call: "callable", "hidden" (not listed, and a call is answered as unknown),
	// "denied", "invalid_arguments", "approval" (it must be approved first), "refused" (its intent would not
	// be released), or "listed" if the tool needs arguments and none were given.
	Outcome string `json:"outcome"`
	// Why is the reason in one line, for every outcome but "callable".
	Why    string          `json:"why,omitempty"`
	Effect registry.Effect `json:"effect"`
	// EffectNote is the author's reason why a tool that sends or runs something only reads; nil if there is none.
	EffectNote *EffectNote `json:"effectNote,omitempty"`
	// Declared is the position of the tool, Fields those of its parts, BranchAt that of the branch.
	Declared problem.Position            `json:"declared"`
	Fields   map[string]problem.Position `json:"fields"`
	BranchAt problem.Position            `json:"branchDeclared"`
	// Narrowed is what the branch narrows of the tool; nil if nothing.
	Narrowed *NarrowedTool `json:"narrowed,omitempty"`
	// Admitted says whether the branch's select and hide admit the tool.
	Admitted bool `json:"admitted"`
	// Server is the upstream server of the tool, and ServerAt its position; unset for other bindings.
	Server   string           `json:"server,omitempty"`
	ServerAt problem.Position `json:"serverDeclared,omitzero"`
	// Lock is the locked state of a discovered tool; nil if nothing is locked.
	Lock *Locked `json:"lock,omitempty"`
	// Violations are the faults of the arguments.
	Violations []Violated `json:"violations,omitempty"`
	// Steps are the decisions in their order: connect (if the tool reaches a target), discover (if the tool's
	// server discovers its tools), list, call, release. Call is evaluated only if arguments were given or
	// none are needed, and release only for an allowed call of a tool with a side effect: as if the call were
	// made, and its approval given, at this moment.
	Steps []decision.Explanation `json:"steps"`
}

// NarrowedTool is what a branch narrows of a tool.
type NarrowedTool struct {
	// Name is the name by which the branch shows the tool; empty if that is the one in the catalog.
	Name string              `json:"name,omitempty"`
	Args *contract.Narrowing `json:"args,omitempty"`
	// Pos is the position of the narrowing, Fields those of its parts.
	Pos    problem.Position            `json:"pos"`
	Fields map[string]problem.Position `json:"fields"`
}

// below returns the positions of the fields below a path, by the rest of their path.
func below(fields map[string]problem.Position, path string) map[string]problem.Position {
	out := map[string]problem.Position{}
	for name, pos := range fields {
		if rest, ok := strings.CutPrefix(name, path+"."); ok {
			out[rest] = pos
		}
	}
	return out
}

// declared returns the tool that a branch shows under a name, or else the one that the catalog has under it.
func (g *Generation) declared(b registry.Branch, tool string) (*registry.Entry, bool) {
	if name, ok := b.Catalog(tool); ok {
		if e, ok := g.registry.Lookup(name); ok {
			return e, true
		}
	}
	return g.registry.Lookup(tool)
}

// Violated is one fault of the arguments, with the position of the declaration that it violates.
type Violated struct {
	contract.Violation
	Pos problem.Position `json:"pos"`
}

func (v Violated) String() string { return fmt.Sprintf("%s (declared at %s)", v.Violation, v.Pos) }

// Explain evaluates every decision about a call, with the rules that answered. If the arguments are empty,
// the call decision is evaluated for {} if the contract accepts that.
func (g *Generation) Explain(ctx context.Context, branch string, req invoke.Request) (*Explanation, error) {
	tool, principal, args := req.Tool, req.Principal, req.Arguments
	path, ok := g.PathFor(branch, principal)
	if !ok {
		return nil, g.UnknownBranch(branch)
	}
	b := path.View.Branch()
	entry, ok := g.declared(b, tool)
	if !ok {
		return nil, g.unknown(tool)
	}
	t := entry.Tool()
	tool = b.Shown(t.Name)
	x := &Explanation{
		Generation: g.ID, Branch: branch, Tool: t.Name, Principal: principal, Effect: t.Effect, Declared: t.Pos, Fields: t.Fields, BranchAt: b.Pos,
		Admitted: b.Admits(t), Steps: []decision.Explanation{},
	}
	if note, ok := effectNote(t); ok {
		x.EffectNote = &note
	}
	if n, ok := b.Narrow[t.Name]; ok {
		at := "narrow." + t.Name
		x.Narrowed = &NarrowedTool{Pos: b.At(at), Fields: below(b.Fields, at), Args: n.Args}
		if tool != t.Name {
			x.Narrowed.Name = tool
		}
	}
	if err := g.explainReach(ctx, x, t); err != nil {
		return nil, err
	}
	if err := g.explainLock(ctx, x, t); err != nil {
		return nil, err
	}
	listing := decision.ListInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(entry), Principal: principal}
	list, err := g.engine.WithBuildDeadline().Explain(ctx, decision.List, listing)
	if err != nil {
		return nil, err
	}
	x.Steps = append(x.Steps, list)
	if shown, unknown := path.View.Lookup(tool); unknown == nil {
		entry = shown // the branch may narrow the tool's contract
	}
	checked, invalid := invoke.Check(ctx, entry, req.Dialect.Arguments(entry.Declared().Args.Schema, args))
	if invalid != nil && len(args) > 0 {
		for _, v := range invalid.Violations {
			x.Violations = append(x.Violations, Violated{v, t.At("args" + strings.ReplaceAll(v.Pointer, "/", "."))})
		}
	}
	var call, release decision.Explanation
	if invalid == nil {
		asked := decision.CallInput{Branch: invoke.PolicyBranch(b), Tool: invoke.PolicyTool(entry), Principal: principal, Time: time.Now().UTC()}
		call, err = g.explainCall(ctx, entry, checked, asked)
		if err != nil {
			return nil, err
		}
		x.Steps = append(x.Steps, call)
		if call.Decision.Allow && t.Effect != registry.Read {
			release, err = g.explainRelease(ctx, entry, checked, releaseOf(asked, call.Decision.RequireApproval))
			if err != nil {
				return nil, err
			}
			x.Steps = append(x.Steps, release)
		}
	}
	shown := listed(ctx, g.engine, listing)
	if invalid != nil && list.Decision.Allow && !shown.Allow { // the call decision hides it whatever the arguments
		call, err = g.engine.Explain(ctx, decision.Call, calling(listing))
		if err != nil {
			return nil, err
		}
		x.Steps = append(x.Steps, call)
	}
	_, unlisted := path.View.Lookup(tool)
	switch {
	case entry.Hidden() != "":
		x.Outcome, x.Why = "hidden", entry.Hidden()
	case !x.Admitted:
		x.Outcome, x.Why = "hidden", leftOut(b)
	case unlisted != nil:
		x.Outcome, x.Why = "hidden", refusal(shown)
	case invalid != nil && len(args) == 0:
		x.Outcome, x.Why = "listed", "the call decision is asked with the arguments; give them with --args"
	case invalid != nil:
		x.Outcome, x.Why = string(invalid.Code), oneLine.Replace(invalid.Msg)
	case !call.Decision.Allow:
		x.Outcome, x.Why = string(registry.Denied), refusal(call.Decision)
	case t.Effect != registry.Read && !release.Decision.Allow:
		x.Outcome, x.Why = string(Refused), refusal(release.Decision)
	case call.Decision.RequireApproval != nil:
		x.Outcome, x.Why = string(Approval), waiting(call.Decision)
	default:
		x.Outcome = "callable"
	}
	return x, nil
}

// explainCall explains the call decision for these arguments, with their secrets redacted.
func (g *Generation) explainCall(ctx context.Context, entry *registry.Entry, args contract.Args, in decision.CallInput) (decision.Explanation, error) {
	in.Arguments = args.JSON()
	x, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Call, in)
	if err != nil {
		return x, err
	}
	in.Arguments = entry.Contract().Redact(args).JSON()
	return masking(entry, args, in)(x), nil
}

// explainRelease is explainCall for the release decision.
func (g *Generation) explainRelease(ctx context.Context, entry *registry.Entry, args contract.Args, in decision.ReleaseInput) (decision.Explanation, error) {
	in.Arguments = args.JSON()
	x, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Release, in)
	if err != nil {
		return x, err
	}
	in.Arguments = entry.Contract().Redact(args).JSON()
	return masking(entry, args, in)(x), nil
}

// releaseOf returns the input of the release decision about a call that has no intent yet: as if it were
// staged at the time of the call, and its approval given at once, by a member of the first group or else by
// the caller.
func releaseOf(call decision.CallInput, approval *decision.Approval) decision.ReleaseInput {
	in := decision.ReleaseInput{
		Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Arguments: call.Arguments, Intent: decision.NewIntent(call.Time), Time: call.Time,
	}
	if approval == nil {
		return in
	}
	by := decision.Approver{Name: call.Principal.Name, Groups: call.Principal.Groups}
	if len(approval.Groups) > 0 {
		by = decision.Approver{Name: "(one in " + approval.Groups[0] + ")", Groups: approval.Groups[:1]}
	}
	in.Intent.Approval = &decision.IntentApproval{
		Asked: decision.AskedApproval{Groups: approval.Groups, Reason: approval.Reason, Self: approval.Self}, By: by, At: call.Time,
	}
	return in
}

// oneLine joins an error that lists violations into one line.
var oneLine = strings.NewReplacer(":\n- ", ": ", "\n- ", "; ")

// explainReach adds the connect decision about the tool's target or its server.
func (g *Generation) explainReach(ctx context.Context, x *Explanation, t registry.Tool) error {
	for _, r := range g.reaches {
		own := r.Kind == "tool" && r.Name == t.Name
		server := r.Kind == "server" && t.Binding.MCP != nil && r.Name == t.Binding.MCP.Server
		if !own && !server {
			continue
		}
		step, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Connect, r.asked)
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

// Locked is the state of a tool in catalog.lock.json.
type Locked struct {
	lockfile.Change
	// Effect is the one that the operator set; At is when the tool was locked, RFC 3339 in UTC; Version is
	// the server's at that time.
	Effect  registry.Effect `json:"effect"`
	At      string          `json:"at"`
	Version string          `json:"version"`
	// Pos is the tool's position in the lock.
	Pos problem.Position `json:"pos"`
	// Quarantined is the reason why the tool is hidden; empty if it is not.
	Quarantined string `json:"quarantined,omitempty"`
}

// explainLock adds the locked state of a discovered tool, and its discover decision.
func (g *Generation) explainLock(ctx context.Context, x *Explanation, t registry.Tool) error {
	if t.Binding.MCP == nil {
		return nil
	}
	at := remote{t.Binding.MCP.Server, t.Binding.MCP.Tool}
	server, _ := g.inputs.locked.Server(at.server)
	locked, ok := server.Tool(at.tool)
	asked, discovers := g.questions[at]
	if !ok || !discovers {
		return nil
	}
	x.Lock = &Locked{
		Change: lockfile.Change{
			Server: at.server, Tool: at.tool, Kind: lockfile.Kind(asked.Change), From: asked.From, Details: asked.Details, Findings: asked.Findings,
			Locked: locked.Digest,
		},
		Effect: locked.Effect, At: locked.Locked, Version: locked.From, Pos: locked.Pos,
	}
	for _, q := range g.quarantined {
		if q.Server == at.server && q.Tool == at.tool {
			x.Lock.Change, x.Lock.Quarantined = q.Change, q.why()
		}
	}
	step, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Discover, asked)
	if err != nil {
		return err
	}
	x.Steps = append(x.Steps, step)
	return nil
}

// ReachExplanation explains the connect decision about one server or tool: the input, and the rules that
// answered.
type ReachExplanation struct {
	Reach
	Explanation decision.Explanation `json:"explanation"`
}

// ExplainReach evaluates again, with tracing, the connect decision of the server and of the tool of that
// name. It returns two explanations if both exist, and an error if none does.
func (g *Generation) ExplainReach(ctx context.Context, name string) ([]ReachExplanation, error) {
	var found []ReachExplanation
	for _, r := range g.reaches {
		if r.Name != name {
			continue
		}
		x, err := g.engine.WithBuildDeadline().Explain(ctx, decision.Connect, r.asked)
		if err != nil {
			return nil, err
		}
		found = append(found, ReachExplanation{r, x})
	}
	if len(found) == 0 {
		return nil, g.unreachedName(name)
	}
	return found, nil
}

// unknown returns the operator's error for a tool that the catalog doesn't have.
func (g *Generation) unknown(tool string) error {
	if invoke.Builtin(tool) {
		return fmt.Errorf("%q is a built-in tool, which no file declares: a branch lists it beside a tool with a side effect, "+
			"where the list and call decisions allow it (policy/access/data.yaml: deny)", tool)
	}
	for _, d := range g.inputs.degraded {
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

// UnknownBranch returns the operator's error for a branch that doesn't exist.
func (g *Generation) UnknownBranch(name string) error {
	all := g.Branches()
	return &UnknownBranchError{Name: name, Nearest: registry.Nearest(name, all), Branches: all}
}

// UnknownBranchError reports that there is no branch of that name.
type UnknownBranchError struct {
	Name string
	// Nearest holds similar names, Branches all names.
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

// String returns the explanation as text for people.
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
	fmt.Fprintf(&b, "\ntool declared at %s (effect: %s)", x.Declared, x.Effect)
	if n := x.EffectNote; n != nil {
		fmt.Fprintf(&b, "\neffect note at %s: %s", n.Pos, n)
	}
	fmt.Fprintf(&b, "\nbranch declared at %s", x.BranchAt)
	if !x.Admitted {
		b.WriteString(", which leaves the tool out")
	}
	if x.Server != "" {
		fmt.Fprintf(&b, "\nserver %s declared at %s", x.Server, x.ServerAt)
	}
	if n := x.Narrowed; n != nil {
		fmt.Fprintf(&b, "\nnarrowed at %s", n.Pos)
		if n.Name != "" {
			fmt.Fprintf(&b, ": the branch shows it as %s", n.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
			if arg, ok := strings.CutPrefix(name, "args."); ok {
				fmt.Fprintf(&b, "\nargument %s narrowed at %s", arg, n.Fields[name])
			}
		}
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
