package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// era is the protocol revision of a message. From 2026-07-28 on ("modern") there are no sessions, and every
// request carries its version and the client's capabilities in params._meta. Before ("older"), an initialize
// request began a session.
type era struct {
	modern bool
	// meta and header are the versions in params._meta and in Mcp-Protocol-Version; empty if absent.
	meta, header string
	// The other members of params._meta that the Server reads, as received; nil if absent.
	capabilities, token, level json.RawMessage
}

// eraOf returns the era of a message. header is empty in transports without headers. The rules are those of
// mcp-go (detectRequestEra).
func eraOf(m *message, header string) era {
	e := era{header: header}
	if m.meta != nil {
		// The scan has checked all keys and values, so members can't fail.
		_ = members(m.meta, nil, func(key, value []byte) {
			switch string(key) {
			case mcp.MetaKeyProtocolVersion:
				e.meta = str(value)
			case mcp.MetaKeyClientCapabilities:
				e.capabilities = value
			case mcp.MetaKeyLogLevel:
				e.level = value
			case "progressToken":
				e.token = value
			}
		})
	}
	e.modern = mcp.IsModernProtocol(e.meta) || mcp.IsModernProtocol(e.header)
	return e
}

// checkHeaders checks the headers of a modern HTTP request against its body, in the order and with the
// messages of mcp-go (validateModernRequest), so that a client can't distinguish which of the two answers.
func (e era) checkHeaders(h http.Header) *rpcError {
	switch {
	case h.Get(mcp.HeaderLastEventID) != "":
		return refuse(mcp.HEADER_MISMATCH, "Last-Event-ID is not supported in protocol version %s: streams are not resumable, re-issue the request with a new ID", mcp.ProtocolVersion20260728)
	case e.header == "":
		return refuse(mcp.HEADER_MISMATCH, "%s header is required for requests carrying %s", mcp.HeaderProtocolVersion, mcp.MetaKeyProtocolVersion)
	case e.meta == "":
		return refuse(mcp.INVALID_PARAMS, "missing or invalid _meta field %s", mcp.MetaKeyProtocolVersion)
	case e.header != e.meta:
		return refuse(mcp.HEADER_MISMATCH, "%s header %s does not match request %s %s", mcp.HeaderProtocolVersion, e.header, mcp.MetaKeyProtocolVersion, e.meta)
	}
	return nil
}

// checkRequest checks what every modern request must carry, in every transport: a supported version and the
// client's capabilities.
func (e era) checkRequest() *rpcError {
	if !mcp.IsValidProtocolVersion(e.meta) {
		wire := mcp.UnsupportedProtocolVersionError{Version: e.meta, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
		return &rpcError{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	}
	if !e.statesCapabilities() {
		return refuse(mcp.INVALID_PARAMS, "missing or invalid _meta field %s", mcp.MetaKeyClientCapabilities)
	}
	return nil
}

func (e era) statesCapabilities() bool {
	if string(e.capabilities) == "{}" {
		return true
	}
	var c *mcp.ClientCapabilities
	return e.capabilities != nil && json.Unmarshal(e.capabilities, &c) == nil && c != nil
}

// able returns the abilities that a modern client declares.
func (e era) able() registry.Abilities {
	if string(e.capabilities) == "{}" {
		return nil
	}
	return registry.Capabilities(e.capabilities)
}

// wants returns the notifications that the client of a call wants. The log level is that of the session in
// the older eras; in the modern era each request carries its own.
func (e era) wants(session mcp.LoggingLevel) notificationFilter {
	w := notificationFilter{level: session}
	if e.token != nil && checkID(e.token) == nil {
		w.token = e.token
	}
	if e.modern {
		w.level = mcp.LoggingLevel(str(e.level))
	}
	if !known(w.level) {
		w.level = ""
	}
	return w
}

// checkStandardHeaders checks Mcp-Method, Mcp-Name and Mcp-Param-* against the body (SEP-2243). entry is the
// called tool, or nil.
func checkStandardHeaders(h http.Header, version string, m *message, entry *registry.Entry) *rpcError {
	var err error
	if !plainHeaders(h, m) {
		err = mcp.ValidateStandardHeaders(h.Get, version, m.method, m.params)
	}
	if err == nil && entry != nil {
		if schema := entry.Declared().Args.Schema; bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
			err = mcp.ValidateParamHeadersLookup(lookup(h), &mcp.Tool{Name: entry.Name(), RawInputSchema: schema}, m.params)
		}
	}
	var mismatch mcp.HeaderMismatchError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		return refuse(mcp.HEADER_MISMATCH, "%s", mismatch.Error())
	}
	return refuse(mcp.INVALID_PARAMS, "%s", err.Error())
}

// plainHeaders reports whether Mcp-Method and Mcp-Name equal the body literally, as they nearly always do.
// mcp-go checks all other cases, but decodes the body again.
func plainHeaders(h http.Header, m *message) bool {
	if h.Get(mcp.HeaderMethod) != string(m.method) || m.method == "" {
		return false
	}
	if m.method == mcp.MethodToolsList {
		return true
	}
	if m.method != mcp.MethodToolsCall || m.name == nil || h.Get(mcp.HeaderName) != *m.name || *m.name == "" {
		return false
	}
	return !strings.HasPrefix(*m.name, "=?")
}

func lookup(h http.Header) func(string) (string, bool) {
	return func(name string) (string, bool) {
		values := h.Values(name)
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}
}

// httpStatus returns the HTTP status for a JSON-RPC error code in 2026-07-28; for earlier versions it is
// always 200.
func httpStatus(code int, modern bool) int {
	if !modern {
		return http.StatusOK
	}
	switch code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
