// Package trust is the leave to reach out. A Target says exactly what is to be reached: one command line, or one URL
// prefix. A Trust is what the connect decision of a policy answers for one Target; it can't be made anywhere else, and
// it covers that Target and nothing near it. Whoever spawns or dials takes a Trust (internal/egress does both, and no
// other package does).
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision/internal/grant"
)

// Kind says how a target is reached.
type Kind string

const (
	// Stdio is an upstream MCP server that runs as a child process.
	Stdio Kind = "stdio"
	// HTTP is an upstream MCP server, or an http binding's service, behind a URL.
	HTTP Kind = "http"
	// Exec is the command of an exec binding.
	Exec Kind = "exec"
)

// Target is what is to be reached, as the connect decision sees it in input.target. Exactly one of Command (Stdio,
// Exec) and URL (HTTP) is set. It holds names of environment variables and headers, never their values.
type Target struct {
	// Kind says how it is reached: stdio (a server's child process), http, or exec (a tool's command).
	Kind    Kind     `json:"kind" oneof:"stdio,http,exec"`
	Command *Command `json:"command,omitempty"`
	URL     *URL     `json:"url,omitempty"`
	// Headers names the headers that the declaration sends, in canonical form, sorted.
	Headers []string `json:"headers,omitempty"`
	// Secrets are the references (env:NAME, file:PATH) whose values the declaration sends in headers or gives to
	// the command, sorted; but not env:NAME for the variable NAME, which is in Command.Env.
	Secrets []string `json:"secrets,omitempty"`
}

// Command is a command line before any argument of a call is filled in.
type Command struct {
	// Declared is the command as the catalog has it.
	Declared string `json:"declared"`
	// Path is the absolute path that Declared resolved to, symbolic links followed; it is what runs.
	Path string `json:"path"`
	// Args are the elements behind the command, placeholders unexpanded.
	Args []string `json:"args"`
	// Script is the absolute path of the script that Args give an interpreter to run, which replaces it there
	// when the command starts; empty where none is recognised.
	Script string `json:"script,omitempty"`
	// Dir is the working directory as it is declared; empty means a private one.
	Dir string `json:"dir,omitempty"`
	// FromCall names the arguments of the tool, which a model writes, that are placeholders in Args, sorted; empty for a
	// server, in whose arguments braces are text.
	FromCall []string `json:"from_call,omitempty"`
	// Stdin: the arguments of each call, which a model writes, are sent to the command's standard input.
	Stdin bool `json:"stdin,omitempty"`
	// Env names the environment variables that the declaration sets, sorted.
	Env []string `json:"env"`
}

// URL is a parsed URL (RFC 3986) before any argument of a call is filled in. Host is lower-case without port; Port is
// always set (the scheme's default where the URL has none).
type URL struct {
	// Scheme is in lower case.
	Scheme string `json:"scheme" oneof:"http,https"`
	// Host is in lower case, without the port.
	Host string `json:"host"`
	// Port is always set.
	Port int `json:"port"`
	// Path is the fixed part of the path, up to the first template expression. It starts with a slash.
	Path string `json:"path"`
	// Segments is Path split at its slashes, without empty parts.
	Segments []string `json:"segments"`
	// Template reports whether expressions follow Path.
	Template bool `json:"template"`
	// TLS is how the connection is secured; absent for http.
	TLS *TLS `json:"tls,omitempty"`
}

// TLS is how a connection to an https URL is secured. The declaration has no say in it: internal/egress makes every client
// so, and the decision sees what it will do.
type TLS struct {
	// MinVersion is the lowest version that is spoken, such as 1.2.
	MinVersion string `json:"min_version"`
	// ServerName is the name or address that the certificate must be for.
	ServerName string `json:"server_name"`
	// Verified: the certificate must lead to a root that this machine trusts.
	Verified bool `json:"verified"`
}

// Observed is what was seen of a Target when the connect decision was asked. It is no part of the Target, and what is
// granted does not depend on it: a program that was upgraded and a name that resolves otherwise are the same Target.
// (What must not change is pinned: Terms.SHA256, Terms.Addresses. Whether the catalog's tree may be the place is granted:
// Terms.InTree, which is checked again at each start.)
type Observed struct {
	// SHA256 is the digest of the file at Command.Path, in hexadecimal; empty where it can't be read, and for a URL.
	SHA256 string `json:"sha256,omitempty"`
	// InTree: the command, the script that it is asked to run, or the directory that it works in lies in the catalog's own
	// tree, so that whoever edits the catalog edits what runs.
	InTree bool `json:"in_tree,omitempty"`
	// Addresses are what the URL's host resolved to, sorted; empty where it did not within a moment, and for a command.
	Addresses []string `json:"addresses,omitempty"`
	// RunsCode says why the command may run code or commands that its arguments or its standard input hold;
	// empty where it runs one fixed program or script, and for a URL.
	RunsCode string `json:"runs_code"`
	// Unpinned says why what the command fetches and runs may be another thing at each start; empty where it
	// fetches nothing, or one exact version or digest, and for a URL.
	Unpinned string `json:"unpinned"`
}

// Origin is scheme://host:port.
func (u URL) Origin() string { return fmt.Sprintf("%s://%s:%d", u.Scheme, u.Host, u.Port) }

// String is the target in one line for people.
func (t Target) String() string {
	if t.Command != nil {
		line := strings.Join(append([]string{t.Command.Path}, t.Command.Args...), " ")
		if t.Command.Dir != "" {
			line += " (in " + t.Command.Dir + ")"
		}
		return line
	}
	if t.URL != nil {
		return t.URL.Origin() + t.URL.Path
	}
	return string(t.Kind)
}

// Digest names the target's content; equal targets have equal digests.
func (t Target) Digest() string { return digest(t) }

func digest(plain any) string {
	b, err := json.Marshal(plain)
	if err != nil {
		panic(fmt.Sprintf("trust: targets and terms are plain data: %v", err))
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Terms are what the connect decision grants beside the bare leave.
type Terms struct {
	// Entry is the name of the trust entry that answered; it stands wherever the decision shows.
	Entry string
	// Env names the variables that the child may be given beside the base: with the value that Fixed has,
	// else with that of the declaration, else with that of the daemon's own environment. A declaration sets
	// none that is not named here.
	Env []string
	// Fixed are values for some of Env; the declaration and the daemon have no say in them.
	Fixed map[string]string
	// FromCall names the arguments of a tool that a model may put on the command line.
	FromCall []string
	// Stdin says that the arguments of a call may be sent to the command's standard input.
	Stdin bool
	// Headers names the headers that a declaration may send beside the base (egress.BaseHeaders); case does not count.
	Headers []string
	// Secrets are the references (env:NAME, file:PATH) of which the target may get the values.
	Secrets []string
	// MaxConnections caps parallel connections; 0 means that the declaration's own number stands.
	MaxConnections int
	// Interpreter says that a command that runs code given as an argument is meant.
	Interpreter bool
	// Unpinned says that a command that fetches what it runs, without an exact version or digest, is meant.
	Unpinned bool
	// InTree says that a command is meant that lies in the catalog's own tree, or runs a script or works in a directory
	// there.
	InTree bool
	// Addresses are IP ranges (CIDR) that may be dialled beside the public ones.
	Addresses []string
	// SHA256 pins the command: only a file with this digest, in hexadecimal, is run. Empty pins nothing.
	SHA256 string
}

// Trust is leave to reach one Target. The zero Trust covers nothing. It is immutable and safe for concurrent use.
type Trust struct {
	target string
	terms  Terms
}

// New makes a Trust. Only packages below decision/ can issue a grant.Key, so only the engine's connect decision makes
// one; with any other key New answers the zero Trust.
func New(key grant.Key, target Target, terms Terms) Trust {
	if !key.Valid() {
		return Trust{}
	}
	return Trust{target: target.Digest(), terms: terms.clone()}
}

func (t Terms) clone() Terms {
	t.Env = slices.Clone(t.Env)
	t.Fixed = maps.Clone(t.Fixed)
	t.FromCall = slices.Clone(t.FromCall)
	t.Headers = slices.Clone(t.Headers)
	t.Secrets = slices.Clone(t.Secrets)
	t.Addresses = slices.Clone(t.Addresses)
	return t
}

// Covers is nil when t was granted for exactly this target.
func (t Trust) Covers(target Target) error {
	if t.target == "" {
		return fmt.Errorf("no trust was granted for this %s target", target.Kind)
	}
	if t.target != target.Digest() {
		return fmt.Errorf("trust entry %q was granted for another %s target", t.terms.Entry, target.Kind)
	}
	return nil
}

// Digest names the target and everything that is granted: trust with equal digests grants the same.
func (t Trust) Digest() string { return digest([]any{t.target, t.terms}) }

// Terms are all that was granted.
func (t Trust) Terms() Terms { return t.terms.clone() }

// Name is the trust entry's name.
func (t Trust) Name() string { return t.terms.Entry }

// Env names the variables that the child may be given beside the base.
func (t Trust) Env() []string { return slices.Clone(t.terms.Env) }

// Fixed are the values that the decision sets for some of Env.
func (t Trust) Fixed() map[string]string { return maps.Clone(t.terms.Fixed) }

// FromCall names the arguments of a tool that a model may put on the command line.
func (t Trust) FromCall() []string { return slices.Clone(t.terms.FromCall) }

// Stdin reports whether the arguments of a call may be sent to the command's standard input.
func (t Trust) Stdin() bool { return t.terms.Stdin }

// Headers names the headers that a declaration may send beside the base; case does not count.
func (t Trust) Headers() []string { return slices.Clone(t.terms.Headers) }

// Secrets are the references of which the target may get the values.
func (t Trust) Secrets() []string { return slices.Clone(t.terms.Secrets) }

// MaxConnections is the cap that the decision set, 0 for none.
func (t Trust) MaxConnections() int { return t.terms.MaxConnections }

// Interpreter reports whether inline code is meant.
func (t Trust) Interpreter() bool { return t.terms.Interpreter }

// Unpinned reports whether fetching without an exact version is meant.
func (t Trust) Unpinned() bool { return t.terms.Unpinned }

// InTree reports whether a command in the catalog's own tree, or one that runs a script or works there, is meant.
func (t Trust) InTree() bool { return t.terms.InTree }

// Addresses are the IP ranges (CIDR) that may be dialled beside the public ones.
func (t Trust) Addresses() []string { return slices.Clone(t.terms.Addresses) }

// SHA256 is the digest that the command's file must have, in hexadecimal; empty where any will do.
func (t Trust) SHA256() string { return t.terms.SHA256 }
