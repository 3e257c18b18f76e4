package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/registry"
)

// Forwarded is what a server lists of the kinds that its declaration passes through (Server.Forward),
// unchanged. Capabilities that it does not declare are empty.
type Forwarded struct {
	Resources, Templates, Prompts []json.RawMessage
	// Subscribe and Complete report whether the server supports resource subscriptions and argument
	// completion.
	Subscribe, Complete bool
}

// Request is one passthrough request: resources/read, resources/subscribe, resources/unsubscribe, prompts/get
// or completion/complete, with the params of its method.
type Request struct {
	Method    mcp.MCPMethod
	URI       string          // of resources
	Name      string          // of a prompt, at the server
	Arguments json.RawMessage // of a prompt
	Ref       *Ref            // of a completion, with Argument and Context
	Argument  json.RawMessage
	Context   json.RawMessage
}

// Ref is what a completion is for: {"type": "ref/prompt", "name": ...} or {"type": "ref/resource", "uri":
// ...}.
type Ref struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// maxErrorText caps the part of a server's error text that is passed through, in bytes: it may list the
// problems of many arguments.
const maxErrorText = 8 << 10

// Refusal is a server's JSON-RPC error, with the secrets that the server was given masked.
type Refusal struct {
	Code    int
	Message string
	Data    json.RawMessage // nil where there is none
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("it answers with the error %d: %s", r.Code, clip(r.Message, maxErrorText))
}

func refused(e *rpcError, private *secret.Masker) *Refusal {
	r := &Refusal{Code: e.Code, Message: private.Replace(e.Message)}
	if present(e.Data) != nil {
		r.Data = private.JSON(e.Data)
	}
	return r
}

// Reach connects to a server that has no connection, so that the Watch is notified of what it offers; branch
// is as in Listener.Branch. Its errors are those of Call.
func (s *Set) Reach(ctx context.Context, server, branch string) error {
	l, unknown := s.link(server, branch)
	if unknown != nil {
		return unknown
	}
	if len(l.problems) > 0 {
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

// Ask sends one passthrough request and returns the unchanged result, within the server's limits, including
// its CallTimeout. The listener to receives what it does in Call. Where prompts/get or resources/read asks
// for input first and the caller takes rounds, answer is nil and asks is a Result with Input. Its errors are
// those of Call; a server's JSON-RPC error is a *Refusal wrapped in an error of the code binding_failed.
func (s *Set) Ask(ctx context.Context, server string, r Request, to registry.Listener) (answer json.RawMessage, asks *registry.Result, err error) {
	l, unknown := s.link(server, to.Branch)
	if unknown != nil {
		return nil, nil, unknown
	}
	p := params{Name: r.Name, URI: r.URI, Arguments: r.Arguments, Ref: r.Ref, Argument: r.Argument, Context: r.Context}
	err = l.exchange(ctx, false, to, func(ctx context.Context, s *session) error {
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

// forwarded lists everything of the server that its declaration passes through. Its errors are those of ask.
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

// followForwards lists a session's passthrough items, now and whenever the server notifies of a change, until
// the session ends. An error is reported to the Watch and has no other effect: tool calls continue.
func (l *link) followForwards(s *session) {
	var last [sha256.Size]byte
	ask := func() (different, ok bool) {
		ctx, cancel := within(l.ctx, l.up.Server.CallTimeout)
		defer cancel()
		f, err := s.forwarded(ctx, l.up.Server)
		if l.ctx.Err() == nil {
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
	l.again(s, 1, s.router.forwards, ask)
}

// silent are the methods during which a server sends no notifications.
var silent = []mcp.MCPMethod{
	mcp.MethodToolsList, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodPromptsList, mcp.MethodSetLogLevel,
}

// speaks reports whether a server's notifications may belong to a request of the method.
func speaks(method mcp.MCPMethod) bool { return !slices.Contains(silent, method) }
