package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/registry"
)

// What a child says goes to the call that it belongs to, in order and before the result; messages, which name no call,
// only where one call runs alone.
func TestHearing(t *testing.T) {
	t.Parallel()
	_, set := open(t, stdioServer(t, "plain"), trust.Terms{})
	says := func() (messages []string) {
		var progress []string
		r, err := set.Call(t.Context(), "fake", "says", nil, registry.Listener{
			Progress: func(p json.RawMessage) { progress = append(progress, string(p)) },
			Message:  func(p json.RawMessage) { messages = append(messages, string(p)) },
			Level:    "info",
		})
		if err != nil {
			t.Error(err)
			return nil
		}
		var block struct{ Text string }
		if err := json.Unmarshal(r.Content[0], &block); err != nil {
			t.Error(err)
		}
		var want []string
		for i := range 3 {
			want = append(want, fmt.Sprintf(`{"progress":%d,"message":"of %s"}`, i, block.Text))
		}
		if !slices.Equal(progress, want) {
			t.Errorf("%s heard %s", block.Text, progress)
		}
		return messages
	}
	alone := []string{`{"level":"warning","data":{"a":[1,9007199254740993]}}`}
	for range 3 {
		if messages := says(); !slices.Equal(messages, alone) {
			t.Fatalf("%q", messages)
		}
	}
	// Nobody listens: nothing happens.
	if _, err := set.Call(t.Context(), "fake", "says", nil, registry.Listener{}); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 50 {
				says()
			}
		})
	}
	callers.Wait()
}

// A log message of a child while several calls run goes to one of them if all are one client's, and to nobody if they are
// not, or if one of them may hear none.
func TestMessagesOfSeveralCalls(t *testing.T) {
	t.Parallel()
	mine, other := new(int), new(int)
	for _, c := range []struct {
		name    string
		clients [2]any
		deaf    bool // the second may hear no messages
		want    int
	}{
		{"one client's", [2]any{mine, mine}, false, 1},
		{"two clients'", [2]any{mine, other}, false, 0},
		{"nobody knows whose", [2]any{nil, nil}, false, 0},
		{"one of them may hear none", [2]any{mine, mine}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, set := open(t, stdioServer(t, "plain"), trust.Terms{})
			file := filepath.Join(t.TempDir(), "arrived")
			ctx, cancel := context.WithCancel(t.Context())
			var heard atomic.Int32
			listen := func(client any) registry.Listener {
				return registry.Listener{Client: client, Level: "info", Message: func(json.RawMessage) { heard.Add(1) }}
			}
			var waits sync.WaitGroup
			waits.Go(func() {
				_, err := set.Call(ctx, "fake", "hang", json.RawMessage(fmt.Sprintf(`{"File":%q}`, file)), listen(c.clients[0]))
				fails(t, err, registry.Cancelled)
			})
			eventually(t, "the first call's arrival", func() bool { _, err := os.Stat(file); return err == nil })
			to := listen(c.clients[1])
			if c.deaf {
				to.Message = nil
			}
			if _, err := set.Call(t.Context(), "fake", "says", nil, to); err != nil {
				t.Error(err)
			}
			if got := int(heard.Load()); got != c.want {
				t.Errorf("%d messages were heard, want %d", got, c.want)
			}
			cancel()
			waits.Wait()
		})
	}
}
