package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// written counts what is written, also behind its end, as a pipe does whose other end is still open.
type written struct {
	mu    sync.Mutex
	bytes int
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += len(p)
	return len(p), nil
}

func (w *written) Close() error { return nil }

func (w *written) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// A request that is said not to have been sent isn't sent afterwards either, however its end and the end of the connection
// fall together.
func TestNotSentStaysUnsent(t *testing.T) {
	t.Parallel()
	outcomes := map[bool]int{}
	for n := range 4000 {
		in := &written{}
		out, hangUp := io.Pipe()
		p := newPipe(in, out, 1<<10, slog.New(slog.DiscardHandler))
		late := n%4 > 1   // the writer is held up until the request has ended
		early := n%40 < 2 // the request ends when it is written
		if !late {
			p.start()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for late && len(p.writes) == 0 || early && in.count() == 0 {
				runtime.Gosched()
			}
			if n%2 == 0 {
				cancel()
			} else {
				p.close()
			}
		}()
		_, err := p.request(ctx, newExchange("1", 1<<10), request{ID: mcp.NewRequestId(1), Method: "tools/call"})
		<-ended
		if late {
			p.start()
		}
		p.close()
		hangUp.Close()
		p.wait()
		cancel()
		var unsent notSent
		if errors.As(err, &unsent) && in.bytes > 0 {
			t.Fatalf("%d bytes were sent of what is unsent: %v", in.bytes, err)
		}
		outcomes[in.bytes > 0]++
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("sent or not: got %v, want some of both", outcomes)
	}
}
