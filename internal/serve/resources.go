package serve

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/forward"
	"github.com/catalogd/catalogd/internal/upstream"
)

// readResource answers resources/read.
func (p *passing) readResource(ctx context.Context, shown *forward.Shown) reply {
	item, refusal := p.resource(shown)
	if refusal != nil {
		return p.refuse(refusal)
	}
	r := upstream.Request{Method: mcp.MethodResourcesRead, URI: p.m.uri}
	return p.turn(ctx, item, p.m.uri, p.m.uri, "read", r, "contents", true)
}

// resource is what the branch is shown under the URI of the request. A URI that could be two servers' is nothing.
func (p *passing) resource(shown *forward.Shown) (*forward.Item, *rpcError) {
	item, why := shown.Resource(p.m.uri)
	if item != nil {
		return item, nil
	}
	if why != "" {
		p.front.Log.Warn("a resource was not passed on", "branch", p.name, "uri", p.m.subject(), "reason", why)
	}
	code := mcp.RESOURCE_NOT_FOUND
	if p.modern {
		code = mcp.INVALID_PARAMS
	}
	return nil, &rpcError{Code: code, Message: unknownItem("resource", p.m.uri), Data: map[string]string{"uri": p.m.uri}}
}
