package upstream_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/registry"
)

// A server that says without end that its tools changed is asked for them less and less often as long as they
// have not, is read no faster than five thousand times a second, answers its calls, and is named.
func TestEndlessListChanged(t *testing.T) {
	t.Parallel()
	s := stdioServer(t, "floods-changes")
	s.Discover = &registry.Discover{}
	asked := make(chan time.Time, 1000)
	const shortest = 20 * time.Millisecond
	pool, set := openWith(t, upstream.Config{
		Logger: slog.New(slog.DiscardHandler), Relist: shortest,
		Watch: upstream.Watch{
			Offered: func(registry.Server, upstream.Offer) { asked <- time.Now() },
			Admit:   func(registry.Server, string) error { return nil },
		},
	}, s, trust.Terms{})
	begun := time.Now()
	text(t, set, "changes", `{}`)
	eventually(t, "the server to be named", func() bool {
		return strings.Contains(pool.Status()[0].Notice, "again and again") && strings.Contains(pool.Status()[0].Notice, "asked once in 240ms")
	})
	first := <-asked
	times := len(asked)
	took := time.Since(first)
	// The pauses are 20, 40, 80, 160, 240 ms and so on; twice as many questions as fit into that are too
	// many.
	if most := 2 * (5 + int(took/(12*shortest))); times > most {
		t.Errorf("it was asked %d times in %s, want at most %d", times, took, most)
	}
	n, err := strconv.Atoi(text(t, set, "changes", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	// What is read at once, what is read since, and what a pipe holds of lines that long.
	if most := 10_000 + int(time.Since(begun).Seconds()*5000) + 2*(128<<10)/60; n > most {
		t.Errorf("%d messages were read in %s, want at most %d", n, time.Since(begun), most)
	}
}
