package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// The keys that catalogd adds to the _meta of a result. An upstream can't set them.
const (
	// metaCall holds the call's id, generation and intent, as in the operator's log. It is also a member of the
	// data of a JSON-RPC error.
	metaCall = "catalogd/call"
	// metaError holds the code of an error, the code of the decision that refused and, for invalid arguments,
	// every violation. It is also a member of the data of a JSON-RPC error.
	metaError = "catalogd/error"
)

// The keys that a caller may set in the _meta of a call.
const (
	// metaDialect is the dialect in which the model was shown the tool.
	metaDialect = "catalogd/dialect"
	// metaKey is the caller's idempotency key for a tool with a side effect.
	metaKey = "catalogd/idempotencyKey"
)

// asked reads the _meta of a call: its dialect, MCP by default, and its idempotency key.
func (m *message) asked() (d dialect.Dialect, key string, err error) {
	if !bytes.Contains(m.meta, []byte(metaDialect)) && !bytes.Contains(m.meta, []byte(metaKey)) {
		return dialect.MCP, "", nil
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(m.meta, &meta); err != nil {
		return "", "", err
	}
	d = dialect.MCP
	if named, ok := meta[metaDialect]; ok {
		var name string
		if json.Unmarshal(named, &name) != nil {
			return "", "", errors.New(metaDialect + " must be a string")
		}
		if d, err = dialect.Parse(name); err != nil {
			return "", "", err
		}
	}
	if named, ok := meta[metaKey]; ok {
		if json.Unmarshal(named, &key) != nil {
			return "", "", errors.New(metaKey + " must be a string")
		}
		if err := registry.CheckIdempotencyKey(key); err != nil {
			return "", "", fmt.Errorf("%s can't be %w", metaKey, err)
		}
	}
	return d, key, nil
}

// call answers tools/call. An unknown tool is a JSON-RPC error, identical for a hidden tool and for one that
// never existed. Every other failure is a result with isError, whose text says what to do.
func (b *branch) call(ctx context.Context, m *message, path *invoke.Path, modern bool, to registry.Listener, release *func()) reply {
	d, key, err := m.asked()
	if err != nil {
		return b.fail(m.id, modern, refuse(mcp.INVALID_PARAMS, "params._meta: %v", err))
	}
	req := invoke.Request{Tool: *m.name, Arguments: m.arguments, Dialect: d, Principal: b.caller.Principal, Credential: b.caller.Credential(), Key: key, Listener: to}
	if modern {
		return b.turn(ctx, m, path, req, release)
	}
	call := path.Call(ctx, req)
	b.server.Called(&call)
	return b.called(m, &call, false)
}

// called returns the answer to a call that has ended.
func (b *branch) called(m *message, call *registry.Call, modern bool) reply {
	if call.Err != nil && call.Err.Code == registry.UnknownTool {
		return b.fail(m.id, modern, unknown(call))
	}
	status, retryAfter := http.StatusOK, time.Duration(0)
	if call.Err != nil {
		retryAfter = call.Err.RetryAfter
		if call.Err.Code == registry.Overloaded {
			status = http.StatusTooManyRequests
		}
	}
	out := append(make([]byte, 0, 1024), beginReply(m.id)...)
	out = b.server.appendResult(out, call, modern)
	return reply{status: status, parts: [][]byte{append(out, '}')}, retryAfter: retryAfter}
}

func unknown(call *registry.Call) *rpcError {
	err := call.Err
	nearest := err.Nearest
	if nearest == nil {
		nearest = []string{}
	}
	return &rpcError{Code: mcp.INVALID_PARAMS, Message: err.Msg, Data: map[string]any{
		"nearest": nearest, metaError: codes(err), metaCall: callData(call),
	}}
}

// callData is the member metaCall of the data of an error, as appendMeta writes that of a result.
func callData(call *registry.Call) any {
	return struct {
		ID         string `json:"id"`
		Generation string `json:"generation"`
	}{call.ID, call.Generation}
}

// appendResult appends a CallToolResult. An unchanged answer of an upstream is forwarded byte by byte,
// otherwise its content blocks and structured content are.
func (s *Server) appendResult(out []byte, call *registry.Call, modern bool) []byte {
	result := call.Result
	if call.Err != nil {
		result = &registry.Result{Content: []json.RawMessage{registry.Text(call.Err.Msg)}, IsError: true}
	}
	if !modern {
		result = forOlder(result)
	}
	if result.Answer != nil {
		return s.appendAnswer(out, result.Answer, call, modern)
	}
	out = append(out, `{"content":[`...)
	for i, block := range result.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, block...)
	}
	out = append(out, ']')
	if result.Structured != nil {
		out = append(out, `,"structuredContent":`...)
		out = append(out, result.Structured...)
	}
	if result.IsError {
		out = append(out, `,"isError":true`...)
	}
	if modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	if len(result.Fields) > 0 {
		for _, name := range slices.Sorted(maps.Keys(result.Fields)) {
			out = appendQuoted(append(out, ','), name)
			out = append(append(out, ':'), result.Fields[name]...)
		}
	}
	out = append(out, `,"_meta":`...)
	return append(s.appendCallMeta(out, result.Meta, call, modern), '}')
}

// forOlder returns a result for a client of the older revisions, in which structured content must be an
// object: any other value becomes text, unless the result already has content.
func forOlder(result *registry.Result) *registry.Result {
	if len(result.Structured) == 0 || result.Structured[0] == '{' {
		return result
	}
	older := *result
	older.Structured, older.Answer = nil, nil
	if len(older.Content) == 0 {
		older.Content = []json.RawMessage{registry.Text(string(result.Structured))}
	}
	return &older
}

// appendAnswer appends an upstream's answer with its members in order. resultType follows the client's
// revision, and catalogd's own members are added to _meta.
func (s *Server) appendAnswer(out []byte, answer []registry.Member, call *registry.Call, modern bool) []byte {
	out = append(out, '{')
	kind, meta := false, false
	for _, m := range answer {
		if m.Name == "resultType" {
			if !modern {
				continue
			}
			kind = true
		}
		out = append(append(out, m.Key...), ':')
		if m.Name == "_meta" {
			meta = true
			out = s.appendCallMeta(out, m.Value, call, modern)
		} else {
			out = append(out, m.Value...)
		}
		out = append(out, ',')
	}
	if modern && !kind {
		out = append(out, `"resultType":"complete",`...)
	}
	if !meta {
		out = s.appendCallMeta(append(out, `"_meta":`...), nil, call, modern)
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out
}

// appendCallMeta appends the _meta of a call's result.
func (s *Server) appendCallMeta(out []byte, upstream json.RawMessage, call *registry.Call, modern bool) []byte {
	out = appendMeta(append(out, '{'), upstream, call)
	if call.Err != nil {
		out = append(out, `,"`+metaError+`":`...)
		out = append(out, errorMeta(call.Err)...)
	}
	if modern {
		out = append(out, ',')
		out = append(out, s.serverInfo...)
	}
	return append(out, '}')
}

// appendMeta appends the members of _meta that every result of a call has.
func appendMeta(out []byte, upstream json.RawMessage, call *registry.Call) []byte {
	out = appendUpstreamMeta(out, upstream)
	out = append(out, `"`+metaCall+`":{"id":"`...)
	out = append(out, call.ID...)
	out = append(out, `","generation":`...)
	out = appendQuoted(out, call.Generation)
	if call.Intent != "" {
		out = append(append(append(out, `,"intent":"`...), call.Intent...), '"')
	}
	return append(out, '}')
}

// appendUpstreamMeta appends the members of a tool's own _meta as received, each followed by a comma, without
// those that are reserved for catalogd.
func appendUpstreamMeta(out []byte, meta json.RawMessage) []byte {
	members, _ := registry.Split(meta) // a _meta that is not an object is ignored
	for _, m := range members {
		if strings.HasPrefix(m.Name, "catalogd/") || m.Name == mcp.MetaKeyServerInfo {
			continue
		}
		out = append(append(out, m.Key...), ':')
		out = append(append(out, m.Value...), ',')
	}
	return out
}

func errorMeta(err *registry.Error) []byte {
	reply := codes(err)
	reply.Violations = err.Violations
	out, encodeErr := json.Marshal(reply)
	if encodeErr != nil {
		panic("mcpserver: an error's code and violations always encode: " + encodeErr.Error())
	}
	return out
}

// errorCodes are the machine-readable codes of an error; docs/reasons.md lists them.
type errorCodes struct {
	Code       registry.ErrorCode   `json:"code"`
	Decision   string               `json:"decision,omitempty"`
	Violations []contract.Violation `json:"violations,omitempty"`
	// Limit and RetryAfter, in whole seconds, are those of an error over a limit.
	Limit      string `json:"limit,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`
}

func codes(err *registry.Error) errorCodes {
	return errorCodes{Code: err.Code, Decision: err.Decision, Limit: err.Limit, RetryAfter: registry.Seconds(err.RetryAfter)}
}

// appendQuoted appends a string as JSON.
func appendQuoted(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("mcpserver: a string always encodes: " + err.Error())
			}
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// internal logs an error under a new id, and returns an error that contains only the id.
func (s *Server) internal(what string, err error) *rpcError {
	id := registry.NewCallID()
	s.Log.Error("internal error", "id", id, "in", what, "error", err)
	return refuse(mcp.INTERNAL_ERROR, "internal error; the operator's log has it as %s", id)
}

// Panicked is internal for a recovered panic: its text may contain anything, so it is only logged.
func (s *Server) Panicked(what string, p any) *rpcError {
	return s.internal(what, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}
