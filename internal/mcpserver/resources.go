package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
)

// readResource answers resources/read.
func (p *passthroughRequest) readResource(ctx context.Context, shown *passthrough.Shown) reply {
	item, refusal := p.resource(shown)
	if refusal != nil {
		return p.refuse(refusal)
	}
	r := upstream.Request{Method: mcp.MethodResourcesRead, URI: p.m.uri}
	return p.turn(ctx, item, p.m.uri, p.m.uri, "read", r, "contents", true)
}

// resource returns the item that the branch is shown under the request's URI. A URI that matches the
// resources of two servers is unknown.
func (p *passthroughRequest) resource(shown *passthrough.Shown) (*passthrough.Item, *rpcError) {
	item, why := shown.Resource(p.m.uri)
	if item != nil {
		return item, nil
	}
	if why != "" {
		p.server.Log.Warn("a resource was not passed on", "branch", p.name, "uri", p.m.subject(), "reason", why)
	}
	p.recordRefused(decision.UnknownItem, p.m)
	code := mcp.RESOURCE_NOT_FOUND
	if p.modern {
		code = mcp.INVALID_PARAMS
	}
	return nil, &rpcError{Code: code, Message: generation.UnknownItem("resource", p.m.uri), Data: map[string]string{"uri": p.m.uri}}
}
