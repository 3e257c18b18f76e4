package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// Build is what a catalog compiles to: plain, serialisable data, sorted by name. It holds no CUE value, no secret and
// no file handle.
type Build struct {
	// Digest covers CUE, Rego, data and tags of the snapshot that it was built from.
	Digest   string   `json:"digest"`
	Tools    []Tool   `json:"tools"`
	Servers  []Server `json:"servers"`
	Branches []Branch `json:"branches"`
	// Packages are the CUE packages that a contract of the build has a Remainder in, by folder; Sources holds their files
	// by the digest of the content (Sum).
	Packages []Package         `json:"packages,omitempty"`
	Sources  map[string][]byte `json:"sources,omitempty"`
}

// Package is the sources of one CUE package, whatever it inherits and imports included, as plain data.
type Package struct {
	// Dir is the folder from the catalog's root.
	Dir string `json:"dir"`
	// Digest names all that decides what the package means: its files, the tags and the schema. A contract's Remainder
	// refers to it.
	Digest string   `json:"digest"`
	Tags   []string `json:"tags,omitempty"`
	// Files are in the order of their names. schema.cue is not among them: every catalogd has its own.
	Files []PackageFile `json:"files"`
}

// PackageFile is one file of a Package.
type PackageFile struct {
	Name string `json:"name"`
	// Place is the path that positions in the file carry.
	Place string `json:"place"`
	// Sum is the digest of its content, by which Build.Sources has it.
	Sum string `json:"sum"`
}

// Sum names the content of a source file.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Remainders are what the tool's contracts leave to CUE.
func (t Tool) Remainders() []contract.Remainder {
	var out []contract.Remainder
	if t.Args.Remainder != nil {
		out = append(out, *t.Args.Remainder)
	} else if closed := t.Args.WhenClosed; closed != nil && closed.Remainder != nil {
		out = append(out, *closed.Remainder)
	}
	if t.Result != nil && t.Result.Remainder != nil {
		out = append(out, *t.Result.Remainder)
	}
	return out
}

// Remainders are what the contracts of the build leave to CUE: those of its tools, and of the results that its servers' discover
// declares.
func (b *Build) Remainders() (out []contract.Remainder) {
	for _, t := range b.Tools {
		out = append(out, t.Remainders()...)
	}
	for _, s := range b.Servers {
		if s.Discover == nil {
			continue
		}
		for _, over := range s.Discover.Tools {
			if over.Result != nil && over.Result.Remainder != nil {
				out = append(out, *over.Result.Remainder)
			}
		}
	}
	return out
}

// Effect says whether a tool changes anything.
type Effect string

const (
	// Read changes nothing; it runs when called.
	Read Effect = "read"
	// Write has a side effect; only the effector may run it.
	Write Effect = "write"
)

// ResultCheck says what becomes of a result that a tool's declaration doesn't allow. Empty is FailResult.
type ResultCheck string

const (
	// FailResult: the call is an error, and the result is withheld.
	FailResult ResultCheck = "fail"
	// WarnResult: the result is passed on with a note that it doesn't fit, and logged.
	WarnResult ResultCheck = "warn"
	// IgnoreResult: nobody looks.
	IgnoreResult ResultCheck = "off"
)

// Output is the schema that every structured result of the tool fits; nil without a result, and where one that doesn't fit
// would be passed on. What tools/list has is Entry.Output.
func (t *Tool) Output() json.RawMessage {
	if t.Result == nil || t.ResultCheck == WarnResult || t.ResultCheck == IgnoreResult {
		return nil
	}
	return t.Result.Schema
}

// Tool is one declared capability, as plain data.
type Tool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Args        contract.Spec  `json:"args"`
	Result      *contract.Spec `json:"result,omitempty"`
	// ResultCheck says what becomes of a result that Result doesn't allow.
	ResultCheck ResultCheck `json:"resultCheck,omitempty"`
	Effect      Effect      `json:"effect"`
	// Idempotent: repeating a call does no more than making it once. IdempotencyKey is a template over the arguments that
	// names one effect; empty means none. Both are a write tool's alone.
	Idempotent     bool    `json:"idempotent,omitempty"`
	IdempotencyKey string  `json:"idempotencyKey,omitempty"`
	Binding        Binding `json:"binding"`
	// Pre and Post are jq programs over the arguments and over the result; empty means none.
	Pre  string   `json:"pre,omitempty"`
	Post string   `json:"post,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// Timeout bounds one call; always set (the schema's default is 30 s).
	Timeout  time.Duration `json:"timeout"`
	Examples []Example     `json:"examples,omitempty"`
	// Deprecated says what to use instead; empty means that the tool is not deprecated.
	Deprecated string `json:"deprecated,omitempty"`
	// Annotations, Icons and Meta (_meta) are the JSON that a discovered tool came with; nil for declared tools.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"meta,omitempty"`

	Source
}

// Source is where a declaration stands.
type Source struct {
	// Pos is the position of the declaration's name.
	Pos problem.Position `json:"pos"`
	// Fields holds the positions of the fields below it by their path, such as binding.exec.argv.1 or args.city.
	Fields map[string]problem.Position `json:"fields,omitempty"`
	// Digest names the content of the declaration; equal digests mean equal declarations, positions aside.
	Digest string `json:"digest"`
}

// At is the position of the field at path, or of the nearest field above it, or of the declaration.
func (s Source) At(path string) problem.Position {
	for p := path; p != ""; p = parent(p) {
		if pos, ok := s.Fields[p]; ok {
			return pos
		}
	}
	return s.Pos
}

func parent(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return ""
}

// Example is a call with what it must answer; `catalogd test` runs it. Exactly one of Result and Rejected is set, or
// neither, which asks only that the call succeeds.
type Example struct {
	Args json.RawMessage `json:"args"`
	// Result is the expected structured result, or the expected text as a JSON string.
	Result json.RawMessage `json:"result,omitempty"`
	// Rejected is a part of the expected rejection, such as a JSON pointer or an error code.
	Rejected string `json:"rejected,omitempty"`
}

// Binding says how a tool is executed. Exactly one kind is set.
type Binding struct {
	Exec *Exec `json:"exec,omitempty"`
	HTTP *HTTP `json:"http,omitempty"`
	MCP  *MCP  `json:"mcp,omitempty"`
	JQ   *JQ   `json:"jq,omitempty"`
	// Intent is what a built-in tool does with its caller's intents: get, list or cancel. No declaration has it.
	Intent string `json:"intent,omitempty"`
}

// Kind is exec, http, mcp, jq, intent for a built-in tool, or empty where nothing is set.
func (b Binding) Kind() string {
	switch {
	case b.Exec != nil:
		return "exec"
	case b.HTTP != nil:
		return "http"
	case b.MCP != nil:
		return "mcp"
	case b.JQ != nil:
		return "jq"
	case b.Intent != "":
		return "intent"
	}
	return ""
}

// Value is a literal or a reference to a secret. A secret's value is never held here: it is resolved at use.
type Value struct {
	Literal string `json:"literal,omitempty"`
	// Secret is env:NAME or file:PATH.
	Secret string `json:"secret,omitempty"`
	// Prefix stands before the secret's value, such as "Bearer ".
	Prefix string `json:"prefix,omitempty"`
}

// Exec runs a command, never a shell.
type Exec struct {
	Command string   `json:"command"`
	Argv    []string `json:"argv"`
	// Joined allows placeholders inside an element; else {name} stands for a whole element only.
	Joined bool `json:"joined,omitempty"`
	// Stdin is "none" or "json": the arguments as one JSON object.
	Stdin string `json:"stdin"`
	// Stdout is "text" or "json".
	Stdout string `json:"stdout"`
	// Raw keeps terminal sequences and control characters in text; else they are taken out.
	Raw bool             `json:"raw,omitempty"`
	Cwd string           `json:"cwd,omitempty"`
	Env map[string]Value `json:"env,omitempty"`
	// MaxOutput caps stdout in bytes.
	MaxOutput int64 `json:"maxOutput"`
}

// HTTP is one request to a service.
type HTTP struct {
	Method string `json:"method"`
	// URL is an RFC 6570 template whose scheme, host and port are fixed.
	URL     string           `json:"url"`
	Headers map[string]Value `json:"headers,omitempty"`
	Body    *Body            `json:"body,omitempty"`
	// Output is "text" or "json".
	Output string `json:"output"`
	// Raw is as in Exec.
	Raw bool `json:"raw,omitempty"`
	// MaxOutput caps the response's body in bytes.
	MaxOutput int64 `json:"maxOutput"`
}

// Body says which arguments become a request's body, and how.
type Body struct {
	// Kind is "json", "form" or "raw".
	Kind string `json:"kind"`
	// Args names the arguments; empty means every argument that the URL does not use. Raw takes exactly one.
	Args []string `json:"args,omitempty"`
	// ContentType replaces the kind's own; only for raw.
	ContentType string `json:"contentType,omitempty"`
}

// MCP calls a tool of an upstream server.
type MCP struct {
	Server string `json:"server"`
	// Tool is the remote name; the loader fills in the tool's own name without the server's prefix where it is not given.
	Tool string `json:"tool"`
}

// JQ is a program over the arguments; its first output is the result.
type JQ struct {
	Program string `json:"program"`
}

// Server is an upstream MCP server. Exactly one of Stdio and HTTP is set.
type Server struct {
	Name  string       `json:"name"`
	Stdio *Stdio       `json:"stdio,omitempty"`
	HTTP  *HTTPAddress `json:"http,omitempty"`
	// Prefix is what the names of this server's tools begin with in the catalog and not at the server.
	Prefix         string `json:"prefix,omitempty"`
	MaxConnections int    `json:"maxConnections"`
	// Labels are words for people and policies.
	Labels map[string]string `json:"labels,omitempty"`
	// Isolate is ByBranch where each branch has a connection of its own, and empty where they share.
	Isolate string `json:"isolate,omitempty"`
	// Eager says that it is connected when a generation begins to serve, and not at the first call.
	Eager bool `json:"eager,omitempty"`
	// Protocol is the only revision of MCP that is spoken to it; empty means the newest that both speak.
	Protocol string `json:"protocol,omitempty"`
	// ConnectTimeout is for starting the process or reaching the address, InitializeTimeout for agreeing on the protocol,
	// CallTimeout for a call, with the connecting that it may need.
	ConnectTimeout    time.Duration `json:"connectTimeout"`
	InitializeTimeout time.Duration `json:"initializeTimeout"`
	CallTimeout       time.Duration `json:"callTimeout"`
	// Discover says which of the server's locked tools are tools of the catalog; nil means none.
	Discover *Discover `json:"discover,omitempty"`
	// Forward holds what is passed on of the server beside its tools: "resources", "prompts".
	Forward []string `json:"forward,omitempty"`

	Source
}

// ByBranch is the one value of Server.Isolate: one connection for each branch.
const ByBranch = "branch"

// Forwards reports whether the server's resources, or prompts, are passed on.
func (s Server) Forwards(what string) bool { return slices.Contains(s.Forward, what) }

// Discover chooses tools of a server by their names there.
type Discover struct {
	// Only and Except are patterns in which * stands for any run of characters; no Only means every tool.
	Only   []string `json:"only,omitempty"`
	Except []string `json:"except,omitempty"`
	// Tools change what the catalog says of a tool.
	Tools map[string]Override `json:"tools,omitempty"`
}

// Chooses reports whether the tool of that name at the server is meant.
func (d *Discover) Chooses(tool string) bool {
	matches := func(pattern string) bool { return MatchName(pattern, tool) }
	return d != nil && (len(d.Only) == 0 || slices.ContainsFunc(d.Only, matches)) && !slices.ContainsFunc(d.Except, matches)
}

// Override is what the catalog says of a discovered tool instead of the server. Empty fields change nothing.
type Override struct {
	// Rename is the whole name in the catalog; the server's prefix does not stand before it.
	Rename      string              `json:"rename,omitempty"`
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Strictness  contract.Strictness `json:"strictness,omitempty"`
	Tags        []string            `json:"tags,omitempty"`
	// Fill: the defaults in the tool's schema are filled into calls; else they are annotations.
	Fill bool `json:"fill,omitempty"`
	// Timeout bounds one call; 0 is the server's CallTimeout. Pre and Post are jq programs as in Tool.
	Timeout time.Duration `json:"timeout,omitempty"`
	Pre     string        `json:"pre,omitempty"`
	Post    string        `json:"post,omitempty"`
	// Idempotent and IdempotencyKey are as in Tool; what the server says of its tool sets neither.
	Idempotent     bool   `json:"idempotent,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Result is what the result must be, instead of what the server says of it. ResultCheck says what becomes of one that
	// doesn't fit.
	Result      *contract.Spec `json:"result,omitempty"`
	ResultCheck ResultCheck    `json:"resultCheck,omitempty"`
}

// Stdio is a child process that speaks MCP on its standard input and output.
type Stdio struct {
	Command string           `json:"command"`
	Args    []string         `json:"args,omitempty"`
	Env     map[string]Value `json:"env,omitempty"`
	Cwd     string           `json:"cwd,omitempty"`
}

// HTTPAddress is a streamable HTTP endpoint.
type HTTPAddress struct {
	URL     string           `json:"url"`
	Headers map[string]Value `json:"headers,omitempty"`
}

// Branch is a named view of the catalog.
type Branch struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Select names what the branch can show at most; nil means every tool.
	Select *Selector `json:"select,omitempty"`
	// Hide takes away from that.
	Hide *Selector `json:"hide,omitempty"`
	// Strictness is stricter than what the tools of these names declare.
	Strictness map[string]contract.Strictness `json:"strictness,omitempty"`

	Source
}

// Selector matches a tool when any of its lists does. Names are patterns in which * stands for any run of characters.
type Selector struct {
	Names   []string `json:"names,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Servers []string `json:"servers,omitempty"`
}
