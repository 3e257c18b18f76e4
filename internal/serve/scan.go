package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/text/unicode/norm"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxMessage caps one message in bytes, in every transport.
	maxMessage = 4 << 20
	// maxDepth caps how deep objects and lists of a message nest. The contract holds arguments to less, and says so in a way
	// that a model can act on.
	maxDepth = 256
	// maxID caps the bytes of a request's id.
	maxID = 256
	// maxSafeInteger is the largest integer that every JSON parser reads alike (RFC 8259, section 6).
	maxSafeInteger = "9007199254740991"
)

// message is one JSON-RPC message that has passed the scan. Its raw parts are the very bytes that came, so what was
// checked is what is decided on and run.
type message struct {
	body []byte
	// id is nil for a notification.
	id json.RawMessage
	// method is empty for a response.
	method mcp.MCPMethod
	params json.RawMessage
	// result and failure are those of a response.
	result, failure json.RawMessage

	// The members of params that the front itself reads; nil where absent.
	name      *string
	arguments json.RawMessage
	cursor    json.RawMessage
	requestID json.RawMessage
	level     json.RawMessage
	meta      json.RawMessage
	// responses and state are those of a further round of a call (2026-07-28).
	responses, state json.RawMessage
	// uri is a resource's; ref, argument and context are those of completion/complete.
	uri               string
	ref               reference
	argument, context json.RawMessage
	// notifications are those that subscriptions/listen asks for.
	notifications json.RawMessage
	// from is the session of an older revision that the message came from; whoever took the message sets it.
	from *client
	// flaw is what is wrong with the params of a method that isn't served everywhere; who serves it says so.
	flaw *rpcError
}

// subject names what the message is about, as it may stand in a log.
func (m *message) subject() string {
	switch {
	case m.name != nil:
		return registry.Shown(*m.name)
	case m.uri != "":
		return registry.Shown(m.uri)
	}
	return registry.Shown(m.ref.Name + m.ref.URI)
}

// reference is what a completion is for: a prompt by its name, or a template of resources by its text.
type reference struct{ Type, Name, URI string }

// rpcError is a JSON-RPC error, before it is written.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func refuse(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Keys that a lenient parser would also find under another spelling.
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

// scan reads one message strictly: one JSON object in valid UTF-8, no duplicate key at any depth, no key that only
// resembles a protocol key, no control character in a key of the protocol, no unpaired surrogate, bounded depth, JSON-RPC
// 2.0 with a usable id. Parsers that differ in these would read one body as two messages. The message is returned with
// its id, as far as that was read, even when it is refused.
//
// An unpaired surrogate in the arguments of a tool is left to the contract, which names the place for the model.
func scan(body []byte) (*message, *rpcError) {
	m := &message{body: body}
	if !utf8.Valid(body) {
		return m, refuse(mcp.PARSE_ERROR, "the message is not valid UTF-8")
	}
	if !json.Valid(body) {
		return m, refuse(mcp.PARSE_ERROR, "the message is not one JSON value")
	}
	w := walker{b: body}
	w.space()
	if w.peek() != '{' {
		return m, refuse(mcp.INVALID_REQUEST, "the message is not a JSON object; batches are not supported")
	}
	if err := w.value(0); err != nil {
		return m, refuse(mcp.INVALID_REQUEST, "%v", err)
	}
	if refusal := m.readTop(); refusal != nil {
		return m, refusal
	}
	if refusal := m.readParams(); refusal != nil {
		return m, refusal
	}
	if w.unpaired > 0 {
		var arguments walker
		if m.method == mcp.MethodToolsCall && m.arguments != nil {
			arguments.b = m.arguments
			arguments.skip()
		}
		if arguments.unpaired < w.unpaired {
			return m, refuse(mcp.INVALID_REQUEST, "a string contains an unpaired surrogate; send both halves of the pair")
		}
	}
	return m, nil
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
		return nil // a response to a request of ours
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

// needsParams are the methods whose params are read even where there are none, to say what is missing.
var needsParams = map[mcp.MCPMethod]bool{
	mcp.MethodToolsCall: true, mcp.MethodPromptsGet: true, mcp.MethodResourcesRead: true, mcp.MethodCompletionComplete: true,
	mcp.MethodResourcesSubscribe: true, mcp.MethodResourcesUnsubscribe: true,
}

// readCompletion reads what a completion is for.
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

// readNamed reads the name of a tool or prompt, and looks at its arguments.
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

// checkID refuses what is not a string or an integer that every parser reads alike (MCP 2025-06-18, basic: an id must
// be a string or integer, and not null).
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

// idKey names an id, so that two spellings of one string are one id.
func idKey(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return "s" + str(raw)
	}
	return "n" + string(raw)
}

// text is the string that raw, which has passed the walk, stands for; empty where it is no string.
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

// str is text as a string. Those that nearly every message has are not made anew.
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

// members calls f for each member of an object. Where known are keys of the protocol, a key that only resembles one of
// them, or that contains a control character, is an error.
func members(object []byte, known [][]byte, f func(key, value []byte)) error {
	w := walker{b: object}
	w.space()
	w.i++ // {
	for {
		w.space()
		if w.peek() == '}' {
			return nil
		}
		key := w.key()
		if known != nil {
			if err := checkKey(key, known); err != nil {
				return err
			}
		}
		w.colon()
		start := w.i
		w.skip()
		f(key, object[start:w.i:w.i])
		w.space()
		if w.peek() == ',' {
			w.i++
		}
	}
}

// checkKey refuses a key that a lenient parser could take for another one: parsers ignore case, end strings at a NUL, drop
// characters that nobody sees, or normalize.
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

// skeleton is a key in compatibility form (Unicode NFKC), without its white space, and without invisible characters.
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
