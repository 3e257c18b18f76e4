package httpapi

import (
	"net/http"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/internal/token"
)

func (a *API) mcpOf(w http.ResponseWriter, r *http.Request, c token.Caller) {
	a.MCP.ServeHTTP(w, r, c, r.PathValue("branch"))
}

func (a *API) mcpOfDefault(w http.ResponseWriter, r *http.Request, c token.Caller) {
	a.MCP.ServeHTTP(w, r, c, "default")
}

// mcpRoute is the route of MCP for the branch named default. Its messages are MCP's to describe.
func mcpRoute(handle func(http.ResponseWriter, *http.Request, token.Caller), suffix string) route {
	message := inWords(&jsonschema.Schema{Types: []string{"object", "array"}, Description: "A JSON-RPC message of MCP."})
	answered := []content{{mediaJSON, message}}
	events := content{mediaEvents, inWords(text("Events, each with a JSON-RPC message of MCP."))}
	noBranch := failure(http.StatusNotFound, "There is no such branch, or no such session.")
	tooMany := failure(http.StatusServiceUnavailable, "Too many sessions or streams are open, or the server is shutting down.", "Retry-After")
	noSessions := answer{
		http.StatusMethodNotAllowed, "Revision 2026-07-28 has no sessions.", []string{"Allow"},
		[]content{{mediaText, typed[string]()}},
	}
	notAllowed := noSessions
	notAllowed.about += " In the others, a request that names none has no stream (Error)."
	notAllowed.content = append(asText(), asJSON[Error]()...)
	const about = "The endpoint of MCP's streamable HTTP transport, in revision 2026-07-28 and in the older ones with " +
		"sessions: https://modelcontextprotocol.io/specification. What catalogd adds is in docs/mcp.md. One trailing " +
		"slash of the path is ignored."
	return route{path: defaultMCP, tag: tagMCP, slash: true, operations: []operation{
		{
			method: http.MethodPost, needs: someone, id: "mcpMessage" + suffix, loose: true,
			summary: "Send a message", about: about,
			body: &body{about: "One JSON-RPC message, of at most 4 MiB.", of: message, required: true},
			answers: []answer{
				{
					http.StatusOK, "The answer, or a stream that ends with it. The result of a call over a rate limit of the policy has " +
						"Retry-After.", []string{"Retry-After"}, append(answered, events),
				},
				{status: http.StatusAccepted, about: "The notification or response was taken."},
				{http.StatusBadRequest, "The message, or a header, is not what it must be.", nil, answered},
				{http.StatusNotFound, "There is no such branch or session (Error), or no such method.", nil, answered},
				{
					http.StatusTooManyRequests, "A limit of calls is reached: the message says which. Or too many requests came with tokens that " +
						"are not good.", []string{"Retry-After"}, answered,
				},
				{
					http.StatusServiceUnavailable, "Too many sessions or streams are open, or the server is shutting down (Error).",
					[]string{"Retry-After"}, answered,
				},
			},
			handle: handle,
		},
		{
			method: http.MethodGet, needs: someone, id: mcpStream + suffix, loose: true,
			summary: "Open the stream of a session, in the older revisions", about: about,
			answers: []answer{
				{http.StatusOK, "The stream, which stays open.", nil, []content{events}},
				failure(http.StatusBadRequest, "A header is not what it must be."), noBranch,
				notAllowed,
				failure(http.StatusNotAcceptable, "Accept does not allow text/event-stream."), tooMany,
			},
			handle: handle,
		},
		{
			method: http.MethodDelete, needs: someone, id: "mcpEnd" + suffix, loose: true,
			summary: "End a session, in the older revisions", about: about,
			answers: []answer{
				{status: http.StatusOK, about: "It has ended."},
				failure(http.StatusBadRequest, "A header is not what it must be."), noBranch, noSessions, tooMany,
			},
			handle: handle,
		},
	}}
}
