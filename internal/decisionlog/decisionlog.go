// Package decisionlog writes down every decision: what was asked, what the policy answered and by which rules, in the form
// of OPA's decision logs (openpolicyagent.org, Management, Decision Logs), so that the tools that read those read these.
//
// Add hands an event over and returns; one goroutine works out the rules that answered, masks, and writes to the sink: a
// file with rotation, a stream, or a collector over HTTP. The queue between is bounded. Where it is full, an event is
// dropped and counted, or the caller waits, as Config.Block has it.
//
// What is in the queue or not yet written is lost when the process is killed. The log says so itself: every event has a
// number, a run begins with an event that says whether the one before it in the file was closed and whether its last line
// was cut off, and events that were dropped are an event of their own.
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
)

// Config says how a Log works. Sink is needed.
type Config struct {
	Sink Sink
	// Block makes who decides wait for room in a full queue, for as long as the sink takes none; else the event is dropped.
	Block bool
	// Queue is how many events wait at most; 0 means 10,000.
	Queue int
	// Version is catalogd's, a label of every event.
	Version string
	// Logger is told, at most once a minute, when the sink fails or events are dropped; nil discards.
	Logger *slog.Logger
}

// Sink is where encoded events go, one JSON object a line. Write is called by one goroutine; its error says that none of
// the lines is certain to have arrived, and the Log tries again.
type Sink interface {
	// Previous is what is known of the run before.
	Previous() Previous
	Write(ctx context.Context, lines []byte) error
	Close() error
}

// Previous is what the beginning of a run tells of the one before it in the same file.
type Previous struct {
	// Run is empty where there was none, or it is not known.
	Run string `json:"run,omitempty"`
	// Seq is the number of its last event.
	Seq uint64 `json:"seq,omitempty"`
	// Closed: it ended in order, so that nothing of it is missing but what it says was dropped.
	Closed bool `json:"closed"`
	// Torn: its last line was cut off, and stands there as it is.
	Torn bool `json:"torn,omitempty"`
}

// Log takes events. It is safe for concurrent use.
type Log struct {
	cfg     Config
	run     string
	queue   chan decision.Event
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once

	seq     uint64 // of the writer
	told    time.Time
	dropped atomic.Uint64 // since the log last said so

	counts struct{ written, dropped, failed atomic.Uint64 }
}

// New begins a run; its first event says so. Close ends it.
func New(cfg Config) *Log {
	if cfg.Queue <= 0 {
		cfg.Queue = 10_000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	l := &Log{cfg: cfg, run: hex.EncodeToString(id[:]), queue: make(chan decision.Event, cfg.Queue), closing: make(chan struct{}), ended: make(chan struct{})}
	go l.write()
	return l
}

// Add logs an event. It returns at once, but for a full queue of a Log that blocks. After Close it does nothing.
func (l *Log) Add(e decision.Event) {
	select {
	case <-l.closing:
		return
	default:
	}
	if l.cfg.Block {
		select {
		case l.queue <- e:
		case <-l.closing:
		}
		return
	}
	select {
	case l.queue <- e:
	default:
		l.dropped.Add(1)
		l.counts.dropped.Add(1)
	}
}

// Counts are of this run.
type Counts struct {
	// Written counts events that the sink took, Dropped those that found the queue full, Failed those that the sink did not
	// take in time.
	Written, Dropped, Failed uint64
	// Waiting is how many are in the queue.
	Waiting int
}

// Counts are what has become of the events so far.
func (l *Log) Counts() Counts {
	return Counts{l.counts.written.Load(), l.counts.dropped.Load(), l.counts.failed.Load(), len(l.queue)}
}

// Close writes what waits, for at most five seconds, and the end of the run.
func (l *Log) Close() error {
	l.once.Do(func() { close(l.closing) })
	<-l.ended
	return l.cfg.Sink.Close()
}

const (
	// closeTime bounds what Close waits for the sink.
	closeTime = 5 * time.Second
	// batch is how many bytes of events are written at once at most, and patience how long a sink of a Log that drops may
	// fail before its events are given up.
	batch    = 1 << 20
	patience = 30 * time.Second
)

// write is the one goroutine that encodes and writes.
func (l *Log) write() {
	defer close(l.ended)
	lines := l.note("opened", map[string]any{"previous": l.cfg.Sink.Previous()})
	events := 0
	flush := func() {
		if n := l.dropped.Swap(0); n > 0 {
			lines = append(lines, l.note("dropped", map[string]any{"events": n})...)
			l.tell("decisions were not logged, because the decision log's queue was full", "events", n)
		}
		if len(lines) > 0 {
			l.send(lines, events)
			lines, events = nil, 0
		}
	}
	flush()
	for open := true; open; {
		select {
		case e := <-l.queue:
			lines, events = append(lines, l.encode(e)...), events+1
		case <-l.closing:
			open = false
		}
		for more := true; more && len(lines) < batch; {
			select {
			case e := <-l.queue:
				lines, events = append(lines, l.encode(e)...), events+1
			default:
				more = false
			}
		}
		flush()
	}
	for { // what was added before the end
		select {
		case e := <-l.queue:
			lines, events = append(lines, l.encode(e)...), events+1
			continue
		default:
		}
		break
	}
	lines = append(lines, l.note("closed", nil)...)
	flush()
}

// send writes until the sink takes the lines; a Log that drops gives up after a while, and any Log soon after its end.
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
	go func() { // a write that hangs is broken off soon after the end
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
		late := !l.cfg.Block && time.Since(begin) > patience || !closed.IsZero() && time.Since(closed) > closeTime || ctx.Err() != nil
		if late {
			l.counts.failed.Add(uint64(events))
			l.tell("decisions are lost to the decision log", "events", events, "error", err)
			return
		}
		l.tell("the decision log can't be written; trying again", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// tell warns the operator, at most once a minute.
func (l *Log) tell(msg string, args ...any) {
	if now := time.Now(); now.Sub(l.told) > time.Minute {
		l.told = now
		l.cfg.Logger.Error(msg, args...)
	}
}

// note is an event about the log itself.
func (l *Log) note(what string, more map[string]any) []byte {
	custom := map[string]any{"what": what}
	for k, v := range more {
		custom[k] = v
	}
	return l.line(map[string]any{"decision_id": fmt.Sprintf("%s-%d", l.run, l.seq+1), "path": "catalogd/log", "timestamp": time.Now().UTC(), "custom": custom})
}

// line numbers and labels an event.
func (l *Log) line(event map[string]any) []byte {
	l.seq++
	event["labels"] = map[string]string{"app": "catalogd", "run": l.run, "version": l.cfg.Version}
	event["custom"].(map[string]any)["seq"] = l.seq
	b, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("decisionlog: an event is plain data: %v", err))
	}
	return append(b, '\n')
}
