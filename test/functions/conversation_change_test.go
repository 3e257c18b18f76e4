package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestConversationFunctionsChange adds, replaces and removes Go functions of a conversation branch while it is used:
// its clients are told, and those of others are not; calls answer as before, as after, or that there is no such tool;
// and a call goes on where its branch ends.
func TestConversationFunctionsChange(t *testing.T) {
	t.Parallel()
	d := harness.Serve(t, catalogd.Config{Dir: harness.Starter(t)})
	mine, err := d.Fork("default", catalogd.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := d.Fork("default", catalogd.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	says := func(name, text string) *registry.Function {
		return must(registry.Func(name, func(context.Context, struct{}) (string, error) { return text, nil }, registry.Read))
	}

	var told, others []*harness.Client
	for _, era := range []string{harness.Modern, harness.Legacy} {
		told = append(told, harness.Connect(t, d.URL, mine.Name(), era))
		others = append(others, harness.Connect(t, d.URL, other.Name(), era), harness.Connect(t, d.URL, "default", era))
	}
	for i, change := range []struct {
		what   string
		do     func() error
		listed bool
	}{
		{"added", func() error { return mine.AddFunc(says("osprey", "one")) }, true},
		{"removed", func() error { return mine.Remove("osprey") }, false},
		{"added again", func() error { return mine.AddFunc(says("osprey", "two")) }, true},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		for _, c := range told {
			harness.Await(t, fmt.Sprintf("%v to be told that it is %s", c, change.what), func() bool { return c.ListChanged.Load() > int64(i) })
			if _, listed := c.Listing(t)["osprey"]; listed != change.listed {
				t.Errorf("%s: %v lists %v", change.what, c, slices.Sorted(maps.Keys(c.Listing(t))))
			}
		}
	}
	for _, c := range others {
		if n := c.ListChanged.Load(); n != 0 || c.Answer(t.Context(), "osprey", nil) != harness.Absent {
			t.Errorf("%v was told of %d changes of another branch, and has its function", c, n)
		}
	}

	var changes, calls sync.WaitGroup
	done := make(chan struct{})
	for n := range 2 {
		changes.Go(func() {
			for i := range 50 {
				err := mine.ReplaceFunc(says("osprey", fmt.Sprintf("%d of %d", i, n)))
				if i%5 == 4 {
					err = errors.Join(err, ignoreUnknown(mine.Remove("osprey")))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		calls.Go(func() {
			for more := true; more; {
				select {
				case <-done:
					more = false
				default:
				}
				call, err := mine.Call(t.Context(), "osprey", json.RawMessage(`{}`))
				if err != nil || call.Err != nil && call.Err.Code != registry.UnknownTool || call.Err == nil && call.Status != registry.Succeeded {
					t.Errorf("a call meanwhile: %s, %v, %v", call.Status, call.Err, err)
				}
			}
		})
	}
	changes.Wait()
	close(done)
	calls.Wait()

	short, err := d.Fork(mine.Name(), catalogd.ForkOptions{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	waits := must(registry.Func("waits", func(context.Context, struct{}) (string, error) {
		close(begun)
		<-release
		return "it is over", nil
	}, registry.Read))
	if err := short.AddFunc(waits); err != nil {
		t.Fatal(err)
	}
	answered := make(chan registry.Call, 1)
	go func() {
		call, err := short.Call(t.Context(), "waits", json.RawMessage(`{}`))
		if err != nil {
			t.Error(err)
		}
		answered <- call
	}()
	<-begun
	harness.Await(t, "the branch to end", func() bool { _, err := short.Tools(); return err != nil })
	close(release)
	if call := <-answered; call.Err != nil || call.Text() != "it is over" {
		t.Errorf("a call whose branch has ended meanwhile: %v, %q", call.Err, call.Text())
	}
	if _, err := short.Call(t.Context(), "waits", json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "there is no branch") {
		t.Errorf("a call afterwards: %v", err)
	}
}

// ignoreUnknown is nil where somebody else has removed the tool.
func ignoreUnknown(err error) error {
	if errors.Is(err, registry.ErrUnknown) {
		return nil
	}
	return err
}
