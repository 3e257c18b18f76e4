package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/paramheader"
	"github.com/catalogd/catalogd/registry"
)

// mirror knows which arguments of a server's tools are also sent in headers (2026-07-28 over HTTP). The
// server's own offer decides, for the server checks the headers against it.
type mirror struct {
	mu sync.Mutex
	// tools are the tools with annotations, by name; nil before the server was asked.
	tools map[string]annotated
	// asking holds an element while the tools are being listed.
	asking chan struct{}
}

// annotated holds the annotations of one tool; err says why they are not valid, so that the tool must not be
// used.
type annotated struct {
	params []paramheader.Param
	err    error
}

// mirrors reports whether the session's server may want arguments in headers.
func (s *session) mirrors() bool { return s.web != nil && mcp.IsModernProtocol(s.version) }

// offered stores the annotations of the tools that the server offers.
func (m *mirror) offered(tools []json.RawMessage) {
	found := map[string]annotated{}
	for _, raw := range tools {
		var tool struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if json.Unmarshal(raw, &tool) != nil {
			continue
		}
		if params, err := paramheader.Read(tool.InputSchema); len(params) > 0 || err != nil {
			found[tool.Name] = annotated{params, err}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = found
}

func (m *mirror) of(tool string) (a annotated, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools[tool], m.tools != nil
}

// mirrored returns the arguments of a tool that are also sent in headers. It lists the server's tools where
// they are not known, or where again reports that they may have changed. Where the listing fails, no such
// headers are sent.
func (s *session) mirrored(ctx context.Context, tool string, again bool) ([]paramheader.Param, error) {
	a, known := s.mirror.of(tool)
	if !known || again {
		select {
		case s.mirror.asking <- struct{}{}:
		case <-ctx.Done():
			return nil, &failure{msg: nothingSent, err: ctx.Err(), unsent: true, known: registry.OutcomeUnsent}
		}
		a, known = s.mirror.of(tool)
		if !known || again {
			tools, err := s.pages(ctx, mcp.MethodToolsList, "tools", "tools")
			var f *failure
			if err == nil || errors.As(err, &f) && f.rpc != 0 {
				s.mirror.offered(tools)
				a, _ = s.mirror.of(tool)
			}
		}
		<-s.mirror.asking
	}
	if a.err != nil {
		return nil, &failure{code: registry.BindingFailed, outcome: nothingSent, known: registry.OutcomeUnsent,
			msg: fmt.Sprintf("it offers a definition of the tool that must not be used: %v", a.err)}
	}
	return a.params, nil
}

// remirror lists the annotations again where the server has rejected a call because of its headers, before it
// ran anything, and reports whether they changed.
func (s *session) remirror(ctx context.Context, p *params, err error) bool {
	var f *failure
	if !s.mirrors() || p.Name == "" || !errors.As(err, &f) || f.rpc != mcp.HEADER_MISMATCH {
		return false
	}
	before := p.mirrored
	now, failed := s.mirrored(ctx, p.Name, true)
	if failed != nil || reflect.DeepEqual(before, now) {
		return false
	}
	p.mirrored = now
	return true
}
