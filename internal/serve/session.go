package serve

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

// errUnknownSession is what an id gets that this branch never gave, or that has ended. The two are told apart nowhere.
var errUnknownSession = errors.New("unknown session; begin with initialize")

// errClientCancelled is the cause of a call's end that its own client asked for.
var errClientCancelled = errors.New("cancelled by the client")

// firstLevel is the level of log messages of a client that has set none. The specification leaves it to the server
// (2025-11-25, logging).
const firstLevel = mcp.LoggingLevelInfo

// sessions are the sessions of one branch in the protocol's older eras: begun by initialize, ended by DELETE, by being
// idle, or with the branch. It is mcp-go's SessionIdManager, whose default accepts any well-formed id. All methods are
// safe for concurrent use.
type sessions struct {
	owner context.Context // ends with the branch
	max   int

	mu   sync.Mutex
	live map[string]*session
	// reserved is for how many sessions room is kept that are about to begin.
	reserved int
}

// session is one client's. It is in use while a stream or a call is open, and its streams end with it; its calls finish.
type session struct {
	inflight
	questions questions
	ctx       context.Context
	end       context.CancelFunc
	// level is the lowest level of log messages that the client hears (logging/setLevel).
	level atomic.Value // mcp.LoggingLevel

	open int // under sessions.mu
	last time.Time
}

func newSessions(owner context.Context, most int) *sessions {
	return &sessions{owner: owner, max: most, live: map[string]*session{}}
}

// reserve keeps room for one more session, and reports whether there is any. Generate takes the room; where it is not
// called, cancelReservation must be.
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

// Generate begins a session in the room that was kept for it, and returns its id: 16 random bytes in hex.
func (s *sessions) Generate() string {
	id := registry.NewCallID()
	ctx, end := context.WithCancel(s.owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := &session{ctx: ctx, end: end, last: time.Now()}
	begun.level.Store(firstLevel)
	s.live[id] = begun
	s.reserved--
	return id
}

// Validate reports an error for an id that is not live; nothing is ever "terminated", which would tell more.
func (s *sessions) Validate(id string) (terminated bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.live[id]; !ok {
		return false, errUnknownSession
	}
	return false, nil
}

// Terminate ends a session and its streams.
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

// expire ends the sessions that nothing has used since before, and returns their ids.
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

// count is how many sessions there are, those with it that are about to begin.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) + s.reserved
}

// inflight holds the calls of one client that can be cancelled. Its zero value is ready.
type inflight struct {
	mu    sync.Mutex
	calls map[*cancellation]string // the request's id, which a careless client uses twice at once
}

type cancellation struct{ end context.CancelCauseFunc }

// begin makes a context that cancel ends; done must be called at the call's end.
func (f *inflight) begin(ctx context.Context, id json.RawMessage) (_ context.Context, done func()) {
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

// cancel ends the calls of that id; an id that is unknown or late changes nothing.
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
