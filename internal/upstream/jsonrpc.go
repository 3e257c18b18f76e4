package upstream

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
)

// request is a JSON-RPC request of ours.
type request struct {
	JSONRPC string        `json:"jsonrpc"`
	ID      mcp.RequestId `json:"id"`
	Method  string        `json:"method"`
	Params  any           `json:"params,omitempty"`
	// header is what is sent along over HTTP.
	header http.Header
}

// notification is a JSON-RPC notification of ours.
type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// response is what answers a request. ID is the bytes that came, or those of the request that it answers.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is the error of a response, with its data as the bytes that came.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// UnmarshalJSON reads the error of a server, which may have written the code as another number than an
// integer or as a text, and the message as anything: what it means is clear enough, and the request has
// failed.
func (e *rpcError) UnmarshalJSON(raw []byte) error {
	var read struct{ Code, Message, Data json.RawMessage }
	if json.Unmarshal(raw, &read) != nil { // a text, or whatever it is
		read.Message = raw
	}
	*e = rpcError{Code: mcp.INTERNAL_ERROR, Data: present(read.Data)}
	code := strings.Trim(string(read.Code), `"`)
	if n, err := strconv.ParseFloat(code, 64); err == nil && n == float64(int(n)) {
		e.Code = int(n)
	}
	if json.Unmarshal(read.Message, &e.Message) != nil && present(read.Message) != nil {
		e.Message = string(read.Message)
	}
	return nil
}

// message is what one JSON-RPC message of a server's can hold.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// named reports whether m has an id that a request may have: a string or a number.
func (m *message) named() bool {
	id := present(m.ID)
	return id != nil && (id[0] == '"' || number(id))
}

// answers reports whether m is a response: exactly one of result and error. Some servers write a result of
// null beside an error.
func (m *message) answers() bool {
	if m.Method != nil || !m.named() {
		return false
	}
	if m.Error != nil {
		return present(m.Result) == nil
	}
	return m.Result != nil
}

// asks reports whether m is a request.
func (m *message) asks() bool { return m.Method != nil && m.named() }

// notifies reports whether m is a notification. Some servers write an id of null.
func (m *message) notifies() bool { return m.Method != nil && present(m.ID) == nil }

func (m *message) response() *response {
	return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: m.ID, Result: m.Result, Error: m.Error}
}

// key is an id as one to look requests up by; it is the same for each way to write a number, and never the
// same for a number and a string. Empty for what is no id.
func key(id json.RawMessage) string {
	var read mcp.RequestId
	if present(id) == nil || json.Unmarshal(id, &read) != nil {
		return ""
	}
	return read.String()
}

// ids gives out the ids of a session's requests: each is greater than the one before, and a server can't know
// the next one before it is sent, so what it sends unasked answers nothing. They begin below 2^30 and are far
// apart by 8 on average, because some servers read no greater integers than 2^31.
type ids struct{ last atomic.Int64 }

func newIDs() *ids {
	i := &ids{}
	i.last.Store(1<<20 + rand.Int64N(1<<29))
	return i
}

func (i *ids) next() mcp.RequestId { return mcp.NewRequestId(i.last.Add(1 + rand.Int64N(16))) }

// resultResponse answers a request of the server's.
func resultResponse(id, result json.RawMessage) *response {
	return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Result: result}
}

func errorResponse(id json.RawMessage, code int, message string) *response {
	return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &rpcError{Code: code, Message: message}}
}

// refusal is what a server's own request gets that is not relayed to a client. A ping is answered.
func refusal(id json.RawMessage, method string) *response {
	if method == string(mcp.MethodPing) {
		return resultResponse(id, json.RawMessage(`{}`))
	}
	return errorResponse(id, mcp.METHOD_NOT_FOUND, "catalogd relays no "+method+" to the client of this call")
}

// withoutBOM is b without a byte order mark, which some servers write first.
func withoutBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }
