package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/registry"
)

// A call that a reload overtakes finishes on the generation that it began with, whose servers stay open for it, and no
// longer.
func callOutlivesItsGeneration(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	h := servetest.NewHouse(t)
	// Reading a pipe takes until somebody writes to it.
	h.Set("catalog/wait.cue", fmt.Sprintf("package catalog\n\ntools: wait: {description: \"Wait.\", effect: \"read\", binding: exec: {command: \"cat\", argv: [%q]}}\n", pipe))
	h.Set("policy/trust/data.yaml", servetest.HomeTrust+fmt.Sprintf("  wait: {command: [cat, %q]}\n", pipe))
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	old, release := h.Pin()
	ended := make(chan registry.Call, 1)
	go func() {
		call := servetest.CallOn(t, old, "default", "wait", ``)
		release()
		ended <- call
	}()
	// A writer can open it without waiting once the reader has.
	var writer *os.File
	servetest.Until(t, "the tool runs", func() (ok bool) {
		var err error
		writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})

	// The tool, its trust and the server go, all in one generation. The reload doesn't wait for the call.
	delete(h.Files, "catalog/wait.cue")
	h.Set("policy/trust/data.yaml", "entries: {}\n")
	h.MustReload(t, "adopted")
	if got := h.Call(t, "default", "wait", ``); got != "unknown_tool" {
		t.Errorf("a new call: %s", got)
	}
	if left := h.Pool.Status(); len(left) != 1 || left[0].Server != "remote" {
		t.Errorf("the old generation's server is let go too early: %+v", left)
	}
	// What began on the old generation may still call its server.
	if got := servetest.Outcome(t, servetest.CallOn(t, old, "default", "remote_echo", ``)); got != "unavailable" {
		t.Errorf("the old generation's server: %s", got)
	}
	if _, err := writer.WriteString("finished"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	call := <-ended
	if got := servetest.Outcome(t, call); got != "finished" || call.Generation != old.ID {
		t.Errorf("the old call: %s on %s, want %s", got, call.Generation, old.ID)
	}
	h.Unlinked(t)
}

// TestPins: however reloads and calls interleave, each generation closes once, when its last call has ended.
func TestPins(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				outer, release := h.Pin()
				inner, releaseInner := h.Pin()
				if got := servetest.Outcome(t, servetest.CallOn(t, outer, "default", "upper", `{"text":"a"}`)); got != "A" {
					t.Errorf("outer: %s", got)
				}
				release()
				if got := servetest.Outcome(t, servetest.CallOn(t, inner, "default", "upper", `{"text":"b"}`)); got != "B" {
					t.Errorf("inner: %s", got)
				}
				releaseInner()
				time.Sleep(time.Millisecond) // the reloads need the machine too
			}
		})
	}
	for i := range 20 {
		// Every generation has a server of its own.
		h.Set("catalog/home.cue", strings.Replace(servetest.HomeCUE, "/mcp\"", fmt.Sprintf("/mcp/%d\"", i), 1))
		h.MustReload(t, "adopted")
	}
	stop()
	callers.Wait()
	servetest.Until(t, "the old servers are let go", func() bool { return len(h.Pool.Status()) == 1 })
	h.Close()
	h.Unlinked(t)
}

// oldGenerationsAreForgotten: what has been replaced is garbage, whatever the next generation took over from it.
func oldGenerationsAreForgotten(t *testing.T) {
	t.Parallel()
	h := servetest.OpenHouse(t)
	var old []weak.Pointer[generation.Generation]
	for i := range 10 {
		g, release := h.Pin()
		old = append(old, weak.Make(g))
		release()
		switch i % 3 {
		case 0:
			h.Set("catalog/home.cue", fmt.Sprintf("// Edit %d.\n%s", i, servetest.HomeCUE))
		case 1:
			h.Set("policy/access/data.yaml", servetest.HomeAccess+fmt.Sprintf("  - {labels: {x: \"%d\"}, tags: [x]}\n", i))
		case 2:
			h.Replace(t, "catalog/home.cue", "// Edit", "// Another edit")
		}
		h.MustReload(t, "adopted")
	}
	servetest.Until(t, "the old generations are collected", func() bool {
		runtime.GC()
		for _, p := range old {
			if p.Value() != nil {
				return false
			}
		}
		return true
	})
}
