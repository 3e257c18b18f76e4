package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// level is the lowest log level requested from a server of the older protocol versions. Some servers send no
// messages before logging/setLevel, and the level applies to all calls of the session: it is only ever
// lowered, and each call's listener filters by its own level.
type level struct {
	mu    sync.Mutex
	asked mcp.LoggingLevel
}

// levelTime caps how long a call waits for the response to logging/setLevel.
const levelTime = 2 * time.Second

// lower requests the log level that a call wants, where the session's is higher. A server that refuses, or
// doesn't answer in time, keeps its level.
func (s *session) lower(ctx context.Context, to registry.Listener) {
	wanted := mcp.LoggingLevel(to.Level)
	if to.Message == nil || s.has.Logging == nil || mcp.IsModernProtocol(s.version) {
		return
	}
	s.level.mu.Lock()
	defer s.level.mu.Unlock() // so that no call for the same level is sent before the server has agreed
	if s.level.asked != "" && wanted.ShouldSendTo(s.level.asked) {
		return
	}
	asking, done := context.WithTimeout(ctx, levelTime)
	defer done()
	_, err := s.ask(asking, mcp.MethodSetLogLevel, params{Level: to.Level}, registry.Listener{})
	if ctx.Err() != nil {
		return
	}
	s.level.asked = wanted
	if err != nil {
		s.log.Debug("upstream takes no level of log messages", "reason", err)
	}
}
