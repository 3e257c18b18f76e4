package decision

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// Point is a decision point: one Rego package data.catalogd.<point>.
type Point string

// The decision points.
const (
	Connect  Point = "connect"
	Discover Point = "discover"
	List     Point = "list"
	Call     Point = "call"
	Result   Point = "result"
	Release  Point = "release"
	Adopt    Point = "adopt"
)

// Principal is who calls: the bearer of a token, or the local operator.
type Principal struct {
	// Name is local for the operator of this machine.
	Name string `json:"name" names:"principal"`
	// Groups are the principal's groups.
	Groups []string `json:"groups" names:"group"`
	// Admin is true if the token may administer the daemon. It gives access to no tool by itself.
	Admin bool `json:"admin"`
	// Local is true for the operator of this machine, who needs no token. If rules read Local instead of the
	// name, all bearers of tokens can share the list of a branch.
	Local bool `json:"local,omitempty"`
}

// Local returns the operator of this machine, the principal of every caller of a daemon without tokens.
func Local() Principal {
	return Principal{Name: "local", Groups: []string{}, Admin: true, Local: true}
}

// ConnectInput asks: may this command, URL or host be reached?
type ConnectInput struct {
	Subject Subject      `json:"subject"`
	Target  trust.Target `json:"target"`
	// Observed is what was found out about the target when the decision was made. It is not part of the trust
	// that is granted.
	Observed trust.Observed `json:"observed"`
}

// Subject is the server or tool that needs the target.
type Subject struct {
	// Kind is server (an upstream MCP server) or tool (an exec or http binding).
	Kind string `json:"kind" oneof:"server,tool"`
	// Name is the name of the server or tool.
	Name string `json:"name" names:"subject"`
	// Effect is the tool's effect; empty for a server.
	Effect string `json:"effect,omitempty" oneof:"read,write,"`
	// Pos is the position of the declaration: the file relative to the catalog's root, and line and column
	// from 1, or 0 if unknown.
	Pos problem.Position `json:"pos"`
}

// DiscoverInput asks: may this tool of a server be used?
type DiscoverInput struct {
	Server DiscoverServer `json:"server"`
	Tool   DiscoverTool   `json:"tool"`
	// Change is identical, new, removed, arguments_widened, arguments_narrowed, result_changed,
	// description_only, annotation_lowered, renamed or unusable: how the server's current definition differs
	// from the locked one. It is also identical while the current definition is not known.
	Change string `json:"change" oneof:"identical,new,removed,arguments_widened,arguments_narrowed,result_changed,description_only,annotation_lowered,renamed,unusable"`
	// From is the locked name of a renamed tool.
	From string `json:"from"`
	// Details describe the differences in words.
	Details []string `json:"details"`
	// Findings describe suspicious texts: each begins with hidden_unicode, instructions, other_tool or
	// look_alike and a colon.
	Findings []string `json:"findings"`
}

// DiscoverServer is a server as the discover decision sees it.
type DiscoverServer struct {
	// Name is the name in the catalog.
	Name string `json:"name" names:"server"`
	// Trust is the name of the trust entry that allows the server; empty if it is not trusted.
	Trust string `json:"trust" names:"trust"`
	// Locked is the identity that the server reported when it was locked.
	Locked DiscoverIdentity `json:"locked"`
	// Offered is the identity that it reports now; the same as Locked while that is not known.
	Offered DiscoverIdentity `json:"offered"`
}

// DiscoverIdentity is the identity that a server reports.
type DiscoverIdentity struct {
	// Name is the server's name for itself.
	Name string `json:"name"`
	// Version is the server's version.
	Version string `json:"version"`
	// Protocol is the MCP revision that the server uses.
	Protocol string `json:"protocol"`
}

// DiscoverTool is a tool as the discover decision sees it.
type DiscoverTool struct {
	// Name is the name at the server.
	Name string `json:"name"`
	// Catalog is the name in the catalog.
	Catalog string `json:"catalog" names:"tool"`
	// Effect is the effect that the operator has locked; empty for a tool that is not locked.
	Effect string `json:"effect" oneof:"read,write,"`
}

// Branch is a branch as a policy sees it.
type Branch struct {
	// Name is the name of the declared branch.
	Name string `json:"name" names:"branch"`
	// Labels are the declared labels, and those below session/ that a conversation branch adds.
	Labels map[string]string `json:"labels" names:"label"`
	// Session is the name of a conversation branch; Name is then that of the declared branch that it was
	// forked from. It is empty for a declared branch.
	Session string `json:"session,omitempty"`
}

// Tool is a tool as a policy sees it; every field is empty if the decision is about a resource or prompt.
type Tool struct {
	// Name is the name in the catalog.
	Name string `json:"name" names:"tool"`
	// Effect says whether the tool has a side effect.
	Effect string `json:"effect" oneof:"read,write,"`
	// Tags are the declared tags.
	Tags []string `json:"tags" names:"tag"`
	// Binding is the kind of the binding; func is a Go function of the program that embeds catalogd, and intent
	// marks the built-in tools for a caller's own intents.
	Binding string `json:"binding" oneof:"exec,http,mcp,jq,func,intent,"`
	// Server is the upstream server's name, for mcp; else empty.
	Server string `json:"server,omitempty" names:"server"`
	// Trust is the name of the trust entry that allows the tool's target; empty if the tool needs none.
	Trust string `json:"trust,omitempty" names:"trust"`
	// Deprecated is true if the tool is declared as deprecated.
	Deprecated bool `json:"deprecated"`
	// Discovered is true for a tool that a server offers and the lock has, and false for one that the catalog
	// declares.
	Discovered bool `json:"discovered"`
}

// Resource is a resource or resource template of an upstream server whose resources are passed through.
type Resource struct {
	// Name is the name in the catalog, with the server's prefix.
	Name string `json:"name"`
	// URI is the URI of the resource; empty for a template that is listed or completed.
	URI string `json:"uri"`
	// Template is the URI template: the one that is listed or completed, or the one that matches a URI that
	// the server does not list; else empty.
	Template string `json:"template"`
	// Server is the upstream server's name.
	Server string `json:"server" names:"server"`
	// Trust is the name of the trust entry that allows the server.
	Trust string `json:"trust" names:"trust"`
	// Action is the requested action.
	Action string `json:"action" oneof:"list,read,subscribe,complete"`
}

// Prompt is a prompt of an upstream server whose prompts are passed through.
type Prompt struct {
	// Name is the name in the catalog, with the server's prefix.
	Name string `json:"name"`
	// Server is the upstream server's name.
	Server string `json:"server" names:"server"`
	// Trust is the name of the trust entry that allows the server.
	Trust string `json:"trust" names:"trust"`
	// Action is the requested action.
	Action string `json:"action" oneof:"list,get,complete"`
}

// ListInput asks: may this branch and principal see this tool, resource or prompt? If Resource or Prompt is
// set, the decision is about that, Tool is empty, and the output allow_resource or allow_prompt counts in
// place of allow, so that a policy for tools allows nothing else.
type ListInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Resource  *Resource `json:"resource,omitempty"`
	Prompt    *Prompt   `json:"prompt,omitempty"`
	Principal Principal `json:"principal"`
}

// CallInput asks: may this call with these checked arguments run? For a resource or prompt (see ListInput) it
// asks whether the request may be sent; Arguments are then those of the prompt, and {} for a resource.
type CallInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Resource  *Resource `json:"resource,omitempty"`
	Prompt    *Prompt   `json:"prompt,omitempty"`
	Principal Principal `json:"principal"`
	// Arguments are the checked arguments, with defaults filled in; their numbers are exact. Those of a
	// prompt are not checked.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	// Time is the time of the call, RFC 3339 in UTC.
	Time time.Time `json:"time"`
	// Rate is the number of earlier calls.
	Rate Rate `json:"rate"`
}

// Rate counts the earlier allowed calls of the principal to the tool through the branch. A restart resets the
// counts.
type Rate struct {
	// Minute is the number of calls in the last 60 seconds.
	Minute int `json:"minute"`
	// Hour is the number of calls in the last 60 minutes.
	Hour int `json:"hour"`
}

// ResultInput asks: may the caller get this result, and what must be redacted?
type ResultInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Principal Principal `json:"principal"`
	// Arguments are the arguments of the call.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	// Result is the tool's result, after its post program and the check against its declared result.
	Result ToolResult `json:"result"`
	// Time is the time of the call, RFC 3339 in UTC.
	Time time.Time `json:"time"`
}

// ToolResult is a result as the result decision sees it.
type ToolResult struct {
	// IsError is true if the tool reports a failure.
	IsError bool `json:"is_error"`
	// Bytes is the size of the result in bytes.
	Bytes int `json:"bytes"`
	// Structured is the structured content, to which the pointers of redact apply; null if there is none.
	Structured json.RawMessage `json:"structured" log:"-"`
	// Text are the texts of the text blocks.
	Text []string `json:"text" log:"-"`
	// Types are the types of the content blocks, sorted, without duplicates.
	Types []string `json:"types"`
}

// ReleaseInput asks: may this intent be executed now? The decision is made before each attempt, by the policy
// that serves then and for the principal as it is then.
type ReleaseInput struct {
	Branch Branch `json:"branch"`
	Tool   Tool   `json:"tool"`
	// Principal is the caller with the token's current groups and rights. If the token was revoked, no
	// decision is made.
	Principal Principal `json:"principal"`
	// Arguments are the arguments of the call, unchanged since staging; their numbers are exact.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	Intent    Intent          `json:"intent"`
	// Time is the time of the decision, RFC 3339 in UTC.
	Time time.Time `json:"time"`
}

// Intent is the record of a call of a tool with a side effect, made before anything runs.
type Intent struct {
	// ID is the id of the intent: 32 hexadecimal digits.
	ID string `json:"id"`
	// Staged is the time at which the call was recorded, RFC 3339 in UTC.
	Staged time.Time `json:"staged"`
	// Age is the time since then in whole seconds, at least 0.
	Age int `json:"age"`
	// Attempt is the number of the attempt: 1 for the first.
	Attempt int `json:"attempt"`
	// Repeatable is true if the tool is declared idempotent: another attempt has no further effect.
	Repeatable bool `json:"repeatable"`
	// Keyed is true if the call has an idempotency key.
	Keyed bool `json:"keyed"`
	// PolicyChanged is true if another policy made the call decision.
	PolicyChanged bool `json:"policy_changed"`
	// Approval is the approval that the call decision required and a person gave; absent if it required none.
	Approval *IntentApproval `json:"approval,omitempty"`
}

// NewIntent returns an intent staged at that time, before its first attempt, for hypothetical decisions.
func NewIntent(at time.Time) Intent {
	return Intent{ID: strings.Repeat("0", 32), Staged: at, Attempt: 1}
}

// IntentApproval is an approval that was required and given.
type IntentApproval struct {
	Asked AskedApproval `json:"asked"`
	By    Approver      `json:"by"`
	// At is the time of the approval, RFC 3339 in UTC.
	At time.Time `json:"at"`
}

// AskedApproval is the approval that the call decision required when the intent was staged.
type AskedApproval struct {
	// Groups are the groups whose members may approve; one approval is enough.
	Groups []string `json:"groups" names:"group"`
	// Reason is the policy's text for the approvers.
	Reason string `json:"reason"`
	// Self is true if the caller may approve too.
	Self bool `json:"self"`
}

// Approver is the person who approved.
type Approver struct {
	// Name is the approver's name; local for the operator of this machine.
	Name string `json:"name" names:"principal"`
	// Groups are the approver's groups at that time.
	Groups []string `json:"groups" names:"group"`
}

// AdoptInput asks: may this generation replace the one serving?
type AdoptInput struct {
	// Bootstrap is true if a policy decides on its own generation: at the first start, or with --bootstrap.
	Bootstrap bool `json:"bootstrap"`
	// Serving is the generation that serves, or at a start the one that was adopted last; absent if Bootstrap
	// is true.
	Serving *GenerationSummary `json:"serving,omitempty"`
	// Candidate is the generation that would replace it.
	Candidate GenerationSummary `json:"candidate"`
	Changes   Changes           `json:"changes"`
	// Tests is the result of the candidate's policy tests.
	Tests TestSummary `json:"tests"`
}

// TestSummary is the result of a policy's tests.
type TestSummary struct {
	// Run is true if the tests were run. They are not if nothing was adopted before, or if the deciding
	// policy does not read their result.
	Run bool `json:"run"`
	// Passed is the number of tests that passed.
	Passed int `json:"passed"`
	// Failed is the number of tests that failed; 1 if the tests could not be run.
	Failed int `json:"failed"`
	// Skipped is the number of tests whose names begin with todo_.
	Skipped int `json:"skipped"`
	// Failures are the names of failed tests in the form of `catalogd test`, or the reason why no test could
	// be run.
	Failures []string `json:"failures"`
}

// Commit is the git commit of a catalog's files; it is empty outside of a repository.
type Commit struct {
	// Hash is the hash of the commit that is checked out.
	Hash string `json:"hash"`
	// Clean is true if the files are exactly those of the commit.
	Clean bool `json:"clean"`
}

// GenerationSummary is a generation as a policy sees it.
type GenerationSummary struct {
	// Generation is the digest of all of its files.
	Generation string `json:"generation"`
	// Policy is the digest of the policy alone.
	Policy string `json:"policy"`
	// Tools are the names of all tools.
	Tools []string `json:"tools"`
	// Servers are the names of all servers.
	Servers []string `json:"servers"`
	// Branches are the names of all branches.
	Branches []string `json:"branches"`
	// Visible are the names of the tools that each branch shows, by branch.
	Visible map[string][]string `json:"visible"`
	// Trusted maps each trusted server to the name of its trust entry.
	Trusted map[string]string `json:"trusted"`
	// Commit is set only if the deciding policy reads it.
	Commit Commit `json:"commit"`
}

// Changes is the difference between the serving generation and the candidate, by name, sorted.
type Changes struct {
	// ToolsAdded are the names of new tools.
	ToolsAdded []string `json:"tools_added"`
	// ToolsRemoved are the names of removed tools.
	ToolsRemoved []string `json:"tools_removed"`
	// ToolsChanged are the names of tools whose declaration has changed.
	ToolsChanged []string `json:"tools_changed"`
	// ServersAdded are the names of new servers.
	ServersAdded []string `json:"servers_added"`
	// ServersRemoved are the names of removed servers.
	ServersRemoved []string `json:"servers_removed"`
	// ServersChanged are the names of servers whose declaration has changed.
	ServersChanged []string `json:"servers_changed"`
	// BranchesAdded are the names of new branches.
	BranchesAdded []string `json:"branches_added"`
	// BranchesRemoved are the names of removed branches.
	BranchesRemoved []string `json:"branches_removed"`
	// VisibilityGained are the tools that the operator newly sees through a branch.
	VisibilityGained []Visibility `json:"visibility_gained"`
	// VisibilityLost are the tools that the operator no longer sees through a branch.
	VisibilityLost []Visibility `json:"visibility_lost"`
	// TrustGained are the servers that are newly trusted, or trusted by another entry than before.
	TrustGained []TrustedServer `json:"trust_gained"`
	// TrustLost are the servers that are no longer trusted, or trusted by another entry than before.
	TrustLost []TrustedServer `json:"trust_lost"`
	// PolicyChanged is true if modules or data of the policy differ.
	PolicyChanged bool `json:"policy_changed"`
}

// Visibility is one tool that a branch shows.
type Visibility struct {
	// Branch is the branch's name.
	Branch string `json:"branch"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Effect is the tool's effect.
	Effect string `json:"effect" oneof:"read,write"`
	// Server is the tool's upstream server, for mcp; else empty.
	Server string `json:"server"`
}

// TrustedServer is one server that may be reached.
type TrustedServer struct {
	// Name is the server's name.
	Name string `json:"name"`
	// Trust is the name of the trust entry.
	Trust string `json:"trust"`
	// Labels are the server's declared labels.
	Labels map[string]string `json:"labels"`
}
