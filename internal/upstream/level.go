package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// level is the lowest level of log messages that a server of the older eras was asked for. Some servers send none before
// they are asked (logging/setLevel), and what they are asked for holds for all calls of the session: it is only ever
// lowered, and each call hears what it wants of it.
type level struct {
	mu    sync.Mutex
	asked mcp.LoggingLevel
}

// levelTime is how long a call waits for the server to agree to a level.
const levelTime = 2 * time.Second

// lower asks the server for the log messages that a call may hear, where it was not asked for as much yet. A server that
// refuses, or doesn't answer in time, goes on as it was.
func (s *session) lower(ctx context.Context, to registry.Listener) {
	wanted := mcp.LoggingLevel(to.Level)
	if to.Message == nil || s.has.Logging == nil || mcp.IsModernProtocol(s.version) {
		return
	}
	s.level.mu.Lock()
	defer s.level.mu.Unlock() // so that no call that wants the same goes out before it is agreed to
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
