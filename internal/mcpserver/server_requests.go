package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// maxQuestions is the maximum number of requests that wait for the answers of one client.
const maxQuestions = 64

// serverRequests are the requests to one client of the older eras that wait for answers: an upstream asks
// during a call, on the call's own stream, and the client answers with a message of its own. Only the client
// that was asked can answer. The zero value and nil ask nothing, as for a client that has declared no
// capability. All methods are safe for concurrent use.
type serverRequests struct {
	mu      sync.Mutex
	able    registry.Abilities
	last    int
	waiting map[string]chan registry.Reply // by idKey
	// later sends the client a notification that belongs to no open call.
	later func(method mcp.MCPMethod, params json.RawMessage)
}

// declared stores the capabilities that the client has declared, and the function that notifies it outside of
// calls.
func (q *serverRequests) declared(able registry.Abilities, later func(mcp.MCPMethod, json.RawMessage)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.able, q.later = able, later
}

// abilities returns the capabilities in the params of initialize.
func abilities(initialize json.RawMessage) registry.Abilities {
	var params struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if json.Unmarshal(initialize, &params) != nil {
		return nil // mcp-go, which answers, reports the error
	}
	return registry.Capabilities(params.Capabilities)
}

func (q *serverRequests) none() bool {
	if q == nil {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.able) == 0
}

// by lets the tool of a call ask, on the call's stream, what the client has declared that it answers.
func (q *serverRequests) by(r *notificationQueue, to *registry.Listener) {
	if q.none() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	to.Able = q.able
	later := q.later
	to.Completed = func(params json.RawMessage) {
		const method = mcp.MethodNotificationElicitationComplete
		if !r.ask(notification(method, "", params)) {
			later(method, params)
		}
	}
	to.Ask = func(ctx context.Context, asked registry.Question) registry.Reply { return q.ask(ctx, r, asked) }
}

// ask sends a request to the client and waits for its answer. If ctx ends first, it sends a cancellation.
func (q *serverRequests) ask(ctx context.Context, r *notificationQueue, asked registry.Question) registry.Reply {
	id, answer, refusal := q.register(asked)
	if refusal != nil {
		return failedReply(refusal)
	}
	defer q.end(id)
	params := asked.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":`, id, asked.Method)
	if !r.ask(bytes.Join([][]byte{[]byte(head), params, []byte("}")}, nil)) {
		return failedReply(refuse(mcp.INTERNAL_ERROR, "the call has ended"))
	}
	select {
	case reply := <-answer:
		return reply
	case <-ctx.Done():
		r.ask(notification(mcp.MethodNotificationCancelled, `{"requestId":`, id, []byte(`,"reason":"the call has ended"}`)))
		return failedReply(refuse(mcp.INTERNAL_ERROR, "the call ended before the client answered"))
	}
}

// register records a question to the client: its id, and the channel on which its answer comes. refusal is why
// it is not asked.
func (q *serverRequests) register(asked registry.Question) (id json.RawMessage, answer chan registry.Reply, refusal *rpcError) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.able.Answers(asked) {
		return nil, nil, refuse(mcp.METHOD_NOT_FOUND, "the client has not declared that it answers %s", asked.Method)
	}
	if len(q.waiting) >= maxQuestions {
		return nil, nil, refuse(mcp.INTERNAL_ERROR, "too many requests wait for the client's answers")
	}
	q.last++
	id = json.RawMessage(fmt.Sprintf(`"catalogd-%d"`, q.last))
	answer = make(chan registry.Reply, 1)
	if q.waiting == nil {
		q.waiting = map[string]chan registry.Reply{}
	}
	q.waiting[idKey(id)] = answer
	return id, answer, nil
}

func (q *serverRequests) end(id json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, idKey(id))
}

// answered delivers a response to the request that waits for it. It ignores late responses and those to
// unknown ids.
func (q *serverRequests) answered(m *message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer, ok := q.waiting[idKey(m.id)]; ok {
		delete(q.waiting, idKey(m.id))
		answer <- registry.Reply{Result: m.result, Error: m.failure}
	}
}

// later returns a function that sends a session a notification on its own stream. A client without an open
// stream misses it.
func (b *branch) later(session string) func(mcp.MCPMethod, json.RawMessage) {
	return func(method mcp.MCPMethod, params json.RawMessage) {
		all := map[string]any{}
		members, _ := registry.Split(params)
		for _, m := range members {
			all[m.Name] = m.Value
		}
		_ = b.mcp.SendNotificationToSpecificClient(session, string(method), all)
	}
}

func failedReply(e *rpcError) registry.Reply {
	out, err := json.Marshal(e)
	if err != nil {
		panic("mcpserver: a code and a text always encode: " + err.Error())
	}
	return registry.Reply{Error: out}
}

// beginning is the ResponseWriter for the answer to initialize. begun is called with the id of the session
// that mcp-go has begun, before the answer is written.
type beginning struct {
	http.ResponseWriter
	begun func(id string)
}

func (b beginning) WriteHeader(status int) {
	b.begun(b.Header().Get(mcp.HeaderSessionID))
	b.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher, which mcp-go requires.
func (b beginning) Flush() { _ = http.NewResponseController(b.ResponseWriter).Flush() }

// Unwrap returns the underlying ResponseWriter, for http.ResponseController.
func (b beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }
