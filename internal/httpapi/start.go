package httpapi

// Start is the answer of GET /.
type Start struct {
	// About says what serves here, and what a request needs.
	About string `json:"about"`
	// MCP is the path of a branch for MCP clients.
	MCP string `json:"mcp"`
	// Branches is the path of the branches that the caller may open.
	Branches string `json:"branches"`
	// OpenAPI is the path of the description of this API.
	OpenAPI string `json:"openapi"`
}

// start is public, so it depends on nothing that is served.
var start = Start{
	About: "this is catalogd: it serves each branch of its catalog over MCP; if it wants tokens, " +
		"send Authorization: Bearer cat_..., made by `catalogd token create`",
	MCP: "/branches/{branch}/mcp", Branches: "/branches", OpenAPI: "/openapi.json",
}
