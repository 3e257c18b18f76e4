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

// unsupportedDraft is the error code of an unsupported version in drafts of 2026-07-28.
const unsupportedDraft = -32004

// maxNegotiation caps how often a server may reject a version and name others, in each era.
const maxNegotiation = 3

// negotiationError reports that client and server share no protocol version; msg follows the server's name.
type negotiationError struct{ msg string }

func (e negotiationError) Error() string { return e.msg }

// negotiate agrees with the server on a protocol version and reads its capabilities. It tries the modern era
// (server/discover) first, and falls back to the handshake of the older versions (initialize) where the
// answer is not a valid one, or does not arrive within probe: older servers react to an unknown method in
// either way. A child that refuses initialize and answers server/discover after all was only slow to start: it is
// spoken to in the modern era. Where a server names the versions that it supports, in either era, the newest of them that
// catalogd supports is used. pinned, where it is not empty, is the only acceptable version.
//
// Errors: negotiationError where there is no common version; else the transport's error, or one for an answer
// that is not a result. last is the exchange of the last request.
func (s *session) negotiate(ctx context.Context, pinned string, probe time.Duration) (last *exchange, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the wait for what was late
	version := mcp.LATEST_LEGACY_PROTOCOL_VERSION
	if pinned != "" {
		version = pinned
	}
	var late *lateAnswer
	if pinned == "" || mcp.IsModernProtocol(pinned) {
		if pinned != "" {
			probe = 0
		}
		var speaks []string
		var x *exchange
		speaks, late, x, err = s.discover(ctx, probe, pinned)
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
	last, err = s.initialize(ctx, version, pinned)
	if err != nil && late != nil && s.discovered(ctx, late, probe) {
		return last, nil
	}
	return last, err
}

// lateAnswer is the answer of a child to server/discover in this version, which has not come in time.
type lateAnswer struct {
	version string
	arrives <-chan *response // nil where it does not come any more
}

// discovered reports whether a late answer comes within limit and agrees on its version.
func (s *session) discovered(ctx context.Context, late *lateAnswer, limit time.Duration) bool {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	select {
	case resp := <-late.arrives:
		var found discovery
		if resp == nil || resp.Error != nil || !found.read(resp.Result) || !slices.Contains(found.SupportedVersions, late.version) {
			return false
		}
		s.agreed(late.version, found.hello)
		return true
	case <-ctx.Done():
		return false
	}
}

// newest returns the newest version of a server that catalogd supports, without those already tried; empty
// where there is none.
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

// discover tries the modern era. If the server supports it, the session's version is set. Otherwise speaks
// are the versions that the server named, all of the older eras; it is empty where the server doesn't know
// the method. late is not nil where a child has not answered within probe; x may be nil then.
func (s *session) discover(ctx context.Context, probe time.Duration, pinned string) (
	speaks []string, late *lateAnswer, x *exchange, err error,
) {
	version := mcp.LATEST_PROTOCOL_VERSION
	if pinned != "" {
		version = pinned
	}
	for range maxNegotiation {
		limited, cancel := within(ctx, probe)
		var resp *response
		if s.child == nil {
			resp, x, err = s.probe(limited, mcp.MethodServerDiscover, version, map[string]any{})
		} else {
			resp, late, x, err = s.probeChild(ctx, limited, version)
		}
		tooLate := late != nil || err != nil && limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case tooLate:
			return nil, late, x, nil
		case err != nil && (x.status == 0 || redirected(err) != nil || ctx.Err() != nil):
			return nil, nil, x, err // the connection failed, so the era remains unknown
		case err != nil || resp == nil:
			return nil, nil, x, nil
		}
		if resp.Error == nil {
			var found discovery
			if !found.read(resp.Result) {
				return nil, nil, x, nil
			}
			speaks = found.SupportedVersions
			if slices.Contains(speaks, version) {
				s.agreed(version, found.hello)
				return nil, nil, x, nil
			}
		} else if speaks = supported(resp.Error); speaks == nil {
			return nil, nil, x, nil
		}
		// The server supports the modern era in other versions. Retry once with one that it names, even if it
		// is the same one: a server whose first request is always rejected may accept the second.
		next := newest(speaks, nil)
		switch {
		case pinned != "" && !slices.Contains(speaks, pinned):
			return nil, nil, x, incompatible(speaks, pinned)
		case next == "" || !mcp.IsModernProtocol(next):
			if next == "" {
				return nil, nil, x, incompatible(speaks, pinned)
			}
			return speaks, nil, x, nil
		}
		version = next
	}
	speaks = slices.DeleteFunc(slices.Clone(speaks), mcp.IsModernProtocol)
	return speaks, nil, x, nil
}

// probeChild sends server/discover to a child and waits until limited ends; late is not nil where the answer has
// not come by then, and is waited for until ctx ends.
func (s *session) probeChild(ctx, limited context.Context, version string) (
	resp *response, late *lateAnswer, x *exchange, err error,
) {
	type result struct {
		resp *response
		x    *exchange
		err  error
	}
	done, arrives := make(chan result, 1), make(chan *response, 1)
	go func() {
		resp, x, err := s.probe(ctx, mcp.MethodServerDiscover, version, map[string]any{})
		done <- result{resp, x, err}
		arrives <- resp
	}()
	select {
	case r := <-done:
		return r.resp, nil, r.x, r.err
	case <-limited.Done():
	}
	if ctx.Err() != nil { // which ends the request, too
		r := <-done
		return r.resp, nil, r.x, r.err
	}
	return nil, &lateAnswer{version, arrives}, nil, nil
}

// supported returns the versions named by an unsupported-version error; nil for any other error.
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

// hello holds a server's identity and capabilities, in both eras.
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

// read parses raw and reports whether it is a valid discovery.
func (d *discovery) read(raw json.RawMessage) bool {
	complete := json.Unmarshal(raw, d) == nil && (d.ResultType == "" || d.ResultType == "complete")
	return complete && len(d.SupportedVersions) > 0
}

// initialize performs the handshake of the older eras.
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
				text := clip(resp.Error.Message, 300)
				return x, fmt.Errorf("it answers initialize with the error %d: %s", resp.Error.Code, text)
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
			return x, errors.New("its answer to initialize is not a result with a protocolVersion")
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

// agreed stores a server's identity and capabilities. Unreadable members count as absent; only a server
// without any capabilities member is assumed to have tools.
func (s *session) agreed(version string, h hello) {
	s.version = version
	if s.web != nil {
		s.web.version.Store(version)
	}
	who := h.ServerInfo
	if info, ok := h.Meta[mcp.MetaKeyServerInfo]; ok {
		who = info
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

// probe sends one request of the negotiation. version is the version that the request itself names;
// initialize names none.
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
