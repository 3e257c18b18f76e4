package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxRounds caps how often a server may ask for input in one call whose caller can't call again. Rounds
	// without requests, in which it only wants to be called again, are limited by the call's timeout alone.
	maxRounds = 10
	// maxInputs caps the requests in one result.
	maxInputs = 16
	// maxState caps the state that a server may have a client keep for it, in bytes.
	maxState = 256 << 10
	// roundPause is the pause before a server is called again that asked for that without any requests.
	roundPause = 250 * time.Millisecond
)

// inputs are the requests of an Input.
type inputs map[string]registry.Question

// input parses a result that asks for input (2026-07-28, multi round-trip requests). A result that a client
// could read differently is an error.
func input(fields map[string]json.RawMessage) (*registry.Input, error) {
	in := &registry.Input{Requests: present(fields["inputRequests"]), State: present(fields["requestState"])}
	if in.Requests == nil && in.State == nil {
		return nil, fmt.Errorf("its result asks for input and says neither which nor keeps a state")
	}
	if in.State != nil && (in.State[0] != '"' || len(in.State) > maxState) {
		return nil, fmt.Errorf("the requestState of its result is not a string of at most %d bytes", maxState)
	}
	asked, err := questionsOf(in)
	if err != nil {
		return nil, err
	}
	kinds := map[string]bool{}
	for _, q := range asked {
		kinds[q.Kind()] = true
	}
	in.Kinds = slices.Sorted(maps.Keys(kinds))
	return in, nil
}

// questionsOf returns the requests of in, by their names.
func questionsOf(in *registry.Input) (inputs, error) {
	if in.Requests == nil {
		return nil, nil
	}
	named, err := registry.Members(in.Requests)
	if err != nil {
		return nil, fmt.Errorf("the inputRequests of its result can't be read: %w", err)
	}
	if len(named) > maxInputs {
		return nil, fmt.Errorf("its result asks for more than %d inputs", maxInputs)
	}
	all := inputs{}
	for name, raw := range named {
		request, err := registry.Members(raw, "method", "params")
		if err != nil {
			return nil, fmt.Errorf("the input request %.40q of its result can't be read: %w", name, err)
		}
		var q registry.Question
		if json.Unmarshal(request["method"], &q.Method) != nil || q.Kind() == "" {
			return nil, fmt.Errorf("the input request %.40q of its result is of the unknown method %.40s", name, request["method"])
		}
		if q.Params = present(request["params"]); q.Params != nil && q.Params[0] != '{' {
			return nil, fmt.Errorf("the params of the input request %.40q of its result are not an object", name)
		}
		all[name] = q
	}
	return all, nil
}

// capabilities returns the client capabilities declared to the server for this call: those that the client
// has declared and the call decision allows.
func capabilities(to registry.Listener) json.RawMessage {
	if len(to.Able) == 0 {
		return json.RawMessage(`{}`)
	}
	supported := map[string]json.RawMessage{}
	for kind, declared := range to.Able {
		if !slices.Contains(to.Relay, kind) || to.Ask == nil && !to.Rounds {
			continue
		}
		if kind == "elicitation" && len(to.Hosts) == 0 {
			declared = formsOnly(declared)
		}
		if declared != nil {
			supported[kind] = declared
		}
	}
	return encode(supported)
}

// formsOnly returns an elicitation capability without url mode; nil where nothing remains.
func formsOnly(declared json.RawMessage) json.RawMessage {
	var modes map[string]json.RawMessage
	if json.Unmarshal(declared, &modes) != nil || modes["url"] == nil {
		return declared
	}
	delete(modes, "url")
	if modes["form"] == nil {
		return nil
	}
	return encode(modes)
}

// toolResult parses the result of a tool call, or its request for input.
func toolResult(answer json.RawMessage) (*registry.Result, error) {
	r, err := result(answer)
	switch {
	case err != nil:
		return nil, &failure{code: registry.ResultInvalid, msg: err.Error()}
	case len(r.Content) > maxBlocks:
		f := &failure{code: registry.OutputTooLarge, msg: fmt.Sprintf("it sent more than %d blocks of content in one answer", maxBlocks), outcome: "ask for less"}
		f.known = registry.OutcomeOf(r, nil) // the answer itself was read
		return nil, f
	}
	return r, nil
}

// effectResult is toolResult for a call with a side effect; its errors do not advise to call again.
func effectResult(answer json.RawMessage) (*registry.Result, error) {
	r, err := toolResult(answer)
	var f *failure
	if errors.As(err, &f) {
		f.outcome = outcomeUnknown
		if f.known != "" {
			f.outcome = "the tool has run"
		}
	}
	return r, err
}

// asking parses a request for input from the result of a request other than a call; the Result is empty where
// it is the final answer.
func asking(answer json.RawMessage) (*registry.Result, error) {
	var fields map[string]json.RawMessage
	if !bytes.Contains(answer, []byte(inputRequired)) || json.Unmarshal(answer, &fields) != nil || string(fields["resultType"]) != inputRequired {
		return &registry.Result{}, nil
	}
	in, err := input(fields)
	if err != nil {
		return nil, &failure{code: registry.ResultInvalid, msg: err.Error()}
	}
	return withMeta(&registry.Result{Input: in}, fields)
}

// rounds repeats a request until it has a final answer, or its caller is to call again (then the result has
// an Input). read parses each answer. For a request with a side effect each round is sent at most once, and
// only because the server has answered the one before with a request for input; one that it rejected unread
// is not sent again.
func (s *session) rounds(ctx context.Context, method mcp.MCPMethod, p params, to registry.Listener, read func(json.RawMessage) (*registry.Result, error)) (*registry.Result, error) {
	if r := to.Round; r != nil {
		switch {
		case r.Origin == "" && !slices.ContainsFunc([]string{"elicitation", "sampling", "roots"}, func(k string) bool { return slices.Contains(to.Relay, k) }):
			// Nothing may be asked of the client, so nothing was: unsolicited responses are not sent to the
			// server.
		case slices.ContainsFunc(r.Kinds, func(k string) bool { return !slices.Contains(to.Relay, k) }):
			return nil, &failure{code: registry.BindingFailed, msg: "it asked for input, and the policy does not relay that any more", outcome: nothingSent, known: registry.OutcomeUnsent}
		default:
			p.InputResponses, p.RequestState = r.Responses, r.State
		}
	}
	asks := 0 // that were answered
	for round := 1; ; {
		answer, err := s.ask(ctx, method, p, to)
		if err != nil && s.remirror(ctx, &p, err) && p.key == "" {
			answer, err = s.ask(ctx, method, p, to)
		}
		if err != nil {
			return nil, afterRounds(asks, err)
		}
		asks++
		r, err := read(answer)
		if err != nil || r.Input == nil {
			return r, err
		}
		asked, err := admitted(r.Input, to)
		if err != nil {
			return nil, err
		}
		switch {
		case to.Rounds:
			return r, nil
		case round == maxRounds:
			return nil, &failure{code: registry.BindingFailed, msg: fmt.Sprintf("it asked for input %d times in one call", maxRounds)}
		}
		if len(asked) > 0 {
			round++
		}
		if p.InputResponses, err = s.answers(ctx, asked, to); err != nil {
			return nil, err
		}
		p.RequestState = r.Input.State
	}
}

// afterRounds is the error of a round: if earlier rounds were answered, a round that was not sent does not
// prove that nothing was run.
func afterRounds(answered int, err error) error {
	var f *failure
	if answered > 0 && errors.As(err, &f) && f.known == registry.OutcomeUnsent {
		f.known = registry.OutcomeUnclear
	}
	return err
}

// admitted returns the requests of in, if every one of them may be made to the caller.
func admitted(in *registry.Input, to registry.Listener) (inputs, error) {
	asked, err := questionsOf(in)
	if err != nil {
		return nil, &failure{code: registry.ResultInvalid, msg: err.Error()}
	}
	if to.Ask == nil && !to.Rounds {
		return nil, &failure{code: registry.BindingFailed, msg: "it asks for input, and this caller can't be asked"}
	}
	needs := registry.Abilities{}
	for _, q := range asked {
		switch {
		case !to.Permits(q):
			return nil, &failure{code: registry.BindingFailed, msg: fmt.Sprintf("it asks for what the policy does not relay to the client (%s); the policy's data says what is (relay)", q.Kind())}
		case !to.Able.Answers(q):
			needs[q.Kind()] = json.RawMessage(`{}`)
			if address, err := q.Address(); err == nil && address != "" {
				needs[q.Kind()] = json.RawMessage(`{"url":{}}`)
			}
		}
	}
	if len(needs) > 0 {
		return nil, missing(needs)
	}
	return asked, nil
}

func missing(needs registry.Abilities) *failure {
	return &failure{code: registry.CapabilityMissing, needs: needs,
		msg: fmt.Sprintf("it asks for what this client has not declared that it answers: %v", slices.Sorted(maps.Keys(needs)))}
}

// answers sends all requests to the caller at once, and returns the answers by the names of the requests. A
// request without an answer ends the call: an error can't be forwarded to a server of 2026-07-28.
func (s *session) answers(ctx context.Context, asked inputs, to registry.Listener) (json.RawMessage, error) {
	if len(asked) == 0 {
		select {
		case <-time.After(roundPause):
			return nil, nil
		case <-ctx.Done():
			return nil, &failure{msg: "it wanted to be called again", err: ctx.Err()}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex
		all    = map[string]json.RawMessage{}
		failed error
		asking sync.WaitGroup
	)
	for name, q := range asked {
		asking.Go(func() {
			reply := to.Ask(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case reply.Error == nil && bytes.HasPrefix(reply.Result, []byte("{")):
				all[name] = reply.Result
			case failed == nil:
				failed = unanswered(q, reply)
				cancel()
			}
		})
	}
	asking.Wait()
	if failed != nil {
		return nil, failed
	}
	return encode(all), nil
}

func unanswered(q registry.Question, reply registry.Reply) *failure {
	f := &failure{code: registry.BindingFailed, msg: fmt.Sprintf("it asked the client (%s), and the answer is not an object", q.Method)}
	var e rpcError
	if reply.Error != nil && json.Unmarshal(reply.Error, &e) == nil {
		f.msg = fmt.Sprintf("it asked the client (%s), which answered with the error %d: %s", q.Method, e.Code, clip(e.Message, 1000))
	}
	return f
}

// unable returns the failure of a request that the server rejects because the client lacks a capability; nil
// for any other error. A capability that the policy does not relay is its own failure, because the client
// can't fix it by declaring the capability.
func unable(e *rpcError, to registry.Listener) *failure {
	if e.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY {
		return nil
	}
	var data struct {
		RequiredCapabilities map[string]json.RawMessage `json:"requiredCapabilities"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(data.RequiredCapabilities) == 0 || to.Ask == nil && !to.Rounds {
		return nil
	}
	for kind := range data.RequiredCapabilities {
		if !slices.Contains(to.Relay, kind) {
			return &failure{code: registry.BindingFailed, msg: fmt.Sprintf("it needs a capability of the client's that the policy does not relay (%.40q)", kind)}
		}
	}
	return missing(data.RequiredCapabilities)
}

// origin identifies a link in the state of a round.
func (l *link) origin() string {
	sum := sha256.Sum256([]byte(l.key))
	return hex.EncodeToString(sum[:16])
}
