package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/text/unicode/norm"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxMessage is the maximum size of one message in bytes, in every transport.
	maxMessage = 4 << 20
	// maxDepth is the maximum nesting depth of a message. The contract allows less for arguments, and
	// explains it in an error that a model can act on.
	maxDepth = 256
	// maxID is the maximum size of a request's id in bytes.
	maxID = 256
	// maxSafeInteger is the largest integer that all JSON parsers read alike (RFC 8259, section 6).
	maxSafeInteger = "9007199254740991"
)

// message is one JSON-RPC message that has passed the scan. Its raw parts are the received bytes, so what was
// checked is what is decided on and run.
type message struct {
	body []byte
	// id is nil for a notification.
	id json.RawMessage
	// method is empty for a response.
	method mcp.MCPMethod
	params json.RawMessage
	// result and failure are the result and error members of a response.
	result, failure json.RawMessage

	// The members of params that the Server reads; nil if absent.
	name      *string
	arguments json.RawMessage
	cursor    json.RawMessage
	requestID json.RawMessage
	level     json.RawMessage
	meta      json.RawMessage
	// responses and state belong to a further round of a call (2026-07-28).
	responses, state json.RawMessage
	// uri is that of a resource; ref, argument and context belong to completion/complete.
	uri               string
	ref               reference
	argument, context json.RawMessage
	// notifications is the filter of subscriptions/listen.
	notifications json.RawMessage
	// from is the session of an older revision that the message came from, set by the transport; nil for
	// 2026-07-28.
	from *client
	// flaw is the error in the params of a method that isn't always supported; its handler returns it.
	flaw *rpcError
}

// subject returns the name or URI that the message is about, shortened and escaped for logs.
func (m *message) subject() string {
	switch {
	case m.name != nil:
		return registry.Shown(*m.name)
	case m.uri != "":
		return registry.Shown(m.uri)
	}
	return registry.Shown(m.ref.Name + m.ref.URI)
}

// reference is the target of a completion: a prompt by its name, or a resource template by its URI.
type reference struct{ Type, Name, URI string }

// rpcError is a JSON-RPC error before it is encoded.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`

	retryAfter time.Duration // the header Retry-After of the answer over HTTP; zero for none
}

func refuse(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The keys of the protocol, which a lenient parser would also accept in another spelling.
var (
	topKeys   = [][]byte{[]byte("jsonrpc"), []byte("id"), []byte("method"), []byte("params"), []byte("result"), []byte("error")}
	paramKeys = [][]byte{
		[]byte("name"), []byte("arguments"), []byte("_meta"), []byte("cursor"), []byte("requestId"), []byte("level"),
		[]byte("uri"), []byte("ref"), []byte("argument"), []byte("context"),
		[]byte("protocolVersion"), []byte("capabilities"), []byte("clientInfo"), []byte("notifications"),
		[]byte("inputResponses"), []byte("requestState"),
	}
	metaKeys = [][]byte{
		[]byte(mcp.MetaKeyProtocolVersion), []byte(mcp.MetaKeyClientInfo), []byte(mcp.MetaKeyClientCapabilities),
		[]byte(mcp.MetaKeyLogLevel), []byte("progressToken"), []byte(metaDialect),
	}
	refKeys = [][]byte{[]byte("type"), []byte("name"), []byte("uri")}
)

// scan parses one message strictly: one JSON object in valid UTF-8, no duplicate key at any depth, no key
// that only resembles a protocol key, no control character in a protocol key, no unpaired surrogate, bounded
// depth, JSON-RPC 2.0 with a usable id. Parsers that differ in these would read one body as two messages. A
// refused message is returned too, with its id if that was read.
//
// An unpaired surrogate in the arguments of a tool is left to the contract, which reports its position to the
// model.
func scan(body []byte) (*message, *rpcError) {
	m := &message{body: body}
	if refusal := checkJSON(body); refusal != nil {
		return m, refusal
	}
	if refusal := m.readTop(); refusal != nil {
		return m, refusal
	}
	if refusal := m.readParams(); refusal != nil {
		return m, refusal
	}
	if unpaired := strictjson.Unpaired(body); unpaired > 0 {
		if m.method == mcp.MethodToolsCall {
			unpaired -= strictjson.Unpaired(m.arguments)
		}
		if unpaired > 0 {
			return m, refuse(mcp.INVALID_REQUEST, "a string contains an unpaired surrogate; send both halves of the pair")
		}
	}
	return m, nil
}

// checkJSON refuses a body that is not one strict JSON object. It allows unpaired surrogates, which its
// caller checks. A malformed body is a parse error, whatever else is wrong with it.
func checkJSON(body []byte) *rpcError {
	var wrong *strictjson.Error
	err := strictjson.Check(body, strictjson.Options{MaxDepth: maxDepth, AllowUnpaired: true})
	errors.As(err, &wrong)
	readable := err == nil || wrong.Problem == strictjson.Depth || wrong.Problem == strictjson.Duplicate
	switch {
	case !readable && wrong.Problem == strictjson.UTF8:
		return refuse(mcp.PARSE_ERROR, "the message is not valid UTF-8")
	case !readable || err != nil && !json.Valid(body):
		return refuse(mcp.PARSE_ERROR, "the message is not one JSON value")
	case bytes.TrimLeft(body, " \t\r\n")[0] != '{':
		return refuse(mcp.INVALID_REQUEST, "the message is not a JSON object; batches are not supported")
	case err == nil:
		return nil
	case wrong.Problem == strictjson.Depth:
		return refuse(mcp.INVALID_REQUEST, "the message nests deeper than %d levels", maxDepth)
	}
	return refuse(mcp.INVALID_REQUEST, "duplicate key %q in one object", wrong.Text)
}

func (m *message) readTop() *rpcError {
	var version, method, result, failure json.RawMessage
	var badID *rpcError
	err := members(m.body, topKeys, func(key, value []byte) {
		switch string(key) {
		case "jsonrpc":
			version = value
		case "id":
			if badID = checkID(value); badID == nil {
				m.id = value
			}
		case "method":
			method = value
		case "params":
			m.params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
	})
	switch {
	case err != nil:
		return refuse(mcp.INVALID_REQUEST, "%v", err)
	case badID != nil:
		return badID
	case string(text(version)) != "2.0":
		return refuse(mcp.INVALID_REQUEST, `jsonrpc must be "2.0"`)
	case method != nil && (result != nil || failure != nil):
		return refuse(mcp.INVALID_REQUEST, "a message has either a method or a result")
	case method == nil && m.id != nil && (result != nil) != (failure != nil):
		m.result, m.failure = result, failure
		return nil // a response to a request that the Server sent
	case method == nil:
		return refuse(mcp.INVALID_REQUEST, "method is missing")
	case len(text(method)) == 0:
		return refuse(mcp.INVALID_REQUEST, "method must be a string that is not empty")
	case m.params != nil && m.params[0] != '{':
		return refuse(mcp.INVALID_REQUEST, "params must be an object")
	}
	m.method = mcp.MCPMethod(str(method))
	return nil
}

func (m *message) readParams() *rpcError {
	if m.params == nil && !needsParams[m.method] {
		return nil
	}
	var name, uri, ref json.RawMessage
	params := m.params
	if params == nil {
		params = json.RawMessage("{}")
	}
	err := members(params, paramKeys, func(key, value []byte) {
		switch string(key) {
		case "name":
			name = value
		case "arguments":
			m.arguments = value
		case "cursor":
			m.cursor = value
		case "requestId":
			m.requestID = value
		case "level":
			m.level = value
		case "uri":
			uri = value
		case "ref":
			ref = value
		case "argument":
			m.argument = value
		case "context":
			m.context = value
		case "_meta":
			m.meta = value
		case "notifications":
			m.notifications = value
		case "inputResponses":
			m.responses = value
		case "requestState":
			m.state = value
		}
	})
	if err != nil {
		return refuse(mcp.INVALID_REQUEST, "params: %v", err)
	}
	if m.meta != nil && m.meta[0] != '{' {
		return refuse(mcp.INVALID_REQUEST, "params._meta must be an object")
	}
	if m.meta != nil {
		if err := members(m.meta, metaKeys, func(_, _ []byte) {}); err != nil {
			return refuse(mcp.INVALID_REQUEST, "params._meta: %v", err)
		}
	}
	switch m.method {
	case mcp.MethodToolsCall:
		return m.readNamed(name)
	case mcp.MethodPromptsGet:
		m.flaw = m.readNamed(name)
	case mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		if m.uri = str(uri); m.uri == "" {
			m.flaw = refuse(mcp.INVALID_PARAMS, "params.uri must be a string that is not empty")
		}
	case mcp.MethodCompletionComplete:
		m.flaw = m.readCompletion(ref)
	}
	return nil
}

// needsParams lists the methods whose params are checked even if absent, to report what is missing.
var needsParams = map[mcp.MCPMethod]bool{
	mcp.MethodToolsCall: true, mcp.MethodPromptsGet: true, mcp.MethodResourcesRead: true, mcp.MethodCompletionComplete: true,
	mcp.MethodResourcesSubscribe: true, mcp.MethodResourcesUnsubscribe: true,
}

// readCompletion reads the target, argument and context of completion/complete.
func (m *message) readCompletion(ref json.RawMessage) *rpcError {
	if ref == nil || ref[0] != '{' {
		return refuse(mcp.INVALID_PARAMS, "params.ref must be an object")
	}
	err := members(ref, refKeys, func(key, value []byte) {
		switch string(key) {
		case "type":
			m.ref.Type = str(value)
		case "name":
			m.ref.Name = str(value)
		case "uri":
			m.ref.URI = str(value)
		}
	})
	switch {
	case err != nil:
		return refuse(mcp.INVALID_REQUEST, "params.ref: %v", err)
	case !(m.ref.Type == "ref/prompt" && m.ref.Name != "" || m.ref.Type == "ref/resource" && m.ref.URI != ""):
		return refuse(mcp.INVALID_PARAMS, "params.ref must be of type ref/prompt with a name, or ref/resource with a uri")
	case m.argument == nil || m.argument[0] != '{':
		return refuse(mcp.INVALID_PARAMS, "params.argument must be an object")
	case m.context != nil && m.context[0] != '{':
		return refuse(mcp.INVALID_PARAMS, "params.context must be an object")
	}
	return nil
}

// readNamed reads the name of a tool or prompt and checks that its arguments are an object.
func (m *message) readNamed(name json.RawMessage) *rpcError {
	if name == nil || name[0] != '"' {
		return refuse(mcp.INVALID_PARAMS, "params.name must be a string")
	}
	called := str(name)
	m.name = &called
	if m.arguments != nil && m.arguments[0] != '{' {
		return refuse(mcp.INVALID_PARAMS, "params.arguments must be an object")
	}
	return nil
}

// checkID refuses an id that is not a string or an integer within the safe range (MCP 2025-06-18, basic: an
// id must be a string or integer, and not null).
func checkID(raw json.RawMessage) *rpcError {
	if len(raw) > maxID {
		return refuse(mcp.INVALID_REQUEST, "id is longer than %d bytes", maxID)
	}
	if raw[0] == '"' {
		return nil
	}
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return refuse(mcp.INVALID_REQUEST, "id must be a string or an integer")
		}
	}
	if len(digits) > len(maxSafeInteger) || len(digits) == len(maxSafeInteger) && string(digits) > maxSafeInteger {
		return refuse(mcp.INVALID_REQUEST, "id must be at most %s", maxSafeInteger)
	}
	return nil
}

// idKey returns a map key for an id, the same for two spellings of one string.
func idKey(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return "s" + str(raw)
	}
	return "n" + string(raw)
}

// text returns the string value of raw, which has passed the scan; nil if raw is not a string.
func text(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return []byte(s)
}

// str returns text as a string. It doesn't allocate for the strings that nearly every message has.
func str(raw []byte) string {
	switch s := text(raw); string(s) {
	case string(mcp.MethodToolsCall):
		return string(mcp.MethodToolsCall)
	case string(mcp.MethodToolsList):
		return string(mcp.MethodToolsList)
	case mcp.ProtocolVersion20260728:
		return mcp.ProtocolVersion20260728
	default:
		return string(s)
	}
}

// members calls f for each member of an object. If known lists the protocol's keys, a key that only resembles
// one of them, or that contains a control character, is an error.
func members(object []byte, known [][]byte, f func(key, value []byte)) error {
	var unclear error
	err := strictjson.Members(object, func(key, _, value []byte) {
		if known != nil && unclear == nil {
			unclear = checkKey(key, known)
		}
		if unclear == nil {
			f(key, value)
		}
	})
	return errors.Join(unclear, err)
}

// checkKey refuses a key that a lenient parser could read as another one: parsers ignore case, end strings at
// a NUL, drop invisible characters, or normalize.
func checkKey(key []byte, known [][]byte) error {
	for _, k := range known {
		if bytes.Equal(key, k) {
			return nil
		}
	}
	bare := skeleton(key)
	for _, k := range known {
		if bytes.EqualFold(bare, k) {
			return fmt.Errorf("key %q resembles %q", key, k)
		}
	}
	if bytes.ContainsFunc(key, unicode.IsControl) {
		return fmt.Errorf("key %q contains a control character", key)
	}
	return nil
}

// skeleton returns a key in compatibility form (Unicode NFKC), without white space and invisible characters.
func skeleton(key []byte) []byte {
	if !bytes.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return key
	}
	return bytes.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, norm.NFKC.Bytes(key))
}
