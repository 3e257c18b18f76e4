package decision

import (
	"encoding/json"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/problem"
)

// Point is a decision point: one Rego package data.catalogd.<point>.
type Point string

// The decision points. Result and Release have documented packages; this version asks Connect, Discover, List, Call
// and Adopt.
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
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
	// Admin: the token may administer the daemon. It opens no tool by itself.
	Admin bool `json:"admin"`
}

// Local is the principal of every caller as long as there are no tokens: the operator of this machine.
func Local() Principal { return Principal{Name: "local", Groups: []string{}, Admin: true} }

// ConnectInput asks: may this command, URL or host be reached?
type ConnectInput struct {
	Subject Subject      `json:"subject"`
	Target  trust.Target `json:"target"`
}

// Subject is what wants to reach out.
type Subject struct {
	// Kind is "server" (an upstream MCP server) or "tool" (an exec or http binding).
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Effect is the tool's, empty for a server.
	Effect string           `json:"effect,omitempty"`
	Pos    problem.Position `json:"pos"`
}

// DiscoverInput asks: may this tool of a server be used?
type DiscoverInput struct {
	Server DiscoverServer `json:"server"`
	Tool   DiscoverTool   `json:"tool"`
	// Change is identical, new, removed, arguments_widened, arguments_narrowed, result_changed, description_only,
	// annotation_lowered, renamed or unusable: how what is offered differs from what is locked. It is identical as well
	// while nothing is known of what the server offers.
	Change string `json:"change"`
	// From is the locked name of a tool that was renamed.
	From string `json:"from"`
	// Details say in words what differs, Findings what is suspicious in the texts: each begins with hidden_unicode,
	// instructions, other_tool or look_alike and a colon.
	Details  []string `json:"details"`
	Findings []string `json:"findings"`
}

// DiscoverServer is a server as the discover decision sees it.
type DiscoverServer struct {
	Name string `json:"name"`
	// Trust is the name of the trust entry through which it is reached; empty where it is not trusted.
	Trust string `json:"trust"`
	// Locked and Offered are who the server said it was and says it is. Both are the same while nothing is offered.
	Locked  DiscoverIdentity `json:"locked"`
	Offered DiscoverIdentity `json:"offered"`
}

// DiscoverIdentity is who a server says it is.
type DiscoverIdentity struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
}

// DiscoverTool is a tool as the discover decision sees it.
type DiscoverTool struct {
	// Name is the name at the server, Catalog the one in the catalog.
	Name    string `json:"name"`
	Catalog string `json:"catalog"`
	// Effect is the operator's; empty for a tool that is not locked.
	Effect string `json:"effect"`
}

// Branch is a branch as a policy sees it.
type Branch struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// Tool is a tool as a policy sees it.
type Tool struct {
	Name   string   `json:"name"`
	Effect string   `json:"effect"`
	Tags   []string `json:"tags"`
	// Binding is exec, http, mcp or jq.
	Binding string `json:"binding"`
	// Server is the upstream server's name, for mcp.
	Server string `json:"server,omitempty"`
	// Trust is the name of the trust entry through which the tool reaches out; empty where it reaches nothing.
	Trust      string `json:"trust,omitempty"`
	Deprecated bool   `json:"deprecated"`
}

// ListInput asks: may this branch and principal see this tool?
type ListInput struct {
	Branch    Branch    `json:"branch"`
	Tool      Tool      `json:"tool"`
	Principal Principal `json:"principal"`
}

// CallInput asks: may this call with these checked arguments run?
type CallInput struct {
	Branch    Branch          `json:"branch"`
	Tool      Tool            `json:"tool"`
	Principal Principal       `json:"principal"`
	Arguments json.RawMessage `json:"arguments"`
	// Time is when the call came, RFC 3339 in UTC.
	Time time.Time `json:"time"`
}

// AdoptInput asks: may this generation replace the one serving? Bootstrap is true for the first generation after a
// start, which its own policy decides; Serving is then absent.
type AdoptInput struct {
	Bootstrap bool               `json:"bootstrap"`
	Serving   *GenerationSummary `json:"serving,omitempty"`
	Candidate GenerationSummary  `json:"candidate"`
	Changes   Changes            `json:"changes"`
}

// GenerationSummary is a generation as a policy sees it.
type GenerationSummary struct {
	Generation string `json:"generation"`
	// Policy is the digest of the policy alone.
	Policy   string   `json:"policy"`
	Tools    []string `json:"tools"`
	Servers  []string `json:"servers"`
	Branches []string `json:"branches"`
	// Visible holds the names of the tools that each branch sees.
	Visible map[string][]string `json:"visible"`
	// Trusted maps each trusted server to the name of its trust entry.
	Trusted map[string]string `json:"trusted"`
}

// Changes is the difference between the serving generation and the candidate, by name, sorted.
type Changes struct {
	ToolsAdded      []string `json:"tools_added"`
	ToolsRemoved    []string `json:"tools_removed"`
	ToolsChanged    []string `json:"tools_changed"`
	ServersAdded    []string `json:"servers_added"`
	ServersRemoved  []string `json:"servers_removed"`
	ServersChanged  []string `json:"servers_changed"`
	BranchesAdded   []string `json:"branches_added"`
	BranchesRemoved []string `json:"branches_removed"`
	PolicyChanged   bool     `json:"policy_changed"`
}
