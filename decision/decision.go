// Package decision asks the policy. A catalog's policy/ folder holds Rego modules and the data that they are driven by;
// Load compiles both into an Engine, which answers one question at each decision point: may this be reached (Connect),
// may this branch see this tool (List), may this call run (Call), may this generation replace the one serving (Adopt).
//
// A point is one Rego package, data.catalogd.<point>, in which every rule is an output; helpers live below
// data.catalogd.lib. The answer is yes only when `allow` is exactly true, `deny` is an empty set of strings or absent,
// nothing else in the package is unknown or out of its type, and evaluation ended in time without an error. Everything
// else is no, and the Decision says which (Code) and why (Reasons). There is no answer without a policy: a folder
// without one is refused at Load.
//
// What can be wrong with a policy is found by Load, before anything is decided: modules are compiled once for each
// point with that point's input typed (shape.go), so `input.usr` is an error with a position instead of a rule that is
// undefined for ever; built-ins are an allow-list (builtins.go), so a decision depends on its input and its data alone
// and can be cached by them; packages and outputs that nobody would ask are errors (packages.go).
//
// The folder means the same to stock tools: `opa check policy/` and `opa test policy/` read it as this engine does.
//
// An Engine is immutable and safe for concurrent use.
package decision

import (
	"log/slog"
	"slices"
	"strings"
	"time"
)

// DefaultDeadline bounds one decision where Config.Deadline is zero.
const DefaultDeadline = 100 * time.Millisecond

// Config is what an Engine needs beside the policy.
type Config struct {
	// Deadline bounds one decision; a decision that takes longer denies. 0 means DefaultDeadline.
	Deadline time.Duration
	// Logger gets the stack of a panic inside an evaluation, which the caller only sees as policy_error. Nil means
	// that it is dropped.
	Logger *slog.Logger
}

// ReasonCode says how a decision came about. The list is closed.
type ReasonCode string

const (
	// Allowed is the only code of a decision that allows.
	Allowed ReasonCode = "allowed"
	// Denied: the policy evaluated well and said no.
	Denied ReasonCode = "denied"
	// Undefined: the package, or an output that the answer needs, has no value for this input.
	Undefined ReasonCode = "undefined"
	// Quarantined: the policy lets a discovered tool wait for a person; Discover alone.
	Quarantined ReasonCode = "quarantined"
	// BadDecisionType: an output has a value of the wrong type.
	BadDecisionType ReasonCode = "bad_decision_type"
	// PolicyError: evaluation failed, or the input could not be read.
	PolicyError ReasonCode = "policy_error"
	// PolicyTimeout: evaluation did not end before the deadline.
	PolicyTimeout ReasonCode = "policy_timeout"
	// UnknownOutput: the package answered with something that the point does not know.
	UnknownOutput ReasonCode = "unknown_output"
	// UnsupportedObligation: the policy asks for something that this version can't carry out.
	UnsupportedObligation ReasonCode = "unsupported_obligation"
)

// Decision is the answer at one point. The zero Decision denies.
type Decision struct {
	Point Point      `json:"point"`
	Allow bool       `json:"allow"`
	Code  ReasonCode `json:"code"`
	// Reasons say why not, sorted; empty when Allow is true. They hold what the policy's `deny` rules say, and never
	// more of an input than those rules put into them.
	Reasons []string `json:"reasons,omitempty"`
	// Trust is the name of the trust entry that answered; set by an allowed Connect only.
	Trust string `json:"trust,omitempty"`
	// Env names the variables of catalogd's environment that the command is given, and Withheld those that the trust entry's
	// patterns match and that it is not given, sorted. Set by an allowed Connect only. They are shared and not to be changed.
	Env      []string `json:"env,omitempty"`
	Withheld []string `json:"withheld,omitempty"`
	// Timeout caps the call; 0 means that the tool's own stands. Set by an allowed Call only.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Relay is what the tool's server may send to or ask of the caller during the call: elicitation, logging, roots,
	// sampling, sorted. Set by an allowed Call only. It is shared and not to be changed.
	Relay []string `json:"relay,omitempty"`
	// Hosts are those whose pages an elicitation may ask the person to open, sorted, in lower case and with a port where
	// that isn't 443. Set by an allowed Call only. It is shared and not to be changed.
	Hosts []string `json:"elicitation_hosts,omitempty"`
	// RateLimit is how often the caller may do this. Set by an allowed Call only.
	RateLimit RateLimit `json:"rate_limit,omitzero"`
	// Redact are the JSON pointers of what has to be taken out of a structured result, sorted; MaxBytes is how large a result
	// may be, 0 for as large as the tool may answer. Set by an allowed Result only. Redact is shared and not to be changed.
	Redact   []string `json:"redact,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// RateLimit is how many calls one principal may make of one tool through one branch in a time; the zero value limits
// nothing.
type RateLimit struct {
	Calls int           `json:"calls"`
	Per   time.Duration `json:"per"`
}

// String is one line for people: "call: denied: no such window, ask on Monday".
func (d Decision) String() string {
	s := string(d.Point) + ": " + string(d.Code)
	if d.Trust != "" {
		s += " by trust entry " + d.Trust
	}
	if len(d.Reasons) > 0 {
		s += ": " + strings.Join(d.Reasons, "; ")
	}
	return s
}

// no makes a decision that denies.
func no(point Point, code ReasonCode, reasons ...string) Decision {
	slices.Sort(reasons)
	return Decision{Point: point, Code: code, Reasons: slices.Compact(reasons)}
}
