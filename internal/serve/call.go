package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// The keys that catalogd adds to a result's _meta. Nothing that an upstream sends can stand under them.
const (
	// metaCall holds the call's id and generation, as they stand in the operator's log.
	metaCall = "catalogd/call"
	// metaError holds the code of an error, that of the decision that refused and, for wrong arguments, every violation. It stands
	// in the data of a JSON-RPC error too.
	metaError = "catalogd/error"
)

// metaDialect is the key of a call's own _meta that says in which dialect the model was shown the tool.
const metaDialect = "catalogd/dialect"

// dialect is the dialect that a call names in its _meta; MCP where it names none.
func (m *message) dialect() (dialect.Dialect, error) {
	if !bytes.Contains(m.meta, []byte(metaDialect)) {
		return dialect.MCP, nil
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(m.meta, &meta); err != nil {
		return "", err
	}
	named, ok := meta[metaDialect]
	if !ok {
		return dialect.MCP, nil
	}
	var name string
	if json.Unmarshal(named, &name) != nil {
		return "", errors.New(metaDialect + " must be a string")
	}
	return dialect.Parse(name)
}

// call answers tools/call. An unknown tool is a JSON-RPC error, the same for a hidden tool and for one that never was;
// every other failure is a result with isError, whose text says what to do.
func (b *branch) call(ctx context.Context, m *message, path *invoke.Path, modern bool, to registry.Listener, release *func()) reply {
	d, err := m.dialect()
	if err != nil {
		return b.fail(m.id, modern, refuse(mcp.INVALID_PARAMS, "params._meta: %v", err))
	}
	req := invoke.Request{Tool: *m.name, Arguments: m.arguments, Dialect: d, Principal: b.caller.principal, Listener: to}
	if modern {
		return b.turn(ctx, m, path, req, release)
	}
	call := path.Call(ctx, req)
	b.front.metrics.called(&call)
	return b.called(m, &call, false)
}

// called is the answer to a call that has ended.
func (b *branch) called(m *message, call *registry.Call, modern bool) reply {
	if call.Err != nil && call.Err.Code == registry.UnknownTool {
		return b.fail(m.id, modern, unknown(call.Err))
	}
	out := append(make([]byte, 0, 1024), begin(m.id)...)
	out = b.front.appendResult(out, call, modern)
	return reply{status: 200, parts: [][]byte{append(out, '}')}}
}

func unknown(err *registry.Error) *rpcError {
	nearest := err.Nearest
	if nearest == nil {
		nearest = []string{}
	}
	return &rpcError{Code: mcp.INVALID_PARAMS, Message: err.Msg, Data: map[string]any{"nearest": nearest, metaError: codes(err)}}
}

// appendResult writes a CallToolResult. What an upstream server answered is its own bytes, as long as nothing of it has
// been changed; else content blocks and structured content are.
func (f *Front) appendResult(out []byte, call *registry.Call, modern bool) []byte {
	result := call.Result
	if call.Err != nil {
		result = &registry.Result{Content: []json.RawMessage{registry.Text(call.Err.Msg)}, IsError: true}
	}
	if !modern {
		result = forOlder(result)
	}
	if result.Answer != nil {
		return f.appendAnswer(out, result.Answer, call, modern)
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
	return append(f.appendCallMeta(out, result.Meta, call, modern), '}')
}

// forOlder is a result for a client of the older revisions, which know no structured content but objects: what is none
// is text, unless the tool says it as text itself.
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

// appendAnswer writes an upstream's answer, each member in its place. What says which revision it is in is the client's,
// and what catalogd adds is in its _meta.
func (f *Front) appendAnswer(out []byte, answer []registry.Member, call *registry.Call, modern bool) []byte {
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
			out = f.appendCallMeta(out, m.Value, call, modern)
		} else {
			out = append(out, m.Value...)
		}
		out = append(out, ',')
	}
	if modern && !kind {
		out = append(out, `"resultType":"complete",`...)
	}
	if !meta {
		out = f.appendCallMeta(append(out, `"_meta":`...), nil, call, modern)
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out
}

// appendCallMeta writes the _meta of a call's result.
func (f *Front) appendCallMeta(out []byte, upstream json.RawMessage, call *registry.Call, modern bool) []byte {
	out = appendMeta(append(out, '{'), upstream, call)
	if call.Err != nil {
		out = append(out, `,"`+metaError+`":`...)
		out = append(out, errorMeta(call.Err)...)
	}
	if modern {
		out = append(out, ',')
		out = append(out, f.serverInfo...)
	}
	return append(out, '}')
}

// appendMeta writes the members of _meta that every result of a call has.
func appendMeta(out []byte, upstream json.RawMessage, call *registry.Call) []byte {
	out = appendUpstreamMeta(out, upstream)
	out = append(out, `"`+metaCall+`":{"id":"`...)
	out = append(out, call.ID...)
	out = append(out, `","generation":`...)
	out = appendQuoted(out, call.Generation)
	return append(out, '}')
}

// appendUpstreamMeta writes the members of a tool's own _meta as they came, each followed by a comma, without those that
// speak for catalogd.
func appendUpstreamMeta(out []byte, meta json.RawMessage) []byte {
	members, _ := registry.Split(meta) // what is no object is not a _meta
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
	told := codes(err)
	told.Violations = err.Violations
	out, encodeErr := json.Marshal(told)
	if encodeErr != nil {
		panic("serve: an error's code and violations always encode: " + encodeErr.Error())
	}
	return out
}

// errorCodes is what an error says to programs; docs/reasons.md lists the codes.
type errorCodes struct {
	Code       registry.ErrorCode   `json:"code"`
	Decision   string               `json:"decision,omitempty"`
	Violations []contract.Violation `json:"violations,omitempty"`
}

func codes(err *registry.Error) errorCodes { return errorCodes{Code: err.Code, Decision: err.Decision} }

// appendQuoted appends a string as JSON.
func appendQuoted(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("serve: a string always encodes: " + err.Error())
			}
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// internal logs what went wrong under an id, and answers with the id alone.
func (f *Front) internal(what string, err error) *rpcError {
	id := registry.NewCallID()
	f.Log.Error("internal error", "id", id, "in", what, "error", err)
	return refuse(mcp.INTERNAL_ERROR, "internal error; the operator's log has it as %s", id)
}

// panicked is internal for a recovered panic: its text may hold anything, so it goes to the log only.
func (f *Front) panicked(what string, p any) *rpcError {
	return f.internal(what, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
}
