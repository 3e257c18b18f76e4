package registry

import (
	"context"
	"encoding/json"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempt"
)

// Invocation is one run of a tool.
type Invocation struct {
	// Args are arguments that the tool's contract has accepted.
	Args contract.Args
	// To receives the messages of the tool while it runs; the zero Listener discards them.
	To Listener
	// Attempt is, for a tool with a side effect, the effector's permission to run it once, with the
	// idempotency key for the receiver. It is zero for a read tool.
	Attempt attempt.Attempt
}

// Invoker runs one tool. Both methods are safe for concurrent use.
type Invoker interface {
	// Invoke runs the tool once. A failure on which a model can act (a non-zero exit status, an HTTP status
	// of 400 or above, an upstream result with isError) is a Result with IsError; an *Error means that there
	// is no result. After the end of ctx Invoke returns soon and leaves nothing running. An invocation with
	// an Attempt is sent once and repeated at no layer; Error.Unsent and Result.Unclear say what is known of
	// the effect.
	Invoke(ctx context.Context, in Invocation) (*Result, error)
	// Plan returns what Invoke would do with these arguments, without doing it. Secrets are masked as ***.
	Plan(args contract.Args) (Plan, error)
}

// Plan is the exact command line, request, remote call or program that a call would run.
type Plan struct {
	// Kind is the kind of the binding: exec, http, mcp, jq, func, or intent for a built-in tool.
	Kind string `json:"kind"`
	// Argv, Dir, Env and Stdin are for exec. Argv begins with the resolved absolute path. Dir is empty if the
	// command works in a private directory. Env has the variables beside the base as NAME=value.
	Argv  []string `json:"argv,omitempty"`
	Dir   string   `json:"dir,omitempty"`
	Env   []string `json:"env,omitempty"`
	Stdin string   `json:"stdin,omitempty"`
	// Method, URL, Headers and Body are for http.
	Method  string              `json:"method,omitempty"`
	URL     string              `json:"url,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Body    string              `json:"body,omitempty"`
	// Server, Tool and Args are for mcp; Program and Args for jq; Tool and Args for a built-in tool (Kind
	// "intent") and for a Go function (Kind "func").
	Server  string          `json:"server,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Program string          `json:"program,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// Result is the result of a tool: a CallToolResult of MCP. Content blocks are the bytes received from an
// upstream server, so that nothing is lost.
type Result struct {
	// Content are the content blocks, as MCP has them.
	Content []json.RawMessage `json:"content"`
	// Structured is the structured content; absent if there is none.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	// IsError says that the tool reports a failure.
	IsError bool `json:"isError,omitempty"`
	// Meta is the _meta of an upstream server's answer.
	Meta json.RawMessage `json:"_meta,omitempty"`
	// Fields are the unchanged members of the answer that no revision of MCP defines. Code that removes
	// something from a result must remove all of them too, because they may repeat it.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	// Answer is the unchanged answer of an upstream server; it is sent to the client in place of the parts.
	// Code that changes a part must set it to nil.
	Answer []Member `json:"-"`
	// Unclear says that it is not known whether the tool had its effect, because the answer is not the tool's
	// or is incomplete, such as a gateway's 502 or the output of a killed command.
	Unclear bool `json:"-"`
	// Handle says that the result is a Handle.
	Handle bool `json:"-"`
	// Input is the input that the tool asks for before it can answer; nil for a result. All other fields
	// except Meta are then empty. Only a caller with Listener.Rounds gets one.
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
