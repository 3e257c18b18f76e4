package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// errNoResponse is an answer of the right type that is no response of JSON-RPC.
var errNoResponse = errors.New("it is no response of JSON-RPC")

// send sends a request and waits for its answer.
//
// mcp-go starts a goroutine for each request over HTTP, which costs a fast server's caller more than the request. So it is
// posted here, and what most servers answer with, one JSON document, is read here. Any other answer (an event stream, an
// error, a forgotten session) is mcp-go's to understand: it is told to send the request, and gets what has arrived.
func (s *session) send(ctx context.Context, x *exchange, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	ctx = x.context(ctx)
	wire, ok := s.client.GetTransport().(*transport.StreamableHTTP)
	if !ok {
		return s.client.GetTransport().SendRequest(ctx, req)
	}
	if wire.GetSessionId() != s.id {
		return nil, transport.ErrSessionTerminated
	}
	resp, err := s.post(ctx, req, req.Header)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "application/json" {
		x.arrived.Store(resp)
		answer, err := wire.SendRequest(ctx, req)
		if resp := x.arrived.Swap(nil); resp != nil { // the session has ended meanwhile, and mcp-go sends no more
			resp.Body.Close()
		}
		return answer, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if n := resp.ContentLength; n > 0 && n < 64<<10 { // who announces more has to send it first
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	var read struct {
		ID     json.RawMessage          `json:"id"`
		Result json.RawMessage          `json:"result"`
		Error  *mcp.JSONRPCErrorDetails `json:"error"`
	}
	if err := json.Unmarshal(body.Bytes(), &read); err != nil {
		return nil, err
	}
	answer := &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: req.ID, Result: read.Result, Error: read.Error}
	if id, err := req.ID.MarshalJSON(); err != nil || !bytes.Equal(id, read.ID) { // an id can be written in several ways
		if len(read.ID) == 0 {
			return nil, errNoResponse
		}
		if err := json.Unmarshal(read.ID, &answer.ID); err != nil {
			return nil, err
		}
		if answer.ID.IsNil() {
			return nil, errNoResponse
		}
	}
	return answer, nil
}

// post sends a message with the headers that mcp-go would give it, more of which may be given.
func (s *session) post(ctx context.Context, message any, more http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address.URL, bytes.NewReader(encode(message)))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, more)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(mcp.HeaderProtocolVersion, s.version)
	if s.id != "" && !mcp.IsModernProtocol(s.version) {
		r.Header.Set(mcp.HeaderSessionID, s.id)
	}
	return s.http.Do(r)
}

// mediaType is that of an answer, empty where it has none that can be read.
func mediaType(resp *http.Response) string {
	declared := resp.Header.Get("Content-Type")
	if declared == "application/json" || declared == "text/event-stream" {
		return declared
	}
	media, _, _ := mime.ParseMediaType(declared)
	return media
}
