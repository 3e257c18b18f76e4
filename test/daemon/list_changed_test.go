package daemon

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// compareListing checks that a client is shown exactly these tools.
func compareListing(t *testing.T, l *harness.Client, when string, want []string) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(l.Listing(t))); !slices.Equal(got, want) {
		t.Errorf("%s, the %v lists %v, want %v", when, l, got, want)
	}
}

// awaitListChanged waits until a client hears of a change while edit is done again and again: a client that has only
// just connected may not be listening yet. Each edit is given twice the time of the one before, so that a
// slow machine catches up.
func awaitListChanged(t *testing.T, l *harness.Client, edit func(i int)) {
	t.Helper()
	i, wait := 0, 300*time.Millisecond
	heard := l.ListChanged.Load()
	harness.Await(t, fmt.Sprintf("the %v to listen", l), func() bool {
		i++
		edit(i)
		for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if l.ListChanged.Load() > heard {
				return true
			}
		}
		wait = min(2*wait, 20*time.Second)
		return false
	})
}

// editReachesClients: an edit is list_changed and then the new list, without anybody asking the daemon to reload.
func editReachesClients(t *testing.T) {
	t.Parallel()
	for _, era := range []string{harness.Modern, harness.Legacy} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			dir := harness.Starter(t)
			r := harness.Serve(t, catalogd.Config{Dir: dir, Timing: loader.WatchConfig{Quiet: 150 * time.Millisecond}})
			l := harness.Connect(t, r.URL, "default", era)
			file := filepath.Join(dir, "catalog/new.cue")
			describe := func(i int) {
				harness.WriteFile(t, file, "package catalog\n\n"+harness.JQTool("new", fmt.Sprintf("Edit %d.", i), "x"))
			}
			awaitListChanged(t, l, describe)
			var took []time.Duration
			for i := range 10 {
				heard := l.ListChanged.Load()
				start := time.Now()
				describe(1000 + i)
				want := fmt.Sprintf("Edit %d.", 1000+i)
				harness.Await(t, "list_changed and the new list", func() bool {
					now := l.ListChanged.Load()
					if now == heard {
						return false
					}
					heard = now // it may have been an edit before
					return l.Listing(t)["new"] == want
				})
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			t.Logf("from the save to the new list in the client's hands, with the default quiet period of 150 ms: median %v, most %v", took[len(took)/2], took[len(took)-1])
		})
	}
}
