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

	"github.com/catalogd/catalogd/internal/strictjson"
)

// request is a JSON-RPC request to a server.
type request struct {
	JSONRPC string        `json:"jsonrpc"`
	ID      mcp.RequestId `json:"id"`
	Method  string        `json:"method"`
	Params  any           `json:"params,omitempty"`
	// header holds extra HTTP headers.
	header http.Header
	// once marks a request with a side effect: it is sent at most once.
	once bool
}

// notification is a JSON-RPC notification to a server.
type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// response answers a request. ID holds the bytes received, or those of the request that it answers.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is the error of a response, with its data as received.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// UnmarshalJSON reads a server's error leniently: the code may be a non-integer number or a string, and the
// message any value. The request has failed either way.
func (e *rpcError) UnmarshalJSON(raw []byte) error {
	var read struct{ Code, Message, Data json.RawMessage }
	if json.Unmarshal(raw, &read) != nil { // a string, or any other type
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

// message holds the members of any JSON-RPC message from a server.
type message struct {
	ID     json.RawMessage
	Method *string
	Params json.RawMessage
	Result json.RawMessage
	Error  *rpcError
}

// read parses a message. Names are matched exactly, and of duplicates the last one counts: a message is taken
// apart here and not forwarded, so nobody can read it differently. The members share data.
func (m *message) read(data []byte) error {
	*m = message{}
	var method, failure json.RawMessage
	err := strictjson.Members(data, func(name, _, value []byte) {
		switch string(name) {
		case "id":
			m.ID = value
		case "method":
			method = value
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			failure = value
		}
	})
	if err == nil && method != nil {
		err = json.Unmarshal(method, &m.Method)
	}
	if err == nil && failure != nil {
		err = json.Unmarshal(failure, &m.Error)
	}
	return err
}

// batch takes apart a batch of messages.
func batch(data []byte) (all [][]byte, err error) {
	err = strictjson.Items(data, func(one []byte) { all = append(all, one) })
	return all, err
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

// key returns the lookup key of a request id. It is the same for each spelling of a number, and never the
// same for a number and a string. It is empty for a value that is not a valid id.
func key(id json.RawMessage) string {
	var read mcp.RequestId
	if present(id) == nil || json.Unmarshal(id, &read) != nil {
		return ""
	}
	return read.String()
}

// ids generates the ids of a session's requests. Each is greater than the one before and can't be predicted,
// so an unsolicited response matches no request. They begin below 2^30 and are 8 apart on average, because
// some servers read no integers above 2^31.
type ids struct{ last atomic.Int64 }

func newIDs() *ids {
	i := &ids{}
	i.last.Store(1<<20 + rand.Int64N(1<<29))
	return i
}

func (i *ids) next() mcp.RequestId { return mcp.NewRequestId(i.last.Add(1 + rand.Int64N(16))) }

// resultResponse answers a server's request.
func resultResponse(id, result json.RawMessage) *response {
	return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Result: result}
}

func errorResponse(id json.RawMessage, code int, message string) *response {
	return &response{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: &rpcError{Code: code, Message: message}}
}

// refusal answers a server's request that is not relayed to a client: a ping with a result, any other with an
// error.
func refusal(id json.RawMessage, method string) *response {
	if method == string(mcp.MethodPing) {
		return resultResponse(id, json.RawMessage(`{}`))
	}
	return errorResponse(id, mcp.METHOD_NOT_FOUND, "catalogd relays no "+method+" to the client of this call")
}

// withoutBOM returns b without a leading byte order mark, which some servers write.
func withoutBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }
