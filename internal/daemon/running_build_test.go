package daemon_test

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
)

// openStubborn is a daemon with a stubborn compiler.
func openStubborn(t *testing.T, obeys bool) (*servetest.House, *servetest.Stubborn) {
	t.Helper()
	h := servetest.NewHouse(t)
	log := slog.New(slog.NewTextHandler(h.Log, nil))
	pool := upstream.NewPool(upstream.Config{})
	t.Cleanup(pool.Close)
	c := &servetest.Stubborn{
		Compiler: loader.NewCompiler(loader.Config{Schema: servetest.ReadSchema(t)}), Obeys: obeys, Let: make(chan struct{}), Begun: make(chan struct{}, 10),
	}
	c.LetGo = sync.OnceFunc(func() { close(c.Let) })
	t.Cleanup(c.LetGo)
	d, err := daemon.Open(t.Context(), daemon.Config{Source: h, Log: log, Builder: &generation.Builder{
		Root: t.TempDir(), Pool: pool, Log: log, Compiler: c, Policy: decision.Config{Deadline: 10 * time.Second, Build: time.Minute},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.Daemon = d
	t.Cleanup(d.Close)
	return h, c
}

// TestSuperseded: a build that does not end shows in the status, and the next edit takes its place: it is
// served, and the build that ends later changes nothing.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	for name, obeys := range map[string]bool{"cancelled": true, "left behind": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := openStubborn(t, obeys)
			stuck := h.Hang(t, c, "one")
			if b := h.Status().Build; b == nil || b.Since == nil || b.Step != "compiling the catalog" || b.Abandoned != 0 {
				t.Errorf("status: %+v", b)
			}
			h.Set("catalog/home.cue", "// Better.\n"+servetest.HomeCUE)
			h.MustReload(t, "adopted")
			if o := <-stuck; o.Result != "superseded" {
				t.Errorf("the stuck build: %+v", o)
			}
			serving := h.Status()
			if abandoned := serving.Build != nil && serving.Build.Abandoned == 1; abandoned == obeys || serving.Healthy != obeys {
				t.Errorf("status: healthy %t, %+v", serving.Healthy, serving.Build)
			}
			if !obeys {
				c.LetGo()
				servetest.Until(t, "the build to end", func() bool { return h.Status().Build == nil })
			}
			if s := h.Status(); !reflect.DeepEqual(s.Generation, serving.Generation) || !s.Healthy {
				t.Errorf("%+v serves, want %+v", s.Generation, serving.Generation)
			}
		})
	}
}

// TestLeftBehind: no more builds than two are left behind. A third is not begun, which the files that come
// are refused for, and as soon as one has ended they are served.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	h, c := openStubborn(t, false)
	first := h.Hang(t, c, "one")
	second := h.Hang(t, c, "two")
	if o := <-first; o.Result != "superseded" {
		t.Fatalf("%+v", o)
	}
	h.Set("catalog/home.cue", "// Good.\n"+servetest.HomeCUE)
	refused := h.MustReload(t, "refused")
	if o := <-second; o.Result != "superseded" {
		t.Fatalf("%+v", o)
	}
	if len(refused.Problems) != 1 || !strings.Contains(refused.Problems[0].Message, "2 builds") {
		t.Errorf("%v", refused.Problems)
	}
	c.LetGo()
	servetest.Until(t, "the builds to end", func() bool { return h.Status().Build == nil })
	h.MustReload(t, "adopted")
}

// TestClosedBesideStuck: a daemon ends beside a build that does not.
func TestClosedBesideStuck(t *testing.T) {
	t.Parallel()
	h, c := openStubborn(t, false)
	stuck := h.Hang(t, c, "one")
	h.Close()
	if o := <-stuck; o.Result != "refused" {
		t.Errorf("%+v", o)
	}
}

// TestSameFilesWait: a reload that finds the files of the build that runs waits for it, however long that takes.
func TestSameFilesWait(t *testing.T) {
	t.Parallel()
	h, c := openStubborn(t, true)
	slow := h.Hang(t, c, "one")
	same := make(chan daemon.Outcome, 1)
	go func() { same <- h.Reload(context.Background()) }()
	time.Sleep(3 * time.Second) // longer than a build of other files would be waited for
	select {
	case o := <-slow:
		t.Fatalf("the build ended: %+v", o)
	case o := <-same:
		t.Fatalf("the second did not wait: %+v", o)
	default:
	}
	c.LetGo()
	if o := <-slow; o.Result != "adopted" {
		t.Errorf("%+v", o)
	}
	if o := <-same; o.Result != "unchanged" {
		t.Errorf("%+v", o)
	}
}
