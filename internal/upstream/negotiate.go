package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// unsupportedDraft is the code of an unsupported version in drafts of 2026-07-28.
const unsupportedDraft = -32004

// maxNegotiation is how often a server may refuse a version and name others, in each era.
const maxNegotiation = 3

// negotiationError is why there is no revision that both ends speak, in words that follow the server's name.
type negotiationError struct{ msg string }

func (e negotiationError) Error() string { return e.msg }

// negotiate agrees with the server on a revision and learns what it is. It asks for the modern era
// (server/discover) and goes over to the handshake of the older ones (initialize) with a server that answers
// anything else than what is valid there, or does not answer in probe: older servers do either with a method
// that they don't know. A server that names the versions that it supports, in either era, is spoken to in the
// newest of them that catalogd knows. pinned, where it is not empty, is the only version that is agreed to.
//
// Errors: negotiationError where there is no common revision; else what the transport says, or what came
// instead of a result. last is the exchange of the last request.
func (s *session) negotiate(ctx context.Context, pinned string, probe time.Duration) (last *exchange, err error) {
	version := mcp.LATEST_LEGACY_PROTOCOL_VERSION
	if pinned != "" {
		version = pinned
	}
	if pinned == "" || mcp.IsModernProtocol(pinned) {
		if pinned != "" {
			probe = 0
		}
		speaks, x, err := s.discover(ctx, probe, pinned)
		switch {
		case err != nil:
			return x, err
		case s.version != "":
			return x, nil
		case pinned != "":
			return x, negotiationError{fmt.Sprintf("its declaration pins the revision %s of MCP, and it does not answer "+
				"server/discover as that asks; pin an older one, or none", pinned)}
		case len(speaks) > 0:
			if version = newest(speaks, nil); version == "" {
				return x, incompatible(speaks, pinned)
			}
		}
	}
	return s.initialize(ctx, version, pinned)
}

// newest is the newest version that catalogd speaks among those of a server, without those that were tried;
// empty where there is none.
func newest(speaks, tried []string) string {
	for _, v := range mcp.ValidProtocolVersions {
		if slices.Contains(speaks, v) && !slices.Contains(tried, v) {
			return v
		}
	}
	return ""
}

func incompatible(speaks []string, pinned string) error {
	theirs := make([]string, 0, len(speaks))
	for _, v := range speaks[:min(len(speaks), 10)] {
		theirs = append(theirs, clip(v, 40))
	}
	if pinned != "" {
		return negotiationError{fmt.Sprintf("its declaration pins the revision %s of MCP, and it speaks %s; "+
			"pin one that it speaks, or none", pinned, strings.Join(theirs, ", "))}
	}
	return negotiationError{fmt.Sprintf("it speaks revisions of MCP that are not supported (%s); supported are %s",
		strings.Join(theirs, ", "), strings.Join(mcp.ValidProtocolVersions, ", "))}
}

// discover asks for the modern era. Where the server is of it, the session's version is set. Else speaks are
// the versions that it has named, all of the older eras, and nothing where it doesn't know the question.
func (s *session) discover(ctx context.Context, probe time.Duration, pinned string) (
	speaks []string, x *exchange, err error,
) {
	version := mcp.LATEST_PROTOCOL_VERSION
	if pinned != "" {
		version = pinned
	}
	for range maxNegotiation {
		limited, cancel := within(ctx, probe)
		var resp *response
		resp, x, err = s.probe(limited, mcp.MethodServerDiscover, version, map[string]any{})
		late := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case late:
			return nil, x, nil
		case err != nil && (x.status == 0 || redirected(err) != nil || ctx.Err() != nil):
			return nil, x, err // the connection failed, which says nothing of the era
		case err != nil || resp == nil:
			return nil, x, nil
		}
		if resp.Error == nil {
			var found discovery
			if !found.read(resp.Result) {
				return nil, x, nil
			}
			speaks = found.SupportedVersions
			if slices.Contains(speaks, version) {
				s.agreed(version, found.hello)
				return nil, x, nil
			}
		} else if speaks = supported(resp.Error); speaks == nil {
			return nil, x, nil
		}
		// It speaks the modern era, and other versions. Asked once more for one that it names, even if it is
		// the same: a server that has just been told otherwise may refuse the first request only.
		next := newest(speaks, nil)
		switch {
		case pinned != "" && !slices.Contains(speaks, pinned):
			return nil, x, incompatible(speaks, pinned)
		case next == "" || !mcp.IsModernProtocol(next):
			if next == "" {
				return nil, x, incompatible(speaks, pinned)
			}
			return speaks, x, nil
		}
		version = next
	}
	speaks = slices.DeleteFunc(slices.Clone(speaks), mcp.IsModernProtocol)
	return speaks, x, nil
}

// supported are the versions that an error about the version names; nil where it is another error.
func supported(e *rpcError) []string {
	var data struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(data.Supported) == 0 {
		return nil
	}
	switch e.Code {
	case mcp.UNSUPPORTED_PROTOCOL_VERSION, unsupportedDraft, mcp.INVALID_PARAMS, mcp.INVALID_REQUEST:
		return data.Supported
	}
	return nil
}

// hello is who a server says that it is and what it can do, in both eras.
type hello struct {
	Capabilities map[string]json.RawMessage `json:"capabilities"`
	ServerInfo   json.RawMessage            `json:"serverInfo"`
	Meta         map[string]json.RawMessage `json:"_meta"`
}

// discovery is the result of server/discover.
type discovery struct {
	hello
	ResultType        string   `json:"resultType"`
	SupportedVersions []string `json:"supportedVersions"`
}

// read reports whether raw is one.
func (d *discovery) read(raw json.RawMessage) bool {
	complete := json.Unmarshal(raw, d) == nil && (d.ResultType == "" || d.ResultType == "complete")
	return complete && len(d.SupportedVersions) > 0
}

// initialize does the handshake of the older eras.
func (s *session) initialize(ctx context.Context, version, pinned string) (x *exchange, err error) {
	var tried []string
	for {
		tried = append(tried, version)
		var resp *response
		resp, x, err = s.probe(ctx, mcp.MethodInitialize, "", struct {
			ProtocolVersion string                 `json:"protocolVersion"`
			Capabilities    mcp.ClientCapabilities `json:"capabilities"`
			ClientInfo      mcp.Implementation     `json:"clientInfo"`
		}{version, relayable(), s.info})
		switch {
		case err != nil:
			return x, err
		case resp == nil:
			return x, errNoResponse
		case resp.Error != nil:
			speaks := supported(resp.Error)
			if speaks == nil {
				said := clip(resp.Error.Message, 300)
				return x, fmt.Errorf("it answers initialize with the error %d: %s", resp.Error.Code, said)
			}
			older := slices.DeleteFunc(slices.Clone(speaks), mcp.IsModernProtocol)
			if version = newest(older, tried); version == "" || pinned != "" || len(tried) == maxNegotiation {
				return x, incompatible(speaks, pinned)
			}
			continue
		}
		var result struct {
			hello
			ProtocolVersion string `json:"protocolVersion"`
		}
		if err := json.Unmarshal(resp.Result, &result); err != nil || result.ProtocolVersion == "" {
			return x, errors.New("its answer to initialize is no result that names a protocolVersion")
		}
		got := result.ProtocolVersion
		if !mcp.IsValidProtocolVersion(got) || mcp.IsModernProtocol(got) || pinned != "" && got != pinned {
			return x, incompatible([]string{got}, pinned)
		}
		s.agreed(got, result.hello)
		return x, s.wire.notify(ctx, notification{
			JSONRPC: mcp.JSONRPC_VERSION, Method: string(mcp.MethodNotificationInitialized),
		})
	}
}

// agreed takes over what a server has said of itself. What can't be read of it is as if it were not said;
// only a server that says nothing of capabilities at all is taken to have tools.
func (s *session) agreed(version string, h hello) {
	s.version = version
	if s.web != nil {
		s.web.version.Store(version)
	}
	who := h.ServerInfo
	if said, ok := h.Meta[mcp.MetaKeyServerInfo]; ok {
		who = said
	}
	_ = json.Unmarshal(who, &s.server)
	for name, raw := range h.Capabilities {
		var one mcp.ServerCapabilities
		if json.Unmarshal(encode(map[string]json.RawMessage{name: raw}), &one) != nil && present(raw) != nil {
			_ = json.Unmarshal(encode(map[string]any{name: struct{}{}}), &one)
		}
		switch name {
		case "tools":
			s.has.Tools = one.Tools
		case "prompts":
			s.has.Prompts = one.Prompts
		case "resources":
			s.has.Resources = one.Resources
		case "logging":
			s.has.Logging = one.Logging
		case "completions":
			s.has.Completions = one.Completions
		}
	}
	s.toolless = h.Capabilities != nil && s.has.Tools == nil
}

// probe sends one request of the negotiation. version is the one that the request itself names, which
// initialize does not.
func (s *session) probe(ctx context.Context, method mcp.MCPMethod, version string, p any) (*response, *exchange, error) {
	req := request{JSONRPC: mcp.JSONRPC_VERSION, ID: s.ids.next(), Method: string(method), Params: p}
	if version != "" {
		req.Params = params{Meta: map[string]any{
			mcp.MetaKeyProtocolVersion: version, mcp.MetaKeyClientInfo: s.info,
			mcp.MetaKeyClientCapabilities: struct{}{},
		}}
		req.header = http.Header{mcp.HeaderProtocolVersion: {version}, mcp.HeaderMethod: {string(method)}}
	}
	x := newExchange(req.ID.String(), s.limit)
	x.ignored = s.drop
	x.asked = func(id json.RawMessage, method string, params json.RawMessage) {
		s.questioned(noCall, id, method, params)
	}
	resp, err := s.wire.request(ctx, x, req)
	if err == nil && resp != nil && (key(resp.ID) != x.id && !(resp.Error != nil && present(resp.ID) == nil)) {
		return nil, x, errors.New("it answered another request than this one")
	}
	return resp, x, err
}
