// Package decisionlog records every decision: what was asked, what the policy answered and by which rules, in
// the form of OPA's decision logs (openpolicyagent.org, Management, Decision Logs), so that tools for those
// logs read these.
//
// Add queues an event and returns. One goroutine determines the rules behind the answer, masks what the
// policy's catalogd.log names, and writes to the Sink: a file with rotation, a stream, or a collector over
// HTTP. Events of 20 ms are written together. The queue is bounded. When it is full, an event is dropped and
// counted, or the caller waits (Config.Block).
//
// What is queued or not yet written is lost when the process is killed, and the log says so: every event has
// a number, a run begins with an event that says whether the run before it in the file was closed and whether
// its last line was torn, and dropped events are reported by an event of their own.
package decisionlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/problem"
)

// Config configures a Log. Only Sink is required.
type Config struct {
	Sink Sink
	// Block makes callers of Add wait while the queue is full; otherwise the event is dropped.
	Block bool
	// Queue is the capacity of the queue in events; 0 means 10,000.
	Queue int
	// Version is catalogd's, a label of every event.
	Version string
	// Logger gets an error, at most once a minute, when the sink fails or events are dropped; nil discards
	// it.
	Logger *slog.Logger
}

// Sink receives encoded events, one JSON object a line. Write is called by one goroutine and must not keep
// lines. After an error the Log retries with the same lines, some of which may have arrived.
type Sink interface {
	// Previous returns what is known of the previous run.
	Previous() Previous
	Write(ctx context.Context, lines []byte) error
	Close() error
}

// Previous is what the first event of a run says about the previous run in the same file.
type Previous struct {
	// Run is the id of the run; empty if there was none or it is unknown.
	Run string `json:"run,omitempty"`
	// Seq is the number of its last event.
	Seq uint64 `json:"seq,omitempty"`
	// Closed: it was shut down in order, so that nothing is missing but what it reports as dropped.
	Closed bool `json:"closed"`
	// Torn: its last line was cut off, and is left as it is.
	Torn bool `json:"torn,omitempty"`
}

// Log records events. It is safe for concurrent use.
type Log struct {
	cfg     Config
	run     string
	labels  string // of every event, as JSON
	queue   queue
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once

	// Used by the writer goroutine only.
	seq       uint64
	warned    time.Time
	positions *cache.Cache[problem.Position, string] // rules as text

	attempts quotas
	counts   struct{ written, failed atomic.Uint64 }
}

// New begins a run, whose first event is "opened". Close ends it.
func New(cfg Config) *Log {
	if cfg.Queue <= 0 {
		cfg.Queue = 10_000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	l := &Log{
		cfg: cfg, run: hex.EncodeToString(id[:]), closing: make(chan struct{}), ended: make(chan struct{}),
		positions: cache.New[problem.Position, string](maxPositions), attempts: quotas{by: cache.New[string, *quota](maxQuotas)},
	}
	l.labels = string(encoded(map[string]string{"app": "catalogd", "run": l.run, "version": cfg.Version}))
	l.queue.init(cfg.Queue)
	go l.write()
	return l
}

// Add logs an event. It returns at once unless the queue is full and Config.Block is set. After Close it does
// nothing. Attempts of one principal beyond a rate are only counted, and those of unknown callers never wait.
func (l *Log) Add(e decision.Event) {
	wait := l.cfg.Block
	if e.Point == decision.Attempted {
		if !l.attempts.take(e.Principal, time.Now()) {
			return
		}
		wait = wait && e.Principal != ""
	}
	l.queue.add(e, wait)
}

// Counts are the numbers of events in this run.
type Counts struct {
	// Written counts events that the sink took, Dropped those that found the queue full, Failed those that
	// the sink did not take in time, Suppressed the attempts beyond a principal's rate.
	Written, Dropped, Failed, Suppressed uint64
	// Waiting is how many are queued.
	Waiting int
}

// Counts returns what has become of the events so far.
func (l *Log) Counts() Counts {
	waiting, dropped := l.queue.counts()
	return Counts{l.counts.written.Load(), dropped, l.counts.failed.Load(), l.attempts.suppressed.Load(), waiting}
}

// Close writes what is queued and the end of the run, for at most five seconds.
func (l *Log) Close() error {
	l.once.Do(func() {
		l.queue.close()
		close(l.closing)
	})
	<-l.ended
	return l.cfg.Sink.Close()
}

const (
	// closeTime bounds how long Close waits for the sink.
	closeTime = 5 * time.Second
	// batch is how many bytes of events are written together, and giveUpAfter how long a failing sink is
	// retried before its events are dropped, unless Config.Block is set.
	batch       = 1 << 20
	giveUpAfter = 30 * time.Second
	// gather is how long events are collected before they are written together.
	gather = 20 * time.Millisecond
)

// write is the goroutine that encodes and writes.
func (l *Log) write() {
	defer close(l.ended)
	lines := l.note("opened", map[string]any{"previous": l.cfg.Sink.Previous()})
	events := 0
	var dropped, suppressed uint64 // as reported in the log so far
	flush := func() {
		if _, n := l.queue.counts(); n > dropped {
			lines = append(lines, l.note("dropped", map[string]any{"events": n - dropped})...)
			l.warn("decisions were not logged, because the decision log's queue was full", "events", n-dropped)
			dropped = n
		}
		if len(lines) > 0 {
			l.send(lines, events)
		}
		events = 0
		if lines = lines[:0]; cap(lines) > 2*batch {
			lines = nil
		}
	}
	flush()
	var last time.Time // when suppressed attempts were last reported
	for open := true; open; {
		open = l.queue.wait(gather)
		taken := l.queue.take()
		for i, e := range taken {
			lines, events = l.encode(lines, e), events+1
			taken[i] = decision.Event{} // holds arguments
			if len(lines) >= batch {
				flush()
			}
		}
		if n := l.attempts.suppressed.Load(); n > suppressed && (!open || time.Since(last) > sayEvery) {
			lines = append(lines, l.note("suppressed", map[string]any{"events": n - suppressed})...)
			suppressed, last = n, time.Now()
		}
		if !open {
			lines = append(lines, l.note("closed", nil)...)
		}
		flush()
	}
}

// send retries until the sink takes the lines. It gives up after giveUpAfter unless Config.Block is set, and
// closeTime after Close.
func (l *Log) send(lines []byte, events int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin, pause := time.Now(), 50*time.Millisecond
	ending := func() bool {
		select {
		case <-l.closing:
			return true
		default:
			return false
		}
	}
	closed := time.Time{}
	go func() { // cancels a write that hangs closeTime after Close
		select {
		case <-l.closing:
			select {
			case <-time.After(closeTime):
				cancel()
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}()
	for {
		err := l.cfg.Sink.Write(ctx, lines)
		if err == nil {
			l.counts.written.Add(uint64(events))
			return
		}
		if closed.IsZero() && ending() {
			closed = time.Now()
		}
		late := !l.cfg.Block && time.Since(begin) > giveUpAfter || !closed.IsZero() && time.Since(closed) > closeTime || ctx.Err() != nil
		if late {
			l.counts.failed.Add(uint64(events))
			l.warn("decisions are lost to the decision log", "events", events, "error", err)
			return
		}
		l.warn("the decision log can't be written; trying again", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// warn logs an error for the operator, at most once a minute.
func (l *Log) warn(msg string, args ...any) {
	if now := time.Now(); now.Sub(l.warned) > time.Minute {
		l.warned = now
		l.cfg.Logger.Error(msg, args...)
	}
}

// note returns an event about the log itself as a line.
func (l *Log) note(what string, more map[string]any) []byte {
	l.seq++
	custom := map[string]any{"what": what, "seq": l.seq}
	for k, v := range more {
		custom[k] = v
	}
	return append(encoded(map[string]any{
		"decision_id": fmt.Sprintf("%s-%d", l.run, l.seq), "path": "catalogd/log", "timestamp": time.Now().UTC(), "custom": custom,
		"labels": json.RawMessage(l.labels),
	}), '\n')
}
