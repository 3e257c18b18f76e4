package httpapi

import (
	"net/http"

	"github.com/catalogd/catalogd/internal/token"
)

// explainRoutes are those by which an admin asks about calls that are not made.
func (a *API) explainRoutes() []route {
	ask := func(id, summary, about string, of schemaOf, answered []content,
		handle func(http.ResponseWriter, *http.Request, token.Caller), more ...answer) route {
		return route{path: "/-/" + id, tag: tagDaemon, operations: []operation{{
			method: http.MethodPost, needs: admin, id: id, summary: summary, about: about,
			body: &body{
				about: "The call that is asked about.", of: of, required: true,
				unread: "The body is not a JSON object that can be read in one way, or has a member that is unknown, " +
					"missing or of another type.",
			},
			answers: append([]answer{
				{http.StatusOK, "The answer.", nil, answered},
				failure(http.StatusNotFound, "The principal has no such branch, or the catalog has no such tool."),
			}, more...),
			handle: handle,
		}}}
	}
	return []route{
		ask("explain", "Explain which decisions a call meets",
			"For a conversation branch: those of every branch above it too. Nothing is run, and nothing is logged.",
			typed[ExplainRequest](), asJSON[Explained](), a.explain),
		ask("input", "The documents with which the policy would be asked about a call",
			"One for each branch that is asked: a conversation branch and those above it. Arguments are not redacted.",
			typed[InputRequest](), asJSON[Inputs](), a.input,
			failure(http.StatusUnprocessableEntity, "The point is not asked about such a call.")),
		ask("plan", "What a call would run, without running it",
			"It is decided as the call would be, by every branch. Secrets are redacted.",
			typed[AskedCall](), asJSON[Planned](), a.plan),
		{path: "/-/matrix", tag: tagDaemon, operations: []operation{{
			method: http.MethodPost, needs: admin, id: "matrix", summary: "Who sees and may call what",
			about: "The list, call and release decisions for each tool of each declared branch, before any arguments are known. " +
				"Nothing is run, and nothing is logged.",
			body: &body{
				about: "Who is asked about.", of: typed[MatrixRequest](), required: true,
				unread: "The body is not a JSON object that can be read in one way, has a member that is unknown or of another type, " +
					"or has too many principals, two of one name or one without.",
			},
			answers: []answer{
				{http.StatusOK, "The answer.", nil, asJSON[Matrix]()},
			},
			handle: a.matrix,
		}}},
	}
}
