// Package decision decides by a policy: Rego modules and data in a catalog's policy/ folder. Load compiles
// them into an Engine. Without a policy nothing loads, so there is no decision without one.
//
// # Points
//
// An engine answers one question at each decision point: may this command, URL or host be reached (Connect),
// may this tool of a server be used (Discover), may this branch see this tool (List), may this call run
// (Call), may this result leave (Result), may this intent be executed now (Release), may this generation
// replace the one that serves (Adopt). A point is one Rego package, data.catalogd.<point>, and every rule in
// it is an output; helpers live below data.catalogd.lib. Two more packages decide nothing:
// data.catalogd.check finds mistakes in the data at load, data.catalogd.log says what a log may have of a
// decision.
//
// # Allow, deny, obligations
//
// A Decision allows only if `allow` is exactly true, `deny` is an empty set of strings or undefined, no
// output is unknown or has the wrong type, and evaluation ended in time and without an error. Everything else
// denies; Code says how, Reasons why. The other outputs are obligations and terms (a timeout, an approval,
// redactions, the environment of a command). One that can't be carried out denies too.
//
// # Load
//
// Load finds mistakes before anything is decided. Modules are compiled once for each point, against the
// schema of the point's input, so `input.usr` is an error with a position rather than undefined for ever
// (compile.go). Built-ins are an allowlist (builtins.go), so a decision is a function of its input and the
// policy's data. Packages and outputs that nothing asks are errors (packages.go). Package lint finds what
// compiles and does not mean what it says. Stock tools agree: `opa check policy/` and `opa test policy/` read
// the folder in the same way.
//
// # Deadlines
//
// An evaluation may take Config.Deadline of processor time, then it denies with PolicyTimeout
// (evaluation.go). Most policies call only built-ins that return at once, and are evaluated on the caller's
// goroutine. Any other is evaluated on a goroutine of its own, which is abandoned if it doesn't end; a point
// with too many abandoned evaluations answers PolicyTimeout at once. Built-ins whose cost the size of their
// arguments does not bound are checked (bounds.go).
//
// # Caches
//
// As a decision is a function of its input, an engine remembers answers by the parts of the input that the
// modules read (read_set.go). An answer at a point with calls is remembered if the evaluation did not read
// what differs from call to call: arguments, time, the result (answer_cache.go).
//
// An Engine is immutable but for its caches, and safe for concurrent use.
package decision

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/problem"
)

// The deadlines of a Config that leaves them out.
const (
	DefaultDeadline = 100 * time.Millisecond
	DefaultBuild    = 5 * time.Second
)

// Config holds the settings of an Engine. The zero Config is usable.
type Config struct {
	// Deadline bounds the processor time of one decision, and Build that of one with WithBuildDeadline; a
	// decision that takes longer denies with PolicyTimeout. On a busy machine it may take at least 5 s more
	// by the clock. 0 means DefaultDeadline and DefaultBuild.
	Deadline, Build time.Duration
	// Logger gets the stack of a panic inside an evaluation, which the caller only sees as policy_error. Nil
	// means that it is dropped.
	Logger *slog.Logger
}

// ReasonCode says how a decision came about. The list is closed.
type ReasonCode string

const (
	// Allowed is the only code of a decision that allows.
	Allowed ReasonCode = "allowed"
	// Denied: the policy was evaluated and does not allow.
	Denied ReasonCode = "denied"
	// Undefined: the package, or an output that the answer needs, is undefined for this input.
	Undefined ReasonCode = "undefined"
	// Quarantined: the discovered tool waits for a person; Discover only.
	Quarantined ReasonCode = "quarantined"
	// BadDecisionType: an output has a value of the wrong type.
	BadDecisionType ReasonCode = "bad_decision_type"
	// PolicyError: evaluation failed, or the input could not be read.
	PolicyError ReasonCode = "policy_error"
	// PolicyTimeout: evaluation did not end before the deadline. It is no answer of the policy and must not
	// be cached.
	PolicyTimeout ReasonCode = "policy_timeout"
	// UnknownOutput: the package has an output that the point does not know.
	UnknownOutput ReasonCode = "unknown_output"
	// UnsupportedObligation: an obligation can't be carried out for such a call.
	UnsupportedObligation ReasonCode = "unsupported_obligation"
)

// Decision is the answer at one point. The zero Decision denies.
type Decision struct {
	Point Point      `json:"point"`
	Allow bool       `json:"allow"`
	Code  ReasonCode `json:"code"`
	// Reasons say why not, sorted; empty when Allow is true. They hold what the policy's `deny` rules say,
	// and never more of an input than those rules put into them.
	Reasons []string `json:"reasons,omitempty"`
	// Trust is the name of the trust entry that answered; set by an allowed Connect only.
	Trust string `json:"trust,omitempty"`
	// Env names the variables that the command may be given beside the base, each as NAME or, with the value
	// that is fixed, as NAME=value, sorted. Set by an allowed Connect only. It is shared and not to be
	// changed.
	Env []string `json:"env,omitempty"`
	// Timeout caps the call; 0 leaves the tool's own. Set by an allowed Call only.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Relay is what the tool's server may send to or ask of the caller during the call: elicitation, logging,
	// roots, sampling, sorted. Set by an allowed Call only. It is shared and not to be changed.
	Relay []string `json:"relay,omitempty"`
	// Hosts are those whose pages an elicitation may ask the person to open, sorted, in lower case and with a
	// port where that isn't 443. Set by an allowed Call only. It is shared and not to be changed.
	Hosts []string `json:"elicitation_hosts,omitempty"`
	// RateLimit is how often the caller may do this. Set by an allowed Call only.
	RateLimit RateLimit `json:"rate_limit,omitzero"`
	// further are the rate limits of And beside RateLimit.
	further []RateLimit
	// RequireApproval is what has to be approved before the call may run; nil where the policy asks for none.
	// Set by an allowed Call of a tool with a side effect only. It is shared and not to be changed.
	RequireApproval *Approval `json:"require_approval,omitempty"`
	// Redact are the JSON pointers of what has to be taken out of a structured result, RedactPatterns the
	// regular expressions (Pattern) of what has to be taken out of every string, both sorted; MaxBytes is how
	// large a result may be, 0 for as large as the tool may answer. Set by an allowed Result only. The lists
	// are shared and not to be changed.
	Redact         []string `json:"redact,omitempty"`
	RedactPatterns []string `json:"redact_patterns,omitempty"`
	MaxBytes       int      `json:"max_bytes,omitempty"`
	// At is where the policy failed: the rule, or the point's package. It is zero for Allowed and Denied.
	At problem.Position `json:"-"`
}

// How long after the call an approval is valid by default, and at most.
const (
	DefaultExpires = 24 * time.Hour
	MaxExpires     = 30 * 24 * time.Hour
)

// Approval says who has to approve a call of a tool with a side effect before it runs.
type Approval struct {
	// Groups are those of which one member's approval is enough, sorted; empty only where Self is true.
	Groups []string `json:"groups"`
	// Reason is for whoever is to approve; it may be empty.
	Reason string `json:"reason"`
	// Self: the caller may approve as well.
	Self bool `json:"self"`
	// Expires is how long after the call an approval comes too late, up to MaxExpires.
	Expires time.Duration `json:"expires"`
}

// MarshalJSON writes {"groups": ["ops"], "reason": "it deletes", "self": false, "expires": "24h0m0s"}.
func (a Approval) MarshalJSON() ([]byte, error) {
	type plain Approval
	return json.Marshal(struct {
		plain
		Expires duration `json:"expires"`
	}{plain(a), duration(a.Expires)})
}

// String is one line for people: "by a member of ops or by the caller, within 24h0m0s: it deletes".
func (a Approval) String() string {
	var who []string
	if len(a.Groups) > 0 {
		who = append(who, "by a member of "+strings.Join(a.Groups, " or "))
	}
	if a.Self {
		who = append(who, "by the caller")
	}
	s := fmt.Sprintf("%s, within %v", strings.Join(who, " or "), a.Expires)
	if a.Reason != "" {
		s += ": " + a.Reason
	}
	return s
}

// RateLimit is how many calls one principal may make of one tool through one branch in a time; the zero value
// limits nothing.
type RateLimit struct {
	Calls int           `json:"calls"`
	Per   time.Duration `json:"per"`
}

// MarshalJSON writes durations as policies do: "30s".
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	return json.Marshal(struct {
		plain
		Timeout duration `json:"timeout,omitempty"`
	}{plain(d), duration(d.Timeout)})
}

// MarshalJSON writes {"calls": 10, "per": "1m0s"}.
func (l RateLimit) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Calls int      `json:"calls"`
		Per   duration `json:"per"`
	}{l.Calls, duration(l.Per)})
}

// duration is written as a policy writes it.
type duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// String is one line for people: "call: denied: no such window, ask on Monday".
func (d Decision) String() string {
	s := string(d.Point) + ": " + string(d.Code)
	if d.Trust != "" {
		s += " by trust entry " + d.Trust
	}
	if d.RequireApproval != nil {
		s += ", once approved " + d.RequireApproval.String()
	}
	if len(d.Reasons) > 0 {
		s += ": " + strings.Join(d.Reasons, "; ")
	}
	return s
}

// deny makes a decision that denies.
func deny(point Point, code ReasonCode, reasons ...string) Decision {
	slices.Sort(reasons)
	return Decision{Point: point, Code: code, Reasons: slices.Compact(reasons)}
}
