package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// Build is a compiled catalog: plain, serialisable data, sorted by name, without CUE values, secrets or file
// handles.
type Build struct {
	// Digest covers the CUE, Rego and data files and the tags of the snapshot.
	Digest   string   `json:"digest"`
	Tools    []Tool   `json:"tools"`
	Servers  []Server `json:"servers"`
	Branches []Branch `json:"branches"`
	// Packages are the CUE packages to which a Remainder of a contract refers, by folder. Sources has their
	// files by the digest of the content (Sum).
	Packages []Package         `json:"packages,omitempty"`
	Sources  map[string][]byte `json:"sources,omitempty"`
}

// Package is the sources of one CUE package, including those that it inherits and imports, as plain data.
type Package struct {
	// Dir is the folder, relative to the catalog's root.
	Dir string `json:"dir"`
	// Digest covers everything that determines the package's meaning: its files, the tags and the schema. A
	// contract's Remainder refers to it.
	Digest string   `json:"digest"`
	Tags   []string `json:"tags,omitempty"`
	// Files are sorted by name. schema.cue is not among them, because each catalogd embeds its own.
	Files []PackageFile `json:"files"`
}

// PackageFile is one file of a Package.
type PackageFile struct {
	Name string `json:"name"`
	// Place is the path of the file in positions.
	Place string `json:"place"`
	// Sum is the digest of the content, the key in Build.Sources.
	Sum string `json:"sum"`
}

// Sum returns the digest of a source file.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Remainders returns the remainders of the tool's contracts, which CUE has to check.
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

// Remainders returns the remainders of all contracts of the build: those of its tools, and those of results
// that a server's discover declares.
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

// Effect says whether a tool has side effects.
type Effect string

const (
	// Read means that the tool has no side effect; it runs when called.
	Read Effect = "read"
	// Write means that the tool has side effects; only the effector may run it.
	Write Effect = "write"
)

// ResultCheck says how a result is handled that violates the tool's declared result. Empty means FailResult.
type ResultCheck string

const (
	// FailResult withholds the result, and the call returns an error.
	FailResult ResultCheck = "fail"
	// WarnResult returns the result with a note that it is invalid, and logs a warning.
	WarnResult ResultCheck = "warn"
	// IgnoreResult does not check results.
	IgnoreResult ResultCheck = "off"
)

// Output returns the schema that every structured result of the tool matches; nil if no result is declared,
// or if ResultCheck lets invalid results through. The schema in tools/list is Entry.Output.
func (t *Tool) Output() json.RawMessage {
	if t.Result == nil || t.ResultCheck == WarnResult || t.ResultCheck == IgnoreResult {
		return nil
	}
	return t.Result.Schema
}

// Tool is one declared capability, as plain data.
type Tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	// Args has no Schema for a tool of a Go function whose declaration leaves its args to the function; then
	// Function.Complete makes them.
	Args        contract.Spec  `json:"args"`
	Result      *contract.Spec `json:"result,omitempty"`
	ResultCheck ResultCheck    `json:"resultCheck,omitempty"`
	Effect      Effect         `json:"effect"`
	// EffectNote is the author's reason why a request, a command or a server's tool changes nothing; empty means
	// none. It decides nothing. Only tools that Suspect returns something of may set it.
	EffectNote string `json:"effectNote,omitempty"`
	// Idempotent says that repeating a call has no further effect. IdempotencyKey is a template over the
	// arguments for the idempotency key of a call; empty means none. Only write tools may set them.
	Idempotent     bool    `json:"idempotent,omitempty"`
	IdempotencyKey string  `json:"idempotencyKey,omitempty"`
	Binding        Binding `json:"binding"`
	// Pre and Post are jq programs for the arguments and for the result; empty means none.
	Pre  string   `json:"pre,omitempty"`
	Post string   `json:"post,omitempty"`
	Tags []string `json:"tags,omitempty"`
	// Timeout is the time limit of one call; always set (the schema's default is 30 s).
	Timeout  time.Duration `json:"timeout"`
	Examples []Example     `json:"examples,omitempty"`
	// Deprecated says what to use instead; empty means that the tool is not deprecated.
	Deprecated string `json:"deprecated,omitempty"`
	// Annotations, Icons and Meta (_meta) are the server's JSON of a discovered tool; nil for declared tools.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"meta,omitempty"`

	Source
}

// Discovered reports whether the tool is one that its server offers and the lock has, rather than one that the
// catalog declares.
func (t *Tool) Discovered() bool { return t.Binding.MCP != nil && t.Annotations != nil }

// Suspect returns what a tool that declares to read does that may change something: it sends a request other
// than GET and HEAD, runs a command, or calls a tool of a server. It is empty for any other tool, and for one
// with a side effect.
func (t Tool) Suspect() string {
	switch b := t.Binding; {
	case t.Effect != Read:
	case b.HTTP != nil && b.HTTP.Method != "GET" && b.HTTP.Method != "HEAD":
		return "sends a " + b.HTTP.Method
	case b.Exec != nil:
		return "runs " + b.Exec.Command
	case b.MCP != nil:
		return "calls " + strconv.Quote(b.MCP.Tool) + " of server " + strconv.Quote(b.MCP.Server)
	}
	return ""
}

// Source is the position and digest of a declaration.
type Source struct {
	// Pos is the position of the declaration's name.
	Pos problem.Position `json:"pos"`
	// Fields are the positions of the fields of the declaration by path, such as binding.exec.argv.1 or
	// args.city.
	Fields map[string]problem.Position `json:"fields,omitempty"`
	// Digest covers the content of the declaration without positions.
	Digest string `json:"digest"`
}

// At returns the position of the field at path, or else of the nearest field above it, or else of the
// declaration.
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

// Example is a call with its expected result, which `catalogd test` runs. At most one of Result and Rejected
// is set; without either, the call must only succeed.
type Example struct {
	Args json.RawMessage `json:"args"`
	// Result is the expected structured result, or the expected text as a JSON string.
	Result json.RawMessage `json:"result,omitempty"`
	// Rejected is a part of the text of the expected error, such as a JSON pointer or an error code.
	Rejected string `json:"rejected,omitempty"`
}

// Binding says how a tool is executed. Exactly one kind is set.
type Binding struct {
	Exec *Exec `json:"exec,omitempty"`
	HTTP *HTTP `json:"http,omitempty"`
	MCP  *MCP  `json:"mcp,omitempty"`
	JQ   *JQ   `json:"jq,omitempty"`
	// Func is the name of a Go function of the program (Function).
	Func string `json:"func,omitempty"`
	// Intent is the action of a built-in tool on its caller's intents: get, list or cancel. Declarations
	// can't set it.
	Intent string `json:"intent,omitempty"`
}

// Kind returns exec, http, mcp, jq, func or, for a built-in tool, intent; it is empty if nothing is set.
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
	case b.Func != "":
		return "func"
	case b.Intent != "":
		return "intent"
	}
	return ""
}

// Value is a literal or a reference to a secret. The secret's value is resolved at each use and never stored.
type Value struct {
	Literal string `json:"literal,omitempty"`
	// Secret is env:NAME or file:PATH.
	Secret string `json:"secret,omitempty"`
	// Prefix is put before the secret's value, such as "Bearer ".
	Prefix string `json:"prefix,omitempty"`
}

// Exec runs a command, never a shell.
type Exec struct {
	Command string   `json:"command"`
	Argv    []string `json:"argv"`
	// Joined allows placeholders inside an element of Argv; else {name} must be a whole element.
	Joined bool `json:"joined,omitempty"`
	// Stdin is "none", "json" (the arguments as one JSON object), or "{name}" (one argument as it is).
	Stdin string `json:"stdin"`
	// Stdout is "text", "json", or "content": a result of MCP with content blocks.
	Stdout string `json:"stdout"`
	// Raw keeps terminal escape sequences and control characters in text; else they are removed.
	Raw bool             `json:"raw,omitempty"`
	Cwd string           `json:"cwd,omitempty"`
	Env map[string]Value `json:"env,omitempty"`
	// MaxOutput is the maximum size of stdout in bytes.
	MaxOutput int64 `json:"maxOutput"`
}

// HTTP is one request to a service.
type HTTP struct {
	Method string `json:"method"`
	// URL is an RFC 6570 template whose scheme, host and port are fixed.
	URL string `json:"url"`
	// Headers and Query are headers and further query parameters by name. {name} in a literal stands for an
	// argument, {name.field} for a field inside of one; without a value for it the whole is left out.
	Headers map[string]Value `json:"headers,omitempty"`
	Query   map[string]Value `json:"query,omitempty"`
	// Join has the separators of lists that become one text of URL, Headers, Query or a form, by argument.
	Join map[string]string `json:"join,omitempty"`
	Body *Body             `json:"body,omitempty"`
	// Output is as Stdout in Exec.
	Output string `json:"output"`
	// Raw is as in Exec.
	Raw bool `json:"raw,omitempty"`
	// MaxOutput is the maximum size of the response body in bytes, of all pages together.
	MaxOutput int64 `json:"maxOutput"`
	// Success are the statuses of a success, from 200 to 499; empty means 200 to 299.
	Success []int `json:"success,omitempty"`
	// Select is a jq program from the JSON of an answer to the output. Error is one from {status, body} of an
	// answer that is no success to the caller's error message.
	Select string `json:"select,omitempty"`
	Error  string `json:"error,omitempty"`
	Pages  *Pages `json:"pages,omitempty"`
	Retry  *Retry `json:"retry,omitempty"`
}

// Pages says how the further pages of an answer are found. Exactly one of Link, URL and Cursor is set.
type Pages struct {
	// Items is a jq program from a page to the list of its items.
	Items string `json:"items"`
	// Link takes the next page's URL from the header Link (RFC 8288, rel="next"). URL is a jq program from a
	// page to that URL, and Cursor one to the value of the query parameter Parameter; null ends the pages.
	Link      bool   `json:"link,omitempty"`
	URL       string `json:"url,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Parameter string `json:"parameter,omitempty"`
	// Max is the maximum number of pages.
	Max int `json:"max"`
}

// Retry says how often a read is sent again.
type Retry struct {
	// Max is the maximum number of further requests. Wait and MaxWait are the first and the longest wait, as
	// Go writes durations.
	Max     int    `json:"max"`
	Wait    string `json:"wait"`
	MaxWait string `json:"maxWait"`
	// Statuses are those of answers after which it is sent again.
	Statuses []int `json:"statuses"`
}

// File is an argument in base64 that becomes a file of a multipart body.
type File struct {
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
}

// Body says which arguments become a request's body, and how.
type Body struct {
	// Kind is "json", "form", "multipart" or "raw".
	Kind string `json:"kind"`
	// Args are the names of the arguments; empty means all that the URL does not use. Kind raw needs exactly
	// one.
	Args []string `json:"args,omitempty"`
	// ContentType is the content type for kind raw.
	ContentType string `json:"contentType,omitempty"`
	// Files are the arguments that become files, for kind multipart.
	Files map[string]File `json:"files,omitempty"`
}

// MCP calls a tool of an upstream server.
type MCP struct {
	Server string `json:"server"`
	// Tool is the tool's name at the server. Its default, which the loader sets, is the name in the catalog
	// without the server's prefix.
	Tool string `json:"tool"`
}

// JQ is a program over the arguments; its first output is the result.
type JQ struct {
	Program string `json:"program"`
	// Output is "json" (a string becomes text, an object structured content) or "content", as in Exec. Empty
	// is "json".
	Output string `json:"output,omitempty"`
}

// Server is an upstream MCP server. Exactly one of Stdio and HTTP is set.
type Server struct {
	Name  string       `json:"name"`
	Stdio *Stdio       `json:"stdio,omitempty"`
	HTTP  *HTTPAddress `json:"http,omitempty"`
	// Prefix is put before the server's tool names to make the names in the catalog.
	Prefix         string `json:"prefix,omitempty"`
	MaxConnections int    `json:"maxConnections"`
	// Labels are key-value pairs for people and policies.
	Labels map[string]string `json:"labels,omitempty"`
	// Isolate is ByBranch if each branch has a connection of its own; empty if branches share connections.
	Isolate string `json:"isolate,omitempty"`
	// Eager connects when a generation begins to serve, instead of at the first call.
	Eager bool `json:"eager,omitempty"`
	// Protocol is the MCP revision to use; empty means the newest that both sides support.
	Protocol string `json:"protocol,omitempty"`
	// ConnectTimeout limits starting the process or connecting to the address, InitializeTimeout the MCP
	// initialization, and CallTimeout a call including the connecting that it may need.
	ConnectTimeout    time.Duration `json:"connectTimeout"`
	InitializeTimeout time.Duration `json:"initializeTimeout"`
	CallTimeout       time.Duration `json:"callTimeout"`
	// Discover selects the server's locked tools that become tools of the catalog; nil means none.
	Discover *Discover `json:"discover,omitempty"`
	// Forward says what else of the server is passed through: "resources", "prompts".
	Forward []string `json:"forward,omitempty"`

	Source
}

// ByBranch is the only value of Server.Isolate: one connection for each branch.
const ByBranch = "branch"

// Forwards reports whether the server's resources, or prompts, are passed through.
func (s Server) Forwards(what string) bool { return slices.Contains(s.Forward, what) }

// Discover selects tools of a server by their names at the server.
type Discover struct {
	// Only and Except are name patterns (MatchName); an empty Only means all tools.
	Only   []string `json:"only,omitempty"`
	Except []string `json:"except,omitempty"`
	// Tools are overrides by the tool's name at the server.
	Tools map[string]Override `json:"tools,omitempty"`
}

// Chooses reports whether the tool of that name at the server is selected.
func (d *Discover) Chooses(tool string) bool {
	matches := func(pattern string) bool { return MatchName(pattern, tool) }
	return d != nil && (len(d.Only) == 0 || slices.ContainsFunc(d.Only, matches)) && !slices.ContainsFunc(d.Except, matches)
}

// Override replaces parts of a discovered tool's definition. Empty fields change nothing.
type Override struct {
	// Rename is the whole name in the catalog, without the server's prefix.
	Rename      string              `json:"rename,omitempty"`
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Strictness  contract.Strictness `json:"strictness,omitempty"`
	Tags        []string            `json:"tags,omitempty"`
	// Fill inserts the defaults of the tool's schema into calls; else they are only annotations.
	Fill bool `json:"fill,omitempty"`
	// Timeout is the time limit of one call; 0 means the server's CallTimeout. Pre and Post are as in Tool.
	Timeout time.Duration `json:"timeout,omitempty"`
	Pre     string        `json:"pre,omitempty"`
	Post    string        `json:"post,omitempty"`
	// EffectNote is as in Tool, for one whose effect in the lock is read though its server does not say so.
	EffectNote string `json:"effectNote,omitempty"`
	// Idempotent and IdempotencyKey are as in Tool; the server's annotations set neither.
	Idempotent     bool   `json:"idempotent,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Result replaces the server's output schema, and ResultCheck is as in Tool.
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
	Name string `json:"name"`
	// Session is the name of a conversation branch; Name is then that of the declared branch that it was
	// forked from. Declarations can't set it.
	Session     string            `json:"session,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Select matches the tools that the branch may show; nil means all tools.
	Select *Selector `json:"select,omitempty"`
	// Hide matches tools that the branch does not show.
	Hide *Selector `json:"hide,omitempty"`
	// Strictness are stricter rules for the keys of tools, by tool name.
	Strictness map[string]contract.Strictness `json:"strictness,omitempty"`
	// Narrow is how the branch shows tools otherwise than they are declared, by their names in the catalog.
	Narrow map[string]Narrowing `json:"narrow,omitempty"`

	Source
}

// Narrowing is what a branch changes of a tool. It only takes away from what the tool accepts. Empty fields
// change nothing.
type Narrowing struct {
	// Name is the name that the branch shows instead of the one in the catalog. Policies decide by the one in
	// the catalog.
	Name string `json:"name,omitempty"`
	// Title is the title that the branch shows; empty for that of the catalog.
	Title string `json:"title,omitempty"`
	// Description is the description that the branch shows; empty for that of the catalog.
	Description string `json:"description,omitempty"`
	// Args are the arguments that are fixed, restricted or described anew; nil means none.
	Args *contract.Narrowing `json:"args,omitempty"`
}

// Selector matches a tool if any of its lists does. Names are patterns (MatchName).
type Selector struct {
	// Names are names of tools, or patterns of them such as get_*.
	Names []string `json:"names,omitempty"`
	// Tags are tags; a tool that has one of them is selected.
	Tags []string `json:"tags,omitempty"`
	// Servers are upstream servers; every tool of them is selected.
	Servers []string `json:"servers,omitempty"`
}
