// Package trust has Trust, a capability to run one command or to dial one URL prefix.
//
// A Target describes exactly what is to be reached: one command line or one URL prefix. Only the connect
// decision of a policy makes a Trust, for one Target, and it covers exactly that Target. internal/egress, the
// only package that starts processes or opens outbound connections, requires a Trust.
package trust

import (
	"cmp"
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

// Target is the command line or URL prefix to be reached: input.target of the connect decision. Exactly one
// of Command (Stdio, Exec) and URL (HTTP) is set. It has names of environment variables and headers, never
// their values.
type Target struct {
	// Kind says how it is reached: stdio (a server's child process), http, or exec (a tool's command).
	Kind    Kind     `json:"kind" oneof:"stdio,http,exec"`
	Command *Command `json:"command,omitempty"`
	URL     *URL     `json:"url,omitempty"`
	// Headers are the names of the declared headers, in canonical form, sorted.
	Headers []string `json:"headers,omitempty"`
	// FromCall are the names of the tool's arguments, which a model chooses, that are in Headers beyond the
	// base, sorted. Those of a command are in Command.FromCall.
	FromCall []string `json:"from_call,omitempty"`
	// Secrets are the references (env:NAME, file:PATH) whose values are sent in headers or passed to the
	// command, sorted; without env:NAME for a variable NAME in Command.Env.
	Secrets []string `json:"secrets,omitempty"`
}

// Command is a command line with unexpanded placeholders.
type Command struct {
	// Declared is the command as declared in the catalog.
	Declared string `json:"declared"`
	// Path is the absolute path of the file that runs: Declared resolved, with symbolic links followed.
	Path string `json:"path"`
	// Args are the arguments, with unexpanded placeholders.
	Args []string `json:"args"`
	// Script is the absolute path of the script that an interpreter runs; it replaces the script's name in
	// Args when the command starts. It is empty if no script is recognised.
	Script string `json:"script,omitempty"`
	// Dir is the declared working directory; empty means a private one.
	Dir string `json:"dir,omitempty"`
	// FromCall are the names of the tool's arguments, which a model chooses, that are placeholders in Args or
	// are written to standard input as they are, sorted. It is empty for a server, in whose arguments braces are literal.
	FromCall []string `json:"from_call,omitempty"`
	// Stdin says that the arguments of each call, which a model chooses, are written to the command's
	// standard input.
	Stdin bool `json:"stdin,omitempty"`
	// Env are the names of the declared environment variables, sorted.
	Env []string `json:"env"`
}

// URL is a parsed URL (RFC 3986) with unexpanded placeholders.
type URL struct {
	// Scheme is in lower case.
	Scheme string `json:"scheme" oneof:"http,https"`
	// Host is in lower case, without the port.
	Host string `json:"host"`
	// Port is always set; it is the scheme's default if the URL has none.
	Port int `json:"port"`
	// Path is the fixed part of the path, up to the first template expression. It starts with a slash.
	Path string `json:"path"`
	// Segments is Path split at its slashes, without empty parts.
	Segments []string `json:"segments"`
	// Template says that template expressions follow Path.
	Template bool `json:"template"`
	// TLS is the TLS configuration; absent for http.
	TLS *TLS `json:"tls,omitempty"`
}

// TLS is the TLS configuration of a connection to an https URL. internal/egress sets it for all connections;
// declarations can't change it.
type TLS struct {
	// MinVersion is the lowest accepted version, such as 1.2.
	MinVersion string `json:"min_version"`
	// ServerName is the name or address for which the certificate must be valid.
	ServerName string `json:"server_name"`
	// Verified says that the certificate must chain to a root certificate that this machine trusts.
	Verified bool `json:"verified"`
}

// Observed is what was found out about a Target when the connect decision was made. It is not part of the
// Target: the Trust stays valid if the program is upgraded or the host resolves to other addresses.
// Terms.SHA256 and Terms.Addresses pin what must not change. Terms.InTree is checked again at each start.
type Observed struct {
	// SHA256 is the digest of the file at Command.Path in hexadecimal; empty if it can't be read, and for a
	// URL.
	SHA256 string `json:"sha256,omitempty"`
	// InTree says that the command, its script or its working directory is in the catalog's own tree, so that
	// everyone who can edit the catalog can change what runs.
	InTree bool `json:"in_tree,omitempty"`
	// Addresses are the addresses of the URL's host, sorted; empty if it was not resolved in time, and for a
	// command.
	Addresses []string `json:"addresses,omitempty"`
	// RunsCode is the reason why the command may run code from its arguments or its standard input; empty if
	// it runs one fixed program or script, and for a URL.
	RunsCode string `json:"runs_code"`
	// Unpinned is the reason why the command may fetch and run a different program at each start; empty if it
	// fetches nothing or one exact version or digest, and for a URL.
	Unpinned string `json:"unpinned"`
}

// Origin returns scheme://host:port.
func (u URL) Origin() string { return fmt.Sprintf("%s://%s:%d", u.Scheme, u.Host, u.Port) }

// String returns the target in one line for people; a command that was not found as it is declared.
func (t Target) String() string {
	if t.Command != nil {
		line := strings.Join(append([]string{cmp.Or(t.Command.Path, t.Command.Declared)}, t.Command.Args...), " ")
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

// Digest returns a digest of the target ("sha256:...").
func (t Target) Digest() string { return digest(t) }

func digest(plain any) string {
	b, err := json.Marshal(plain)
	if err != nil {
		panic(fmt.Sprintf("trust: targets and terms are plain data: %v", err))
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Terms are the conditions under which a Trust is granted.
type Terms struct {
	// Entry is the name of the trust entry; it is shown with the decision.
	Entry string
	// Env are the names of the environment variables that the child may get beside the base. The value is
	// that of Fixed, else of the declaration, else of the daemon's environment. A declaration can't set other
	// variables.
	Env []string
	// Fixed are values for some of Env that override the declaration's and the daemon's.
	Fixed map[string]string
	// FromCall are the names of the tool's arguments, which a model chooses, that may be put into headers or on the command
	// line.
	FromCall []string
	// Stdin allows writing the arguments of a call to the command's standard input.
	Stdin bool
	// Headers are the names, in any case, of the headers that a declaration may send beside the base
	// (egress.BaseHeaders).
	Headers []string
	// Secrets are the references (env:NAME, file:PATH) whose values the target may get.
	Secrets []string
	// MaxConnections is the maximum number of parallel connections; 0 means the declaration's number.
	MaxConnections int
	// Interpreter allows a command that runs code from its arguments.
	Interpreter bool
	// Unpinned allows a command that fetches what it runs without an exact version or digest.
	Unpinned bool
	// InTree allows a command, script or working directory in the catalog's own tree.
	InTree bool
	// Addresses are IP ranges (CIDR) that may be dialled beside public addresses.
	Addresses []string
	// SHA256 is the digest, in hexadecimal, that the command's file must have; empty allows any.
	SHA256 string
}

// Trust is a capability to reach one Target. The zero Trust covers nothing. It is immutable and safe for
// concurrent use.
type Trust struct {
	target string
	terms  Terms
}

// New makes a Trust. The key comes from a package that only packages below decision/ can import, so only the
// connect decision makes one. With an invalid key New returns the zero Trust.
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

// Covers returns an error unless t was granted for exactly this target.
func (t Trust) Covers(target Target) error {
	if t.target == "" {
		return fmt.Errorf("no trust was granted for this %s target", target.Kind)
	}
	if t.target != target.Digest() {
		return fmt.Errorf("trust entry %q was granted for another %s target", t.terms.Entry, target.Kind)
	}
	return nil
}

// Digest returns a digest of the target and the terms.
func (t Trust) Digest() string { return digest([]any{t.target, t.terms}) }

// Terms returns a copy of the terms.
func (t Trust) Terms() Terms { return t.terms.clone() }

// Name returns Terms.Entry. The following methods also return the field of Terms that their name says.
func (t Trust) Name() string { return t.terms.Entry }

// Env returns a copy of Terms.Env.
func (t Trust) Env() []string { return slices.Clone(t.terms.Env) }

// Fixed returns a copy of Terms.Fixed.
func (t Trust) Fixed() map[string]string { return maps.Clone(t.terms.Fixed) }

// FromCall returns a copy of Terms.FromCall.
func (t Trust) FromCall() []string { return slices.Clone(t.terms.FromCall) }

// Stdin returns Terms.Stdin.
func (t Trust) Stdin() bool { return t.terms.Stdin }

// Headers returns a copy of Terms.Headers.
func (t Trust) Headers() []string { return slices.Clone(t.terms.Headers) }

// Secrets returns a copy of Terms.Secrets.
func (t Trust) Secrets() []string { return slices.Clone(t.terms.Secrets) }

// MaxConnections returns Terms.MaxConnections.
func (t Trust) MaxConnections() int { return t.terms.MaxConnections }

// Interpreter returns Terms.Interpreter.
func (t Trust) Interpreter() bool { return t.terms.Interpreter }

// Unpinned returns Terms.Unpinned.
func (t Trust) Unpinned() bool { return t.terms.Unpinned }

// InTree returns Terms.InTree.
func (t Trust) InTree() bool { return t.terms.InTree }

// Addresses returns a copy of Terms.Addresses.
func (t Trust) Addresses() []string { return slices.Clone(t.terms.Addresses) }

// SHA256 returns Terms.SHA256.
func (t Trust) SHA256() string { return t.terms.SHA256 }
