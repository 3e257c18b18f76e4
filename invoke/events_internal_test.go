package invoke

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/registry"
)

func endedCall(id string, size int) *registry.Call {
	call := &registry.Call{ID: id, Branch: "default", Tool: "t", Principal: "ann", Status: registry.Running, Start: time.Now()}
	call.End(&registry.Result{Content: []json.RawMessage{registry.Text(strings.Repeat("x", size))}}, nil)
	return call
}

// TestEventsAreBounded checks the limits of Events by number, bytes and age.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	s := NewEvents()
	now := time.Now()
	s.now = func() time.Time { return now }
	running := &registry.Call{ID: "running", Status: registry.Running}
	s.begin(running, "")
	for i := range maxEvents + 10 {
		s.end(endedCall(fmt.Sprint(i), 1), "")
	}
	for id, want := range map[string]bool{"running": true, "9": false, "10": true, fmt.Sprint(maxEvents + 9): true} {
		if _, ok := s.Get(id); ok != want {
			t.Errorf("after %d calls, call %s: got %v, want %v", maxEvents+10, id, ok, want)
		}
	}
	large := maxEventResult - 100
	for i := range 2 * maxEventBytes / large {
		s.end(endedCall("large-"+fmt.Sprint(i), large), "")
		if s.bytes > maxEventBytes {
			t.Fatalf("%d bytes are kept, more than %d", s.bytes, maxEventBytes)
		}
	}
	if n := len(s.ended); n != s.count || n < maxEventBytes/(large+2*eventOverhead)-1 || n > maxEventBytes/large {
		t.Errorf("%d large events are kept, and %d in order", n, s.count)
	}
	last := "large-" + fmt.Sprint(2*maxEventBytes/large-1)
	now = now.Add(maxEventAge - time.Second)
	if _, ok := s.Get(last); !ok {
		t.Error("the last event is gone before its time")
	}
	now = now.Add(2 * time.Second)
	if _, ok := s.Get(last); ok || s.bytes != 0 || s.count+len(s.by)+len(s.ended) != 0 {
		t.Errorf("after an hour: got %v, %d bytes, %d events; want none", ok, s.bytes, len(s.ended))
	}
	if _, ok := s.Get("running"); !ok {
		t.Error("the event of a running call is gone")
	}
}

// TestEventsAreShared checks that a principal with many calls, or large results, evicts its own events and
// not those of another.
func TestEventsAreShared(t *testing.T) {
	t.Parallel()
	s := NewEvents()
	end := func(principal, id string, size int) {
		call := endedCall(id, size)
		call.Principal = principal
		s.end(call, "")
	}
	kept := func(id string) bool {
		_, ok := s.Get(id)
		return ok
	}
	for i := range 10 {
		end("bob", fmt.Sprint("bob-", i), 1)
	}
	for i := range maxEvents {
		end("ann", fmt.Sprint("ann-", i), 1)
	}
	if !kept("bob-0") || kept("ann-9") || !kept("ann-10") {
		t.Errorf("after a flood of ann's: bob's oldest is kept: %t, ann's tenth: %t, ann's next: %t; want true, false, true",
			kept("bob-0"), kept("ann-9"), kept("ann-10"))
	}
	for i := range 2 * maxEventBytes / maxEventResult {
		end("eve", fmt.Sprint("eve-", i), maxEventResult-100)
	}
	if !kept("bob-0") || kept("eve-0") {
		t.Errorf("after large results of eve's: bob's oldest is kept: %t, eve's oldest: %t; want true, false", kept("bob-0"), kept("eve-0"))
	}
	for i := range 2 * maxEvents {
		end([]string{"ann", "bob"}[i%2], fmt.Sprint("both-", i), 1)
	}
	if ann, bob := len(s.by["ann"].order), len(s.by["bob"].order); ann-bob > 1 || bob-ann > 1 || s.count > maxEvents {
		t.Errorf("ann has %d events and bob %d, of %d; want the same", ann, bob, s.count)
	}
}

// TestEventKeepsNoMore checks that an event has its own copy of a result, and none of one that is too large.
func TestEventKeepsNoMore(t *testing.T) {
	t.Parallel()
	s := NewEvents()
	call := endedCall("small", 10)
	s.end(call, "c")
	call.Result.Content[0][0] = 'X'
	e, ok := s.Get("small")
	if !ok || e.Result == nil || string(e.Result.Content[0]) != `{"type":"text","text":"xxxxxxxxxx"}` {
		t.Errorf("got %+v, want the result as it was", e)
	}
	if !e.By("ann", "c") || e.By("ann", "") || e.By("bob", "c") {
		t.Error("it is not its caller's alone")
	}
	s.end(endedCall("large", maxEventResult), "")
	if e, ok := s.Get("large"); !ok || e.Result != nil || e.ResultBytes <= maxEventResult || e.size > 2*eventOverhead {
		t.Errorf("got %+v, want its size in place of the result", e)
	}
}
