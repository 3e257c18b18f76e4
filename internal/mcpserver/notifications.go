package mcpserver

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

const (
	// maxNotices and maxNoticeBytes cap the notifications of one call: their number, and their bytes
	// together. Notifications over a cap are dropped and their number is logged; the call continues.
	maxNotices     = 1000
	maxNoticeBytes = 256 << 10
)

// notificationQueue writes the notifications of one call to the call's own stream: all of them up to the
// caps, in order, and before the call's result. Adding doesn't block on the client: a goroutine writes, and
// lives only while there is something to write.
type notificationQueue struct {
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

// add queues a notification. It drops one that exceeds a cap, or that comes after end.
func (r *notificationQueue) add(notification []byte) {
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

// ask queues a request, or a notification that follows one, behind the earlier notifications, and reports
// whether it will be written. It is exempt from the caps: a tool waits for each answer.
func (r *notificationQueue) ask(request []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.queue(request)
	return true
}

// queue appends a message and starts the writer if none runs. r.mu must be held.
func (r *notificationQueue) queue(message []byte) {
	r.waiting = append(r.waiting, message)
	if !r.writing {
		r.writing = true
		r.writers.Go(r.drain)
	}
}

func (r *notificationQueue) drain() {
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

// end closes the queue, waits until everything is written, and returns the number of dropped notifications.
func (r *notificationQueue) end() (dropped int) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.writers.Wait()
	return r.dropped
}

// notificationFilter says which notifications the client of a call wants.
type notificationFilter struct {
	// token is the progress token as received; nil if there is none.
	token json.RawMessage
	// level is the minimum level of log messages; empty for none.
	level mcp.LoggingLevel
}

func (w notificationFilter) nothing() bool { return w.token == nil && w.level == "" }

// listener returns a listener that adds the wanted notifications to r.
func (w notificationFilter) listener(r *notificationQueue) (to registry.Listener) {
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

// known reports whether a level is one of MCP's log levels.
func known(level mcp.LoggingLevel) bool { return level.ShouldSendTo(mcp.LoggingLevelDebug) }
