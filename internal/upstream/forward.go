package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// Forwarded is what a server has of what its declaration passes on (Server.Forward), as it came. What it doesn't declare
// to have is empty.
type Forwarded struct {
	Resources, Templates, Prompts []json.RawMessage
	// Subscribe and Complete say whether the server takes subscriptions to its resources, and completes arguments.
	Subscribe, Complete bool
}

// Request is one request that is passed on: resources/read, resources/subscribe, resources/unsubscribe, prompts/get or
// completion/complete, with the params that its method has.
type Request struct {
	Method    mcp.MCPMethod
	URI       string          // of resources
	Name      string          // of a prompt, at the server
	Arguments json.RawMessage // of a prompt
	Ref       *Ref            // of a completion, with Argument and Context
	Argument  json.RawMessage
	Context   json.RawMessage
}

// Ref is what a completion is for: {"type": "ref/prompt", "name": ...} or {"type": "ref/resource", "uri": ...}.
type Ref struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// maxErrorText is how much of a server's error text is passed on: it may list what is wrong with many arguments.
const maxErrorText = 8 << 10

// Refusal is a server's JSON-RPC error, without the secrets that the server was given.
type Refusal struct {
	Code    int
	Message string
	Data    json.RawMessage // nil where there is none
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("it answers with the error %d: %s", r.Code, clip(r.Message, maxErrorText))
}

func refused(e *rpcError, private veil) *Refusal {
	r := &Refusal{Code: e.Code, Message: private.text(e.Message)}
	if present(e.Data) != nil {
		r.Data = private.json(e.Data)
	}
	return r
}

// Reach makes the connection to a server where there is none, so that the Watch is told what it offers; branch is as
// Listener.Branch. Its errors are those of Call.
func (s *Set) Reach(ctx context.Context, server, branch string) error {
	l, unknown := s.link(server, branch)
	if unknown != nil {
		return unknown
	}
	if l.problems.HasErrors() {
		return l.unavailable(nil, "%s", l.problems[0].Message)
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	session, _, err := l.connected(ctx)
	if err == nil {
		session.calls.Done()
	}
	return err
}

// Ask passes one request on and returns the result as it came, within the server's limits, its CallTimeout among them.
// What to hears is as in Call. Where prompts/get or resources/read asks for input first, and the caller takes rounds, there
// is no answer, and asks is a Result with Input. Its errors are those of Call; a server's JSON-RPC error is a *Refusal below
// one of the code binding_failed.
func (s *Set) Ask(ctx context.Context, server string, r Request, to registry.Listener) (answer json.RawMessage, asks *registry.Result, err error) {
	l, unknown := s.link(server, to.Branch)
	if unknown != nil {
		return nil, nil, unknown
	}
	p := params{Name: r.Name, URI: r.URI, Arguments: r.Arguments, Ref: r.Ref, Argument: r.Argument, Context: r.Context}
	err = l.exchange(ctx, to, func(ctx context.Context, s *session) error {
		var err error
		if r.Method != mcp.MethodPromptsGet && r.Method != mcp.MethodResourcesRead {
			answer, err = s.ask(ctx, r.Method, p, to)
			return err
		}
		asks, err = s.rounds(ctx, r.Method, p, to, func(raw json.RawMessage) (*registry.Result, error) {
			answer = raw
			return asking(raw)
		})
		return err
	})
	switch {
	case err != nil:
		return nil, nil, err
	case asks == nil || asks.Input == nil:
		return answer, nil, nil
	}
	asks.Input.Origin = l.origin()
	return nil, asks, nil
}

// forwarded asks for all that the server has of what is passed on. Its errors are those of ask.
func (s *session) forwarded(ctx context.Context, declared registry.Server) (f Forwarded, err error) {
	has := s.has
	f.Complete = has.Completions != nil
	if declared.Forwards("resources") && has.Resources != nil {
		f.Subscribe = has.Resources.Subscribe
		if f.Resources, err = s.pages(ctx, mcp.MethodResourcesList, "resources", "resources"); err != nil {
			return f, err
		}
		f.Templates, err = s.pages(ctx, mcp.MethodResourcesTemplatesList, "resourceTemplates", "templates of resources")
		var refusal *Refusal
		if errors.As(err, &refusal) && refusal.Code == mcp.METHOD_NOT_FOUND {
			f.Templates, err = nil, nil // the capability covers both methods, and many servers have but one
		}
		if err != nil {
			return f, err
		}
	}
	if declared.Forwards("prompts") && has.Prompts != nil {
		f.Prompts, err = s.pages(ctx, mcp.MethodPromptsList, "prompts", "prompts")
	}
	return f, err
}

func (l *link) forwards() bool { return l.cfg.Watch.Forwarded != nil && len(l.up.Server.Forward) > 0 }

// followForwards asks a session what it passes on, now and when it says that this changed, until it ends. An error is
// told and costs nothing else: calls of tools go on.
func (l *link) followForwards(s *session) {
	var last [sha256.Size]byte
	ask := func() (different, ok bool) {
		ctx, cancel := within(l.life, l.up.Server.CallTimeout)
		defer cancel()
		f, err := s.forwarded(ctx, l.up.Server)
		if l.life.Err() == nil {
			if err != nil {
				err = l.callError(ctx, err)
			}
			l.cfg.Watch.Forwarded(l.up.Server, l.branch, f, err)
		}
		before := last
		last = sha256.Sum256(encode(f))
		return err != nil || last != before, true
	}
	ask()
	l.again(s, 1, s.hearing.forwards, ask)
}

// silent are the methods about which a server says nothing while it answers them.
var silent = []mcp.MCPMethod{
	mcp.MethodToolsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodPromptsList, mcp.MethodSetLogLevel,
}

// speaks reports whether what a server says may belong to a request of the method.
func speaks(method mcp.MCPMethod) bool { return !slices.Contains(silent, method) }
