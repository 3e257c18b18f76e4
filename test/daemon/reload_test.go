package daemon

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// edits is how many edits reloadWhileCalling makes: 120, or what CATALOGD_RELOAD_EDITS says for a long run.
func edits(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("CATALOGD_RELOAD_EDITS"), "120"))
	if err != nil {
		t.Fatalf("CATALOGD_RELOAD_EDITS: %v", err)
	}
	return n
}

// reloadWhileCalling edits a catalog while eight clients of two branches call all the time. It keeps a model of
// what every branch must answer when: a call whose answer no generation explains that could have served it fails the
// test, and so does a list that is not the model's, a list_changed too many or too few, and anything that is left over.
func reloadWhileCalling(t *testing.T) {
	before := measure(t)
	dir := harness.Starter(t)
	w := newModel(t, dir)
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	w.Daemon = r
	for i := range 8 {
		w.clients = append(w.clients, harness.Connect(t, r.URL, []string{"default", "research"}[i%2], []string{harness.Modern, harness.Legacy}[i/4]))
	}
	w.begin(t)
	idle := measure(t)

	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	records := make([][]record, len(w.clients))
	for i, l := range w.clients {
		callers.Go(func() { records[i] = callAll(ctx, l, uint64(i)) })
	}
	n := edits(t)
	for i := range n {
		w.step(t, i, n)
		if t.Failed() {
			break
		}
	}
	stop()
	callers.Wait()
	t.Logf("%d edits: %v", n, w.count)
	w.checkCalls(t, slices.Concat(records...))
	w.compareLists(t, "at the end")
	slices.Sort(w.latency)
	if len(w.latency) > 0 {
		t.Logf("an edit is heard and listed by all clients of its branches (quiet period of 20 ms and the polling of this test included) after: median %v, 95%% %v, most %v",
			w.latency[len(w.latency)/2], w.latency[len(w.latency)*95/100], w.latency[len(w.latency)-1])
	}

	// What serves is as large as it was before the edits. Idle connections of the clients may differ.
	returns(t, "after the edits", footprint{idle.goroutines + 4*len(w.clients), idle.files + 4*len(w.clients), idle.children})
	for _, l := range w.clients {
		l.End()
	}
	r.End()
	returns(t, "after the end", before)
}

// record is one call as its client saw it.
type record struct {
	branch, tool, answer string
	from, to             time.Time
}

// callAll calls random tools until ctx ends.
func callAll(ctx context.Context, l *harness.Client, seed uint64) (all []record) {
	random := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		r := record{branch: l.Branch, tool: liveName(random.IntN(liveNames)), from: time.Now()}
		if random.IntN(20) == 0 {
			r.tool = "current_time"
		}
		r.answer = l.Answer(context.Background(), r.tool, nil)
		r.to = time.Now()
		all = append(all, r)
		time.Sleep(time.Duration(random.IntN(15)) * time.Millisecond)
	}
	return all
}
