package registry

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// Invocation is one run of a tool.
type Invocation struct {
	// Args have passed the tool's contract; nothing else is ever handed in.
	Args contract.Args
	// To hears what the tool says while it runs; the zero Listener hears nothing.
	To Listener
	// Attempt is the effector's, for a tool with a side effect: what it runs at most once, and the key by which
	// the receiver can tell a repetition. The zero Attempt is a read tool's.
	Attempt attempt.Attempt
}

// Invoker runs one tool. Both methods are safe for concurrent use.
type Invoker interface {
	// Invoke runs the tool once. A failure that a model can act on (a non-zero exit, a status of 400 and above, a result
	// that the upstream flags) is a Result with IsError; an *Error says that there is no result at all. It honours ctx and
	// returns soon after its end, with nothing left running. An invocation with an Attempt is sent once: neither the
	// Invoker nor anything below it repeats it, and what is not known of it is said (Error.Unsent, Result.Unclear).
	Invoke(ctx context.Context, in Invocation) (*Result, error)
	// Plan says what Invoke would do with these arguments, and does nothing. Secrets are masked as ***.
	Plan(args contract.Args) (Plan, error)
}

// Plan is the exact command line, request, remote call or program that a call would run.
type Plan struct {
	Kind string `json:"kind"`
	// Argv, Dir, Env and Stdin are for exec. Argv begins with the resolved absolute path; Dir is empty where
	// the command works in a private directory; Env holds NAME=value of what is beside the base.
	Argv  []string `json:"argv,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	Env   []string `json:"env,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
	// Method, URL, Headers and Body are for http.
	Method  string              `json:"method,omitempty"`
	URL     string              `json:"url,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Body    string              `json:"body,omitempty"`
	// Server, Tool and Args are for mcp; Program and Args for jq; Tool and Args for a built-in tool (Kind "intent").
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
	// Unclear says that the answer doesn't come from the tool, or that the tool could not say it whole: a gateway's
	// 502, or a command that was killed. Whether the tool did what it was asked is not known.
	Unclear bool `json:"-"`
	// Handle says that it is a handle (Handle), in place of a result that is not there yet.
	Handle bool `json:"-"`
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
