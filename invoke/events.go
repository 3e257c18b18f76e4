package invoke

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// The limits of Events.
const (
	maxEvents     = 10_000
	maxEventBytes = 8 << 20
	maxEventAge   = time.Hour
	// maxEventResult is the size of a result that is kept with its event, in bytes.
	maxEventResult = 256 << 10
	// eventOverhead is about what an event takes beside its texts, in bytes.
	eventOverhead = 512
)

// Event is the record of one call, while it runs and after it has ended.
type Event struct {
	// ID is the id of the call: 32 hexadecimal digits.
	ID string `json:"id"`
	// Branch is the branch that was called.
	Branch string `json:"branch"`
	// Tool is the tool's name, as the caller wrote it.
	Tool string `json:"tool"`
	// Principal is the name of the caller.
	Principal string `json:"principal"`
	// Generation is the id of the generation that it ran on.
	Generation string `json:"generation"`
	// Status is how far it is, or how it has ended.
	Status registry.Status `json:"status"`
	// Started is when it began.
	Started time.Time `json:"started"`
	// Duration is how long it took, in nanoseconds; absent while the call runs.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Digest names the arguments; absent if they were not accepted.
	Digest string `json:"digest,omitempty"`
	// Decision is the code of the call decision, Reasons its reasons for a denial.
	Decision string   `json:"decision,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	// Intent is the id of the intent that the call staged or found.
	Intent string `json:"intent,omitempty"`
	// Result is the result as the caller got it. One of more than 256 KiB is not kept; ResultBytes is its size.
	Result      *registry.Result `json:"result,omitempty"`
	ResultBytes int              `json:"resultBytes,omitempty"`
	// Error is why it has no result.
	Error *EventError `json:"error,omitempty"`

	credential string
	ended      time.Time
	size       int
}

// EventError is why a call has no result, as the caller was told.
type EventError struct {
	// Code is the code of the error: docs/reasons.md.
	Code registry.ErrorCode `json:"code"`
	// Message is what the caller was told.
	Message string `json:"message"`
	// Decision is the code of the decision that denied.
	Decision string `json:"decision,omitempty"`
	// Limit is the limit that was reached: docs/operations.md.
	Limit string `json:"limit,omitempty"`
	// RetryAfter is after how many seconds the same call may be made again.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Violations are the faults of the arguments.
	Violations []contract.Violation `json:"violations,omitempty"`
	// Nearest are similar names of tools that the caller sees, for an unknown one.
	Nearest []string `json:"nearest,omitempty"`
}

// NewEventError returns what a call's error shows its caller.
func NewEventError(err *registry.Error) *EventError {
	return &EventError{
		err.Code, err.Msg, err.Decision, err.Limit, registry.Seconds(err.RetryAfter), err.Violations, err.Nearest,
	}
}

// By reports whether a principal made the call with this credential (the hash of its token, empty for the
// local operator).
func (e Event) By(principal, credential string) bool {
	return e.Principal == principal && e.credential == credential
}

// Events keeps the events of the calls that run, and of the last ones that have ended: at most 10,000, for
// at most an hour, and with at most 8 MiB of results. Principals share these bounds fairly: beyond one, the
// oldest event of the principal that has most of it is evicted. Events outlives generations, and is lost
// with the process. All methods are safe for concurrent use. A nil *Events keeps nothing.
type Events struct {
	mu      sync.Mutex
	running map[string]Event
	ended   map[string]*Event
	by      map[string]*ownEvents // of ended, by principal
	count   int                   // of by, with their bytes
	bytes   int
	now     func() time.Time
}

// ownEvents are the events of the calls of one principal that have ended.
type ownEvents struct {
	order []*Event // the oldest first
	bytes int
}

// NewEvents returns an Events without events.
func NewEvents() *Events {
	return &Events{running: map[string]Event{}, ended: map[string]*Event{}, by: map[string]*ownEvents{}, now: time.Now}
}

// Get returns the event of a call.
func (s *Events) Get(id string) (Event, bool) {
	if s == nil {
		return Event{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evict()
	if e, ok := s.running[id]; ok {
		return e, true
	}
	if e, ok := s.ended[id]; ok {
		return *e, true
	}
	return Event{}, false
}

// Running returns the events of the calls that run, in no order.
func (s *Events) Running() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.running))
}

// begin adds the event of a call that runs.
func (s *Events) begin(call *registry.Call, credential string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[call.ID] = newEvent(call, credential)
}

// end replaces the event of a call by that of its end.
func (s *Events) end(call *registry.Call, credential string) {
	if s == nil {
		return
	}
	e := newEvent(call, credential)
	e.conclude(call)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, e.ID)
	e.ended = s.now()
	s.ended[e.ID] = &e
	own := s.by[e.Principal]
	if own == nil {
		own = &ownEvents{}
		s.by[e.Principal] = own
	}
	own.order = append(own.order, &e)
	own.bytes += e.size
	s.count++
	s.bytes += e.size
	s.evict()
}

// evict drops the events that are too old, and those beyond the limits.
func (s *Events) evict() {
	old := s.now().Add(-maxEventAge)
	for principal, own := range s.by {
		for len(own.order) > 0 && !own.order[0].ended.After(old) {
			s.drop(principal)
		}
	}
	for s.count > maxEvents || s.bytes > maxEventBytes {
		s.drop(s.largest())
	}
}

// largest returns the principal that has most of what is beyond its limit; of several, the one with the
// oldest event.
func (s *Events) largest() (principal string) {
	most := -1
	for name, own := range s.by {
		has := len(own.order)
		if s.count <= maxEvents {
			has = own.bytes
		}
		if has > most || has == most && own.order[0].ended.Before(s.by[principal].order[0].ended) {
			principal, most = name, has
		}
	}
	return principal
}

// drop drops the oldest event of a principal.
func (s *Events) drop(principal string) {
	own := s.by[principal]
	e := own.order[0]
	own.order[0] = nil
	own.order = own.order[1:]
	own.bytes -= e.size
	s.count--
	s.bytes -= e.size
	if s.ended[e.ID] == e {
		delete(s.ended, e.ID)
	}
	if len(own.order) == 0 {
		delete(s.by, principal)
	}
}

func newEvent(call *registry.Call, credential string) Event {
	return Event{
		ID: call.ID, Branch: call.Branch, Tool: call.Tool, Principal: call.Principal, Generation: call.Generation,
		Status: call.Status, Started: call.Start, credential: credential,
	}
}

// conclude sets what is known of a call that has ended. It copies what it keeps: a result may be a small
// part of a large answer.
func (e *Event) conclude(call *registry.Call) {
	e.Duration, e.Decision, e.Reasons, e.Intent = call.Duration, call.Decision, call.Reasons, call.Intent
	if call.Arguments.Object() != nil {
		e.Digest = call.Arguments.Digest()
	}
	e.size = eventOverhead + len(e.Tool)
	for _, reason := range e.Reasons {
		e.size += len(reason)
	}
	if err := call.Err; err != nil {
		e.Error = NewEventError(err)
		e.size += len(err.Msg)
		for _, v := range err.Violations {
			e.size += len(v.Pointer) + len(v.Got) + len(v.Expected)
		}
		return
	}
	if n := resultSize(call.Result); n > maxEventResult {
		e.ResultBytes = n
	} else {
		e.Result = copied(call.Result)
		e.size += n
	}
}

func resultSize(r *registry.Result) int {
	n := len(r.Structured) + len(r.Meta)
	for _, block := range r.Content {
		n += len(block)
	}
	for name, raw := range r.Fields {
		n += len(name) + len(raw)
	}
	return n
}

func copied(r *registry.Result) *registry.Result {
	c := &registry.Result{
		Content: make([]json.RawMessage, len(r.Content)), Structured: bytes.Clone(r.Structured), IsError: r.IsError,
		Meta: bytes.Clone(r.Meta),
	}
	for i, block := range r.Content {
		c.Content[i] = bytes.Clone(block)
	}
	for name, raw := range r.Fields {
		if c.Fields == nil {
			c.Fields = map[string]json.RawMessage{}
		}
		c.Fields[name] = bytes.Clone(raw)
	}
	return c
}
