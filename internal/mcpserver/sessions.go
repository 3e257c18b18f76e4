package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// errUnknownSession is the error for a session id that this branch never issued or that has ended; clients
// can't distinguish the two.
var errUnknownSession = errors.New("unknown session; begin with initialize")

// errClientCancelled is the cancellation cause of a call that its own client cancelled.
var errClientCancelled = errors.New("cancelled by the client")

// firstLevel is the log level of a client that has set none. The specification lets the server choose
// (2025-11-25, logging).
const firstLevel = mcp.LoggingLevelInfo

// sessions are the sessions of one branch in the older eras. A session begins with initialize and ends by
// DELETE, on expiry, or with the branch. It implements mcp-go's SessionIdManager, whose default accepts any
// well-formed id. All methods are safe for concurrent use.
type sessions struct {
	owner context.Context // cancelled when the branch ends
	max   int

	mu   sync.Mutex
	live map[string]*session
	// reserved counts the reservations for sessions that are about to begin.
	reserved int
}

// session is one client's session. It is in use while a stream or a call is open. When it ends, its streams
// end and its calls finish.
type session struct {
	inflight
	questions serverRequests
	ctx       context.Context
	end       context.CancelFunc
	// level is the minimum level of log messages that the client receives (logging/setLevel).
	level atomic.Value // mcp.LoggingLevel

	open int // streams and calls; guarded by sessions.mu
	last time.Time
}

func newSessions(owner context.Context, most int) *sessions {
	return &sessions{owner: owner, max: most, live: map[string]*session{}}
}

// reserve reserves one session and reports whether the limit allows it. Generate uses the reservation; if it
// isn't called, cancelReservation must be.
func (s *sessions) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live)+s.reserved >= s.max {
		return false
	}
	s.reserved++
	return true
}

func (s *sessions) cancelReservation() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
}

// Generate begins a session on a reservation and returns its id: 16 random bytes in hex.
func (s *sessions) Generate() string {
	id := registry.NewCallID()
	s.begin(id)
	return id
}

// begin uses a reservation for a session with that id. If the session is live already, the reservation lapses.
func (s *sessions) begin(id string) {
	ctx, end := context.WithCancel(s.owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved--
	if s.live[id] != nil {
		end()
		return
	}
	begun := &session{ctx: ctx, end: end, last: time.Now()}
	begun.level.Store(firstLevel)
	s.live[id] = begun
}

// Validate returns an error for an id that is not live. It never reports terminated, which would disclose
// that the id once existed.
func (s *sessions) Validate(id string) (terminated bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[id]; !ok {
		return false, errUnknownSession
	}
	return false, nil
}

// Terminate ends a session and its streams; an unknown id has no effect.
func (s *sessions) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session, ok := s.live[id]; ok {
		session.end()
		delete(s.live, id)
	}
	return false, nil
}

// use marks a live session as in use until done is called.
func (s *sessions) use(id string) (live *session, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, ok := s.live[id]
	if !ok {
		return nil, nil, errUnknownSession
	}
	live.open++
	return live, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		live.open--
		live.last = time.Now()
	}, nil
}

// expire ends the idle sessions that were last used before the given time, and returns their ids.
func (s *sessions) expire(before time.Time) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, session := range s.live {
		if session.open == 0 && session.last.Before(before) {
			session.end()
			delete(s.live, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// count returns the number of sessions, including reserved ones.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) + s.reserved
}

// inflight holds the calls of one client that can be cancelled. The zero value is ready to use.
type inflight struct {
	mu    sync.Mutex
	calls map[*cancellation]string // the request's id; a faulty client may use one twice at once
}

type cancellation struct{ end context.CancelCauseFunc }

// track returns a context that cancel cancels. done must be called when the call ends.
func (f *inflight) track(ctx context.Context, id json.RawMessage) (_ context.Context, done func()) {
	ctx, end := context.WithCancelCause(ctx)
	c := &cancellation{end}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[*cancellation]string{}
	}
	f.calls[c] = idKey(id)
	return ctx, func() {
		end(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.calls, c)
	}
}

// cancel cancels the calls with that id; an unknown id, or that of a call that has ended, has no effect.
func (f *inflight) cancel(id json.RawMessage) {
	key := idKey(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	for c, k := range f.calls {
		if k == key {
			c.end(errClientCancelled)
		}
	}
}
