package serve_test

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

	"github.com/catalogd/catalogd/internal/serve"
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
	h := newHouse(t)
	// Reading a pipe takes until somebody writes to it.
	h.set("catalog/wait.cue", fmt.Sprintf("package catalog\n\ntools: wait: {description: \"Wait.\", effect: \"read\", binding: exec: {command: \"cat\", argv: [%q]}}\n", pipe))
	h.set("policy/trust/data.yaml", homeTrust+"  wait: {command: [cat]}\n")
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	old, release := h.Pin()
	ended := make(chan registry.Call, 1)
	go func() {
		call := callOn(t, old, "default", "wait", ``)
		release()
		ended <- call
	}()
	// A writer can open it without waiting once the reader has.
	var writer *os.File
	until(t, "the tool runs", func() (ok bool) {
		var err error
		writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})

	// The tool, its trust and the server go, all in one generation. The reload doesn't wait for the call.
	delete(h.files, "catalog/wait.cue")
	h.set("policy/trust/data.yaml", "entries: {}\n")
	h.reload(t, "adopted")
	if got := h.call(t, "default", "wait", ``); got != "unknown_tool" {
		t.Errorf("a new call: %s", got)
	}
	if left := h.pool.Status(); len(left) != 1 || left[0].Server != "remote" {
		t.Errorf("the old generation's server is let go too early: %+v", left)
	}
	// What began on the old generation may still call its server.
	if got := outcome(t, callOn(t, old, "default", "remote_echo", ``)); got != "unavailable" {
		t.Errorf("the old generation's server: %s", got)
	}
	if _, err := writer.WriteString("finished"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	call := <-ended
	if got := outcome(t, call); got != "finished" || call.Generation != old.ID {
		t.Errorf("the old call: %s on %s, want %s", got, call.Generation, old.ID)
	}
	h.unlinked(t)
}

// TestPins: however reloads and calls interleave, each generation closes once, when its last call has ended.
func TestPins(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				outer, release := h.Pin()
				inner, releaseInner := h.Pin()
				if got := outcome(t, callOn(t, outer, "default", "upper", `{"text":"a"}`)); got != "A" {
					t.Errorf("outer: %s", got)
				}
				release()
				if got := outcome(t, callOn(t, inner, "default", "upper", `{"text":"b"}`)); got != "B" {
					t.Errorf("inner: %s", got)
				}
				releaseInner()
				time.Sleep(time.Millisecond) // the reloads need the machine too
			}
		})
	}
	for i := range 20 {
		// Every generation has a server of its own.
		h.set("catalog/home.cue", strings.Replace(homeCUE, "/mcp\"", fmt.Sprintf("/mcp/%d\"", i), 1))
		h.reload(t, "adopted")
	}
	stop()
	callers.Wait()
	until(t, "the old servers are let go", func() bool { return len(h.pool.Status()) == 1 })
	h.Close()
	h.unlinked(t)
}

// oldGenerationsAreForgotten: what has been replaced is garbage, whatever the next generation took over from it.
func oldGenerationsAreForgotten(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	var old []weak.Pointer[serve.Generation]
	for i := range 10 {
		g, release := h.Pin()
		old = append(old, weak.Make(g))
		release()
		switch i % 3 {
		case 0:
			h.set("catalog/home.cue", fmt.Sprintf("// Edit %d.\n%s", i, homeCUE))
		case 1:
			h.set("policy/access/data.yaml", homeAccess+fmt.Sprintf("  - {labels: {x: \"%d\"}, tags: [x]}\n", i))
		case 2:
			h.replace(t, "catalog/home.cue", "// Edit", "// Another edit")
		}
		h.reload(t, "adopted")
	}
	until(t, "the old generations are collected", func() bool {
		runtime.GC()
		for _, p := range old {
			if p.Value() != nil {
				return false
			}
		}
		return true
	})
}
