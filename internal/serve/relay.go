package serve

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxNotices and maxNoticeBytes cap what one call's tool may say while it runs: how many notifications, and their
	// bytes together. What is over a cap is dropped and counted in the log; the call goes on.
	maxNotices     = 1000
	maxNoticeBytes = 256 << 10
)

// relay carries the notifications of one call to the call's own stream: all of them up to the caps, in order, and all
// before the call's result. Whoever brings one doesn't wait for the client to read it; a goroutine that lives while there
// is something to write does.
type relay struct {
	write func(notification []byte)

	mu      sync.Mutex
	waiting [][]byte
	writing bool
	ended   bool
	count   int
	size    int
	dropped int
	writers sync.WaitGroup
}

func (r *relay) add(notification []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.count >= maxNotices || r.size+len(notification) > maxNoticeBytes {
		r.dropped++
		return
	}
	r.count++
	r.size += len(notification)
	r.queue(notification)
}

// ask takes a request, or what follows on one, behind the notifications that came before it, and reports whether it will be
// written. It counts for no cap: whoever asks waits.
func (r *relay) ask(request []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.queue(request)
	return true
}

// queue needs the lock.
func (r *relay) queue(message []byte) {
	r.waiting = append(r.waiting, message)
	if !r.writing {
		r.writing = true
		r.writers.Go(r.drain)
	}
}

func (r *relay) drain() {
	for {
		r.mu.Lock()
		batch := r.waiting
		r.waiting = nil
		if len(batch) == 0 {
			r.writing = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, n := range batch {
			r.write(n)
		}
	}
}

// end takes no more, waits until everything is written, and returns how many were dropped.
func (r *relay) end() (dropped int) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.writers.Wait()
	return r.dropped
}

// wants is what a call's client asked to hear meanwhile.
type wants struct {
	// token is the progress token as it came; nil where there is none.
	token json.RawMessage
	// level is the lowest level of log messages; empty for none.
	level mcp.LoggingLevel
}

func (w wants) nothing() bool { return w.token == nil && w.level == "" }

// listener hears what is wanted and hands it to r.
func (w wants) listener(r *relay) (to registry.Listener) {
	if w.token != nil {
		to.Progress = func(params json.RawMessage) {
			r.add(notification(mcp.MethodNotificationProgress, `{"progressToken":`, w.token, []byte(","), params[1:]))
		}
	}
	if w.level != "" {
		to.Level = string(w.level)
		to.Message = func(params json.RawMessage) { r.add(notification(mcp.MethodNotificationMessage, "", params)) }
	}
	return to
}

func notification(method mcp.MCPMethod, begin string, params ...[]byte) []byte {
	head := `{"jsonrpc":"2.0","method":"` + string(method) + `","params":` + begin
	return append(bytes.Join(append([][]byte{[]byte(head)}, params...), nil), '}')
}

// known reports whether a level is one of MCP's.
func known(level mcp.LoggingLevel) bool { return level.ShouldSendTo(mcp.LoggingLevelDebug) }
