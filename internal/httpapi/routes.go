package httpapi

import (
	"net/http"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/invoke"
)

const (
	// defaultMCP is the path of MCP for the branch named default.
	defaultMCP = "/mcp"
	// mcpStream is the operationId of the GET that opens a stream.
	mcpStream = "mcpStream"
)

// table returns the routes. A new route needs nothing else: it is dispatched, described at /openapi.json,
// listed in docs/http-api.md (go test ./internal/httpapi -update) and held to its description by the tests
// of contract_test.go, which want an example of each status. The members of its types are described by the comments
// of their fields (members.go).
func (a *API) table() []route {
	branchMCP := mcpRoute(a.mcpOf, "")
	branchMCP.path = "/branches/{branch}/mcp"
	all := slices.Concat([]route{branchMCP, mcpRoute(a.mcpOfDefault, "Default")},
		a.branchRoutes(), a.toolRoutes(), a.intentRoutes(), a.explainRoutes(), a.daemonRoutes())
	for i := range all {
		all[i].names = variables(all[i].path)
	}
	return all
}

func (a *API) toolRoutes() []route {
	return []route{
		{path: "/branches/{branch}/tools", tag: tagTools, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "listTools",
			summary: "The tools of a branch, in the form of a model provider",
			about:   "See docs/dialects.md for the dialects, and what each can't express.",
			params: append([]parameter{
				{name: "dialect", in: inQuery, about: "The form; mcp by default.", schema: text("", names(dialect.All())...)},
				{
					name: "tools", in: inQuery, empty: true, schema: text(""),
					about: "Only these, separated by commas; empty for an empty list.",
				},
				{name: "none", in: inQuery, about: "No list at all. Excludes tools.", schema: text("", "true")},
				{
					name: "details", in: inQuery, schema: text("", "true"),
					about: "Also what the catalog declares of each, in declared; an admin asks of any conversation branch so, for its owner.",
				},
			}, behalfParams()...),
			answers: []answer{
				{http.StatusOK, "The tools.", nil, asJSON[ShownTools]()},
				{
					http.StatusNotFound, "There is no such branch (Error), or a name in tools is unknown (UnknownTools).", nil,
					[]content{{mediaJSON, anyOf(typed[UnknownTools](), typed[Error]())}},
				},
			},
			handle: a.listTools,
		}}},
		{path: "/branches/{branch}/calls", tag: tagCalls, operations: []operation{{
			method: http.MethodPost, needs: someone, id: "runCalls",
			summary: "Run the tool calls of a provider's message",
			about: "The message is a call, a list of calls, the message that has them or the provider's whole response. " +
				"The answer is what the provider wants next: a result, a list of results, or a message. A call that fails " +
				"is a result too. See docs/agents.md for the forms.",
			params: []parameter{
				{
					name: "strategy", in: inQuery, schema: text("", "concurrent", "sequential"),
					about: "How several calls are run: up to 8 at once (the default), or one after the other.",
				},
				{
					name: "onError", in: inQuery, schema: text("", "continue", "stop"),
					about: "Whether calls are begun after one has failed; continue by default.",
				},
				{
					name: "dialect", in: inQuery, schema: text("", names(dialect.All())...),
					about: "The dialect in which the model was shown the tools, where it isn't the form's own.",
				},
				{
					name: "Idempotency-Key", in: inHeader, schema: text(""),
					about: "Of calls of a tool with a side effect that have the same key, one is executed.",
				},
			},
			body: &body{
				about: "Calls in the form of OpenAI (Chat Completions or Responses), Anthropic or Gemini, or in the plain one.",
				of:    inWords(envelopeSchema(`{"function": "slugify", "arguments": {"title": "Hello, World"}}`)), required: true,
				unread: "The body has no calls that can be read, or Idempotency-Key is not what it may be.",
			},
			answers: []answer{
				{
					http.StatusOK, "The results, in the order of the calls and in the form that they came in.",
					[]string{callsHeader},
					[]content{{mediaJSON, inWords(envelopeSchema(`{"function": "slugify", "status": "succeeded", ` +
						`"call": "4f1c2a9be07d4c35a1f06b7c8d9e0f12", "content": [{"type": "text", "text": "hello-world"}]}`))}},
				},
				failure(http.StatusNotFound, "There is no such branch."),
				{
					http.StatusTooManyRequests, "A limit kept every call from being run: the results say which. Or an Error: " +
						"too many requests with tokens that are not good.", []string{"Retry-After", callsHeader},
					[]content{{mediaJSON, inWords(envelopeSchema(""))}},
				},
			},
			handle: a.runCalls,
		}}},
		{path: "/calls/{id}", tag: tagCalls, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "getCall",
			summary: "A call that the caller has made, while it runs and after it has ended",
			about: "Its status, duration, result, decision and intent. An admin sees every call. The last 10,000 calls are " +
				"kept, for an hour at most and with at most 8 MiB of results, in memory. docs/http-api.md says where a client " +
				"gets the id.",
			answers: []answer{
				{http.StatusOK, "The call.", nil, asJSON[invoke.Event]()},
				failure(http.StatusNotFound, "There is no such call, none of this caller's, or it is no longer kept."),
			},
			handle: a.getCall,
		}}},
	}
}

// envelopeSchema is that of calls and results. Their forms are the providers'.
func envelopeSchema(example string) *jsonschema.Schema {
	s := &jsonschema.Schema{Types: []string{"object", "array"}}
	if example != "" {
		s.Examples = []any{rawJSON(example)}
	}
	return s
}

func (a *API) intentRoutes() []route {
	notKept := failure(http.StatusNotFound, "This daemon keeps no intents.")
	unknown := failure(http.StatusNotFound, "There is no such intent, or none that concerns the caller; or this daemon keeps none.")
	failed := failure(http.StatusServiceUnavailable, "Intents can't be read or written now; nothing was done.")
	routes := []route{
		{path: "/intents", tag: tagIntents, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "listIntents",
			summary: "The intents that concern the caller, the newest first",
			about:   "An intent is the record of one call with a side effect: docs/intents-api.md.",
			params: []parameter{
				{
					name: "state", in: inQuery, about: "Only those in one of these states.", many: true,
					schema: &jsonschema.Schema{Type: "array", Items: text("", names(intent.States())...)},
				},
				{name: "branch", in: inQuery, about: "Only those of this branch.", schema: text("")},
				{name: "tool", in: inQuery, about: "Only those of this tool.", schema: text("")},
				{name: "principal", in: inQuery, about: "Only those of this caller.", schema: text("")},
				{name: "limit", in: inQuery, about: "How many at most; 50 by default.", schema: number(1, mostIntents)},
				{
					name: "before", in: inQuery, about: "The page after the one that was answered with this before.",
					schema: number(1, 1<<53-1),
				},
			},
			answers: []answer{{http.StatusOK, "A page of intents.", nil, asJSON[IntentPage]()}, notKept, failed},
			handle:  a.listIntents,
		}}},
		{path: "/intents/{id}", tag: tagIntents, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "getIntent",
			summary: "An intent that concerns the caller, with its history and result",
			params: []parameter{{
				name: "wait", in: inQuery, about: "Answer when it has ended, at the latest after so many seconds.",
				schema: number(0, longestIntentWait.Seconds()),
			}},
			answers: []answer{{http.StatusOK, "The intent.", nil, asJSON[ShownIntent]()}, unknown, failed},
			handle:  a.getIntent,
		}}},
	}
	for _, does := range []struct {
		action       intent.Action
		summary, may string
	}{
		{intent.ToApprove, "Release an intent that waits for an approval", "A member of one of its groups may; its caller where self is true."},
		{intent.ToRefuse, "End an intent that waits for an approval", "Whoever may approve it may, and an admin."},
		{intent.ToCancel, "Withdraw an intent whose effect has not begun", "Its caller may, and an admin."},
		{intent.ToRetry, "Have an intent executed again that is failed or unknown", "An admin may."},
		{intent.ToResolve, "Say what has really come of an intent that is unknown", "An admin may."},
	} {
		of := typed[Why]()
		if does.action == intent.ToResolve {
			of = typed[Resolution]()
		}
		routes = append(routes, route{path: "/intents/{id}/" + string(does.action), tag: tagIntents, operations: []operation{{
			method: http.MethodPost, needs: someone, id: string(does.action) + "Intent",
			summary: does.summary, about: does.may,
			body: &body{
				about: "At most 16 KiB.", of: of, required: does.action == intent.ToResolve,
				unread: "The body could not be read.",
			},
			answers: []answer{
				{http.StatusOK, "The intent as it is then.", nil, asJSON[ShownIntent]()},
				failure(http.StatusForbidden, "Host or Origin is not this server's, or the caller may not do this."),
				unknown,
				failure(http.StatusConflict, "The intent is not in a state in which this can be done."),
				failure(http.StatusUnprocessableEntity, "A member of the body is unknown, missing, repeated, or not what it may be."),
				failed,
			},
			handle: a.actOnIntent(does.action),
		}}})
	}
	pause := func(id, summary string, paused bool) operation {
		return operation{
			method: http.MethodPost, needs: admin, id: id, summary: summary,
			answers: []answer{{http.StatusOK, "What is so now.", nil, asJSON[Paused]()}, notKept, failed},
			handle:  a.pauseIntents(paused),
		}
	}
	return append(routes,
		route{path: "/-/intents/pause", tag: tagIntents, operations: []operation{
			pause("pauseIntents", "Begin no execution until resume or the next start; what has begun goes on", true),
		}},
		route{path: "/-/intents/resume", tag: tagIntents, operations: []operation{
			pause("resumeIntents", "Begin executions again", false),
		}},
	)
}

func (a *API) daemonRoutes() []route {
	return []route{
		{path: "/", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: nothing, id: "start", loose: true,
			summary: "What serves here, and where the branches are",
			about:   "It is the same for every caller and every catalog.",
			answers: []answer{{http.StatusOK, "The paths to go on from.", nil, asJSON[Start]()}},
			handle: func(w http.ResponseWriter, _ *http.Request, _ token.Caller) {
				mcpserver.WriteJSON(w, http.StatusOK, start)
			},
		}}},
		{path: "/healthz", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: nothing, id: "healthz", loose: true,
			summary: "Whether this process lives",
			about: "To a program that sends a text in the header `Catalogd-Challenge` the daemon proves, in the header `Catalogd-Proof`, " +
				"that it wrote the address which stands in its state directory (docs/operations.md).",
			answers: []answer{{http.StatusOK, "It does: ok.", nil, asText()}},
			handle:  a.healthz,
		}}},
		{path: "/readyz", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: nothing, id: "readyz", loose: true,
			summary: "Whether the newest files are served",
			about: "The body is ready or degraded, and to an admin why. It is 200 in both cases, because a load balancer " +
				"must not remove what works.",
			answers: []answer{{http.StatusOK, "A generation is served.", nil, asText()}},
			handle:  a.readyz,
		}}},
		{path: "/openapi.json", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: nothing, id: "openapi", loose: true,
			summary: "This description",
			about:   "It is the same for every caller and every catalog.",
			answers: []answer{{
				http.StatusOK, "An OpenAPI 3.1 document.", nil,
				[]content{{mediaJSON, inWords(&jsonschema.Schema{Type: "object"})}},
			}},
			handle: a.openapi,
		}}},
		{path: "/status", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: someone, id: "status",
			summary: "What is served, what is refused and why, and the state of servers",
			answers: []answer{{
				http.StatusOK, "To an admin all of it (Status), to others its first members (Brief).", nil,
				[]content{{mediaJSON, anyOf(typed[daemon.Status](), typed[daemon.Brief]())}},
			}},
			handle: a.status,
		}}},
		{path: "/metrics", tag: tagDaemon, operations: []operation{{
			method: http.MethodGet, needs: admin, id: "metrics", loose: true,
			summary: "Metrics for Prometheus",
			about:   "See docs/metrics.md.",
			answers: []answer{{
				http.StatusOK, "The metrics, in Prometheus's text format.", nil,
				[]content{{"text/plain", typed[string]()}},
			}},
			handle: func(w http.ResponseWriter, r *http.Request, _ token.Caller) { a.scrape.ServeHTTP(w, r) },
		}}},
		{path: "/-/reload", tag: tagDaemon, operations: []operation{{
			method: http.MethodPost, needs: admin, id: "reload",
			summary: "Read the files now",
			about:   "A client that disconnects does not cancel it.",
			answers: []answer{
				{http.StatusOK, "The files are served now.", nil, asJSON[daemon.Outcome]()},
				{http.StatusConflict, "The adopt decision refused the files, or newer ones superseded them.", nil, asJSON[daemon.Outcome]()},
				{http.StatusUnprocessableEntity, "The files have problems, which are listed.", nil, asJSON[daemon.Outcome]()},
			},
			handle: a.reload,
		}}},
	}
}
