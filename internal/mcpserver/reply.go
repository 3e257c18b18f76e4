package mcpserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// reply is a response in parts, so that a long list is never copied.
type reply struct {
	status int
	parts  [][]byte
	// retryAfter is how long the client has to wait before the same request can succeed; zero where it need not.
	retryAfter time.Duration
}

// beginReply returns a response up to its result.
func beginReply(id json.RawMessage) []byte {
	b := make([]byte, 0, len(id)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return append(b, `,"result":`...)
}

// fail returns an error response. A nil id is encoded as null.
func (b *branch) fail(id json.RawMessage, modern bool, e *rpcError) reply {
	return reply{status: httpStatus(e.Code, modern), parts: [][]byte{encodeError(id, e)}, retryAfter: e.retryAfter}
}

func encodeError(id json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *rpcError       `json:"error"`
	}{mcp.JSONRPC_VERSION, id, e})
	if err != nil {
		panic("mcpserver: an error always encodes: " + err.Error())
	}
	return out
}

// write sends the reply as one JSON document.
func (r reply) write(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = jsonContent
	h.Set("Content-Length", strconv.Itoa(length(r.parts)+1))
	SetRetryAfter(h, r.retryAfter)
	w.WriteHeader(r.status)
	for _, p := range r.parts {
		if _, err := w.Write(p); err != nil {
			return // the client has disconnected
		}
	}
	_, _ = w.Write(newline) // fails only if the client has disconnected
}

// Parts of every reply; never modified.
var (
	jsonContent = []string{"application/json"}
	newline     = []byte("\n")
)
