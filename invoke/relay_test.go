package invoke

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// TestHearing: a caller that waits hears that it does, as long as its tool reports no progress itself; once it is answered it
// hears nothing more, and is asked nothing.
func TestHearing(t *testing.T) {
	t.Parallel()
	var heard []string
	h := newRelay(registry.Listener{
		Progress: func(params json.RawMessage) { heard = append(heard, string(params)) },
		Message:  func(params json.RawMessage) { heard = append(heard, string(params)) },
		Ask: func(ctx context.Context, _ registry.Question) registry.Reply {
			<-ctx.Done()
			return registry.Reply{Error: json.RawMessage(`{}`)}
		},
	})
	to := h.listener()
	h.waiting(intent.Staged)
	h.waiting(intent.Attempted)
	if len(heard) != 2 || !strings.Contains(heard[0], `"progress":1`) || !strings.Contains(heard[1], `"progress":2`) || !strings.Contains(heard[1], "attempted") {
		t.Errorf("while it waits it hears %v", heard)
	}
	to.Progress(json.RawMessage(`{"progress":0.5}`))
	to.Message(json.RawMessage(`{"level":"info"}`))
	h.waiting(intent.Attempted)
	if len(heard) != 4 {
		t.Errorf("beside the tool's own progress it hears %v", heard[2:])
	}
	asked := make(chan registry.Reply)
	go func() { asked <- to.Ask(context.Background(), registry.Question{Method: "elicitation/create"}) }()
	for !h.busy() {
		runtime.Gosched()
	}
	h.close()
	if reply := <-asked; reply.Error == nil {
		t.Errorf("a question that was open is answered %s", reply.Result)
	}
	to.Progress(json.RawMessage(`{"progress":1}`))
	to.Message(json.RawMessage(`{}`))
	h.waiting(intent.Attempted)
	if len(heard) != 4 {
		t.Errorf("after the answer it hears %v", heard[4:])
	}
	if reply := to.Ask(context.Background(), registry.Question{Method: "elicitation/create"}); reply.Error == nil {
		t.Errorf("a question after the answer is answered %s", reply.Result)
	}
}
