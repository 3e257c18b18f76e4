package upstream_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
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
