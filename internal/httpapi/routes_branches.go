package httpapi

import (
	"net/http"

	"github.com/catalogd/catalogd/contract/dialect"
)

// branchRoutes are those about branches, declared and conversation branches, and about single tools of them.
func (a *API) branchRoutes() []route {
	noBranch := failure(http.StatusNotFound, "There is no such branch.")
	noTool := answer{
		http.StatusNotFound, "There is no such branch (Error), or no such tool (UnknownTools).", nil,
		[]content{{mediaJSON, anyOf(typed[UnknownTools](), typed[Error]())}},
	}
	declared := failure(http.StatusConflict, "The branch is declared in the catalog, and only its files change it.")
	invalid := failure(http.StatusUnprocessableEntity, "A member of the body is not what it may be, or the branch would be too large.")
	notStored := failure(http.StatusInternalServerError, "The branch can't be stored now, and is as it was. Or: "+fault)
	const unread = "The body is not a JSON object that can be read in one way, or has a member that is unknown or of another type."
	return []route{
		{path: "/branches", tag: tagTools, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "listBranches",
			summary: "The branches that the caller may open",
			params:  behalfParams(),
			answers: []answer{{http.StatusOK, "The declared branches, then the caller's conversation branches, by name.", nil, asJSON[[]ListedBranch]()}},
			handle:  a.listBranches,
		}, {
			method: http.MethodPost, needs: someone, id: "forkBranch",
			summary: "Fork a branch for a conversation",
			about: "The new branch is the caller's alone, for as long as it is kept. It only takes away from the branch that it is " +
				"forked from: docs/conversations.md.",
			body: &body{about: "What to fork, and what to take away.", of: typed[ForkRequest](), required: true, unread: unread},
			answers: []answer{
				{http.StatusCreated, "The new branch.", []string{"Location"}, asJSON[ConversationBranch]()},
				noTool, notStored,
				failure(http.StatusConflict, "The branch has one of the labels already."),
				invalid,
				failure(http.StatusTooManyRequests, "The caller has too many conversation branches, or this one would be forked too often; or there are "+
					"too many requests with tokens that are not good.", "Retry-After"),
			},
			handle: a.forkBranch,
		}}},
		{path: "/branches/{branch}", tag: tagTools, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "getBranch",
			summary: "A branch",
			answers: []answer{
				{http.StatusOK, "The branch: a declared one (Branch), or one of the caller's (ConversationBranch).", nil,
					[]content{{mediaJSON, anyOf(typed[ListedBranch](), typed[ConversationBranch]())}}},
				noBranch,
			},
			handle: a.showBranch,
		}, {
			method: http.MethodPatch, needs: someone, id: "changeBranch",
			summary: "Change what a conversation branch takes away, or how long it is kept",
			about:   "What is absent from the body stays as it is. A shorter ttl does not make it end sooner.",
			body:    &body{about: "What to change.", of: typed[TermsRequest](), required: true, unread: unread},
			answers: []answer{
				{http.StatusOK, "The branch as it is then.", nil, asJSON[ConversationBranch]()},
				noTool, declared, invalid, notStored,
			},
			handle: a.changeBranch,
		}, {
			method: http.MethodDelete, needs: someone, id: "deleteBranch",
			summary: "End a conversation branch, and those that were forked from it",
			about:   "Its owner may, and an admin.",
			answers: []answer{{http.StatusNoContent, "It no longer exists.", nil, nil}, noBranch, declared, notStored},
			handle:  a.deleteBranch,
		}}},
		{path: "/branches/{branch}/tools/{tool}", tag: tagTools, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "getTool",
			summary: "One tool of a branch, in the form of a model provider",
			params: []parameter{
				{name: "dialect", in: inQuery, about: "The form; mcp by default.", schema: text("", names(dialect.All())...)},
			},
			answers: []answer{{http.StatusOK, "The tool, in tools.", nil, asJSON[ShownTools]()}, noTool},
			handle:  a.showTool,
		}, {
			method: http.MethodPut, needs: someone, id: "putTool",
			summary: "Have a conversation branch show a tool of the branch that it was forked from",
			params: []parameter{
				{name: "update", in: inQuery, about: "Whether to replace a tool that it shows already.", schema: text("", "true", "false")},
			},
			answers: []answer{
				{http.StatusOK, "The tool was shown already, and is replaced.", nil, asJSON[ShownTools]()},
				{http.StatusCreated, "The tool is shown now.", nil, asJSON[ShownTools]()},
				noTool,
				failure(http.StatusConflict, "The branch shows the tool already, or is declared in the catalog."),
				invalid, notStored,
			},
			handle: a.putTool,
		}, {
			method: http.MethodDelete, needs: someone, id: "deleteTool",
			summary: "Have a conversation branch not show a tool",
			answers: []answer{{http.StatusNoContent, "The tool is not shown any more.", nil, nil}, noTool, declared, invalid, notStored},
			handle:  a.deleteTool,
		}}},
		{path: "/-/branches", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: admin, id: "listConversationBranches",
			summary: "The conversation branches of everyone",
			answers: []answer{{http.StatusOK, "The branches, by name.", nil, asJSON[[]OwnedBranch]()}},
			handle:  a.listOwned,
		}}},
	}
}
