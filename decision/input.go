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
	// Groups are what the principal belongs to.
	Groups []string `json:"groups" names:"group"`
	// Admin: the token may administer the daemon. It opens no tool by itself.
	Admin bool `json:"admin"`
	// Local is true for the operator of this machine, who needs no token. A rule that reads it in place of
	// the name leaves all bearers of tokens alike, so that they share what a branch shows.
	Local bool `json:"local,omitempty"`
}

// Local is the principal of every caller as long as there are no tokens: the operator of this machine.
func Local() Principal {
	return Principal{Name: "local", Groups: []string{}, Admin: true, Local: true}
}

// ConnectInput asks: may this command, URL or host be reached?
type ConnectInput struct {
	Subject Subject      `json:"subject"`
	Target  trust.Target `json:"target"`
	// Observed is what was seen of the target when it was asked about; nothing of it is part of what is
	// granted.
	Observed trust.Observed `json:"observed"`
}

// Subject is what wants to reach out.
type Subject struct {
	// Kind is server (an upstream MCP server) or tool (an exec or http binding).
	Kind string `json:"kind" oneof:"server,tool"`
	// Name is the server's or the tool's.
	Name string `json:"name" names:"subject"`
	// Effect is the tool's, empty for a server.
	Effect string `json:"effect,omitempty" oneof:"read,write,"`
	// Pos is where it is declared: the file from the catalog's root, line and column from 1, 0 where they are
	// not known.
	Pos problem.Position `json:"pos"`
}

// DiscoverInput asks: may this tool of a server be used?
type DiscoverInput struct {
	Server DiscoverServer `json:"server"`
	Tool   DiscoverTool   `json:"tool"`
	// Change is identical, new, removed, arguments_widened, arguments_narrowed, result_changed,
	// description_only, annotation_lowered, renamed or unusable: how what is offered differs from what is
	// locked. It is identical as well while nothing is known of what the server offers.
	Change string `json:"change" oneof:"identical,new,removed,arguments_widened,arguments_narrowed,result_changed,description_only,annotation_lowered,renamed,unusable"`
	// From is the locked name of a tool that was renamed.
	From string `json:"from"`
	// Details say in words what differs.
	Details []string `json:"details"`
	// Findings say what is suspicious in the texts: each begins with hidden_unicode, instructions, other_tool
	// or look_alike and a colon.
	Findings []string `json:"findings"`
}

// DiscoverServer is a server as the discover decision sees it.
type DiscoverServer struct {
	// Name is the one in the catalog.
	Name string `json:"name" names:"server"`
	// Trust is the name of the trust entry through which it is reached; empty where it is not trusted.
	Trust string `json:"trust" names:"trust"`
	// Locked is who the server said it was when it was locked.
	Locked DiscoverIdentity `json:"locked"`
	// Offered is who it says it is; the same as Locked while nothing is offered.
	Offered DiscoverIdentity `json:"offered"`
}

// DiscoverIdentity is who a server says it is.
type DiscoverIdentity struct {
	// Name is what it calls itself.
	Name string `json:"name"`
	// Version is its own.
	Version string `json:"version"`
	// Protocol is the revision of MCP that it speaks.
	Protocol string `json:"protocol"`
}

// DiscoverTool is a tool as the discover decision sees it.
type DiscoverTool struct {
	// Name is the name at the server.
	Name string `json:"name"`
	// Catalog is the name in the catalog.
	Catalog string `json:"catalog" names:"tool"`
	// Effect is the operator's; empty for a tool that is not locked.
	Effect string `json:"effect" oneof:"read,write,"`
}

// Branch is a branch as a policy sees it.
type Branch struct {
	// Name is the branch's.
	Name string `json:"name" names:"branch"`
	// Labels are what the branch is declared with.
	Labels map[string]string `json:"labels" names:"label"`
}

// Tool is a tool as a policy sees it; every field is empty where the question is about a resource or prompt.
type Tool struct {
	// Name is the name in the catalog.
	Name string `json:"name" names:"tool"`
	// Effect says whether the tool changes anything.
	Effect string `json:"effect" oneof:"read,write,"`
	// Tags are what the tool is declared with.
	Tags []string `json:"tags" names:"tag"`
	// Binding is how the tool runs; intent marks the built-in tools about a caller's own intents.
	Binding string `json:"binding" oneof:"exec,http,mcp,jq,intent,"`
	// Server is the upstream server's name, for mcp; else empty.
	Server string `json:"server,omitempty" names:"server"`
	// Trust is the name of the trust entry through which the tool reaches out; empty where it reaches
	// nothing.
	Trust string `json:"trust,omitempty" names:"trust"`
	// Deprecated is true where the declaration says what to use instead.
	Deprecated bool `json:"deprecated"`
}

// Resource is a resource, or a template of resources, of an upstream server that passes them on.
type Resource struct {
	// Name is the name in the catalog, with the server's prefix.
	Name string `json:"name"`
	// URI is the resource's; empty for a template that is listed or completed.
	URI string `json:"uri"`
	// Template is the text of a template: the one that is listed or completed, or the one that a URI fits
	// which the server doesn't list; else empty.
	Template string `json:"template"`
	// Server is the upstream server's name.
	Server string `json:"server" names:"server"`
	// Trust is the name of the trust entry through which the server is reached.
	Trust string `json:"trust" names:"trust"`
	// Action is what is to be done.
	Action string `json:"action" oneof:"list,read,subscribe,complete"`
}

// Prompt is a prompt of an upstream server that passes them on.
type Prompt struct {
	// Name is the name in the catalog, with the server's prefix.
	Name string `json:"name"`
	// Server is the upstream server's name.
	Server string `json:"server" names:"server"`
	// Trust is the name of the trust entry through which the server is reached.
	Trust string `json:"trust" names:"trust"`
	// Action is what is to be done.
	Action string `json:"action" oneof:"list,get,complete"`
}

// ListInput asks: may this branch and principal see this tool, resource or prompt? Where Resource or Prompt
// is set, the question is about that, Tool is empty, and the output allow_resource or allow_prompt answers in
// the place of allow: a policy that was written for tools allows nothing else.
type ListInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Resource  *Resource `json:"resource,omitempty"`
	Prompt    *Prompt   `json:"prompt,omitempty"`
	Principal Principal `json:"principal"`
}

// CallInput asks: may this call with these checked arguments run? Of a resource or prompt, as in ListInput,
// it asks whether the request may be sent; Arguments are then those of the prompt, and {} elsewhere.
type CallInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Resource  *Resource `json:"resource,omitempty"`
	Prompt    *Prompt   `json:"prompt,omitempty"`
	Principal Principal `json:"principal"`
	// Arguments are those that were checked, with defaults filled in; their numbers are exact. Of a prompt
	// they are as they came.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	// Time is when the call came, RFC 3339 in UTC.
	Time time.Time `json:"time"`
	// Rate is how often the principal has called the tool through the branch.
	Rate Rate `json:"rate"`
}

// Rate counts the calls of one principal to one tool through one branch that were allowed, this one not among
// them. A restart begins anew.
type Rate struct {
	// Minute is how many there were in the last 60 seconds.
	Minute int `json:"minute"`
	// Hour is how many there were in the last 60 minutes.
	Hour int `json:"hour"`
}

// ResultInput asks: may this result leave, and with what taken out?
type ResultInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Principal Principal `json:"principal"`
	// Arguments are those of the call.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	// Result is what the tool answered, after its post program and the check of what it declares.
	Result ToolResult `json:"result"`
	// Time is when the call came, RFC 3339 in UTC.
	Time time.Time `json:"time"`
}

// ToolResult is a result as the result decision sees it.
type ToolResult struct {
	// IsError is true where the tool reports a failure of its own.
	IsError bool `json:"is_error"`
	// Bytes is how large the content and the structured result are together.
	Bytes int `json:"bytes"`
	// Structured is the structured result, which redact takes parts of; null where there is none.
	Structured json.RawMessage `json:"structured" log:"-"`
	// Text holds the text of each text block.
	Text []string `json:"text" log:"-"`
	// Types are the types of the content's blocks, each once, sorted.
	Types []string `json:"types"`
}

// ReleaseInput asks: may this intent be executed now? It is asked before each attempt, of the policy that
// serves at that moment, with the principal as it is then.
type ReleaseInput struct {
	Branch Branch `json:"branch"`
	Tool   Tool   `json:"tool"`
	// Principal is who called, as the token says now; a token that is revoked is not asked about.
	Principal Principal `json:"principal"`
	// Arguments are those of the call, which can't have changed since it was staged; their numbers are exact.
	Arguments json.RawMessage `json:"arguments" log:"-"`
	Intent    Intent          `json:"intent"`
	// Time is when the question is asked, RFC 3339 in UTC.
	Time time.Time `json:"time"`
}

// Intent is a call of a tool with a side effect, written down before anything runs.
type Intent struct {
	// ID names the intent: 32 hexadecimal digits.
	ID string `json:"id"`
	// Staged is when the call was written down, RFC 3339 in UTC.
	Staged time.Time `json:"staged"`
	// Age is how many whole seconds ago that was; 0 where the clock has gone back since.
	Age int `json:"age"`
	// Attempt counts how often the effect would then have been begun: 1 for the first attempt.
	Attempt int `json:"attempt"`
	// Repeatable is true where the tool is declared idempotent: repeating the call does no more than making
	// it once.
	Repeatable bool `json:"repeatable"`
	// Keyed is true where the caller or the declaration gave an idempotency key.
	Keyed bool `json:"keyed"`
	// PolicyChanged is true where the policy is another than the one that decided on the call.
	PolicyChanged bool `json:"policy_changed"`
	// Approval is what the call decision asked for and who gave it; absent where it asked for none.
	Approval *IntentApproval `json:"approval,omitempty"`
}

// NewIntent is an intent of a call that was made at that moment and is about to be attempted for the first
// time, as it is asked about before there is one.
func NewIntent(at time.Time) Intent {
	return Intent{ID: strings.Repeat("0", 32), Staged: at, Attempt: 1}
}

// IntentApproval is an approval that was asked for and given.
type IntentApproval struct {
	Asked AskedApproval `json:"asked"`
	By    Approver      `json:"by"`
	// At is when it was given, RFC 3339 in UTC.
	At time.Time `json:"at"`
}

// AskedApproval is what the call decision asked for when the intent was staged.
type AskedApproval struct {
	// Groups are those of which one member's approval is enough.
	Groups []string `json:"groups" names:"group"`
	// Reason is what the policy told whoever was to approve.
	Reason string `json:"reason"`
	// Self is true where the caller might approve as well.
	Self bool `json:"self"`
}

// Approver is who approved.
type Approver struct {
	// Name is the approver's; local for the operator of this machine.
	Name string `json:"name" names:"principal"`
	// Groups are what the approver belonged to at that moment.
	Groups []string `json:"groups" names:"group"`
}

// AdoptInput asks: may this generation replace the one serving?
type AdoptInput struct {
	// Bootstrap is true where a policy is asked about its own generation: whether it may be started.
	Bootstrap bool `json:"bootstrap"`
	// Serving is the generation that serves, or at a start that which was adopted last; absent where
	// Bootstrap is true.
	Serving *GenerationSummary `json:"serving,omitempty"`
	// Candidate is the generation that would replace it.
	Candidate GenerationSummary `json:"candidate"`
	Changes   Changes           `json:"changes"`
	// Tests is what the candidate's policy tests said.
	Tests TestSummary `json:"tests"`
}

// TestSummary is how the tests of a policy ended.
type TestSummary struct {
	// Run is false at a start where nothing was adopted before, and where the policy that is asked doesn't
	// look at them.
	Run bool `json:"run"`
	// Passed counts the tests that passed.
	Passed int `json:"passed"`
	// Failed counts the tests that failed; tests that could not be run count as one.
	Failed int `json:"failed"`
	// Skipped counts the tests whose names begin with todo_.
	Skipped int `json:"skipped"`
	// Failures names those that failed, as `catalogd test` does, or says why none could be run.
	Failures []string `json:"failures"`
}

// Commit is where a catalog's files come from in git; it is empty outside of a repository.
type Commit struct {
	// Hash is the commit that is checked out.
	Hash string `json:"hash"`
	// Clean is true where the files are exactly those of the commit.
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
	// Visible holds the names of the tools that each branch sees.
	Visible map[string][]string `json:"visible"`
	// Trusted maps each trusted server to the name of its trust entry.
	Trusted map[string]string `json:"trusted"`
	// Commit is looked up where the policy that is asked looks at it.
	Commit Commit `json:"commit"`
}

// Changes is the difference between the serving generation and the candidate, by name, sorted.
type Changes struct {
	// ToolsAdded are new.
	ToolsAdded []string `json:"tools_added"`
	// ToolsRemoved are gone.
	ToolsRemoved []string `json:"tools_removed"`
	// ToolsChanged are declared otherwise.
	ToolsChanged []string `json:"tools_changed"`
	// ServersAdded are new.
	ServersAdded []string `json:"servers_added"`
	// ServersRemoved are gone.
	ServersRemoved []string `json:"servers_removed"`
	// ServersChanged are declared otherwise.
	ServersChanged []string `json:"servers_changed"`
	// BranchesAdded are new.
	BranchesAdded []string `json:"branches_added"`
	// BranchesRemoved are gone.
	BranchesRemoved []string `json:"branches_removed"`
	// VisibilityGained are the tools that the operator sees through a branch now and did not before.
	VisibilityGained []Visibility `json:"visibility_gained"`
	// VisibilityLost are those that it sees no more.
	VisibilityLost []Visibility `json:"visibility_lost"`
	// TrustGained are the servers that are trusted now and were not before, or by another entry.
	TrustGained []TrustedServer `json:"trust_gained"`
	// TrustLost are those that are trusted no more, or by another entry.
	TrustLost []TrustedServer `json:"trust_lost"`
	// PolicyChanged is true where modules or data of the policy differ.
	PolicyChanged bool `json:"policy_changed"`
}

// Visibility is one tool that a branch shows.
type Visibility struct {
	// Branch is the branch's name.
	Branch string `json:"branch"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Effect is the tool's.
	Effect string `json:"effect" oneof:"read,write"`
	// Server is the tool's upstream server, for mcp; else empty.
	Server string `json:"server"`
}

// TrustedServer is one server that may be reached.
type TrustedServer struct {
	// Name is the server's.
	Name string `json:"name"`
	// Trust is the name of the trust entry.
	Trust string `json:"trust"`
	// Labels are what the server is declared with.
	Labels map[string]string `json:"labels"`
}
