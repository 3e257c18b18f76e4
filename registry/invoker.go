package registry

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
)

// Invoker runs one tool. The arguments have passed the tool's contract; nothing else is ever handed in. Both methods are
// safe for concurrent use.
type Invoker interface {
	// Invoke runs the tool once. A failure that a model can act on (a non-zero exit, a status of 400 and above, a result
	// that the upstream flags) is a Result with IsError; an *Error says that there is no result at all. It honours ctx and
	// returns soon after its end, with nothing left running.
	Invoke(ctx context.Context, args contract.Args) (*Result, error)
	// Plan says what Invoke would do with these arguments, and does nothing. Secrets stand as ***.
	Plan(args contract.Args) (Plan, error)
}

// Plan is the exact command line, request, remote call or program that a call would run.
type Plan struct {
	Kind string `json:"kind"`
	// Argv, Dir, Env and Stdin are for exec. Argv begins with the resolved absolute path; Env holds NAME=value.
	Argv  []string `json:"argv,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	Env   []string `json:"env,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
	// Method, URL, Headers and Body are for http.
	Method  string              `json:"method,omitempty"`
	URL     string              `json:"url,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Body    string              `json:"body,omitempty"`
	// Server, Tool and Args are for mcp; Program and Args for jq.
	Server  string          `json:"server,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Program string          `json:"program,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// Result is what a tool answered, in MCP's terms (CallToolResult). Content blocks are kept as the bytes that they came
// as, so that nothing of an upstream's answer is lost.
type Result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError,omitempty"`
	Meta       json.RawMessage   `json:"_meta,omitempty"`
	// Fields are the members of the answer that no revision names, as they came. Whoever takes something out of a result
	// takes these out as well, since nobody knows what they repeat.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	// Answer is the whole answer of an upstream server as it came, as long as nothing of the result has been changed: whoever
	// changes a part sets it to nil. A client is sent it instead of the parts.
	Answer []Member `json:"-"`
	// Input says that this is no answer yet, and what the tool asks first. Only a caller that takes it (Listener.Rounds)
	// gets one; the rest but Meta is then empty.
	Input *Input `json:"-"`
}

// Text makes a content block of type text. Invalid UTF-8 is replaced (U+FFFD).
func Text(s string) json.RawMessage {
	b, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", s})
	if err != nil {
		panic("registry: a string always encodes: " + err.Error())
	}
	return b
}
