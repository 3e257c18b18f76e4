package intent

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/registry"
)

// live stages an intent of about the usual size, begins it and ends it: the three commits of a life.
func live(tb testing.TB, s *Store, caller, n int) {
	tb.Helper()
	ctx := context.Background()
	in, _, err := s.Stage(ctx, Intent{
		Branch: "default", Tool: "orders.create", Principal: "alice", State: Staged,
		Arguments: json.RawMessage(fmt.Sprintf(`{"caller":%d,"n":%d,"note":%q}`, caller, n, strings.Repeat("x", 100))),
		Digest:    fmt.Sprintf("sha256:%032d%032d", caller, n), Fingerprint: "sha256:" + strings.Repeat("1", 64),
		Policy: "sha256:" + strings.Repeat("2", 64), Generation: "sha256:" + strings.Repeat("3", 64),
	})
	if err == nil {
		err = s.Change(ctx, in.ID, Staged, Change{Steps: []Step{{State: Released}, {State: Attempted}}})
	}
	if err == nil {
		err = s.Change(ctx, in.ID, Attempted, Change{Steps: []Step{{State: Succeeded}}, Outcome: &Outcome{
			Result: &registry.Result{Content: []json.RawMessage{registry.Text("order 17 was made")}}}})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkLives measures whole lives, with the time of an fsync of the same disk beside it.
func BenchmarkLives(b *testing.B) {
	for _, d := range []Durability{Power, Process} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", d, callers), func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "intents")
				s, err := Open(context.Background(), Config{Dir: dir, Durability: d})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				before := fsyncTime(b, dir)
				b.ReportAllocs()
				b.ResetTimer()
				start, used := time.Now(), processor(b)
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for n := c; n < b.N; n += callers {
							live(b, s, c, n)
						}
					})
				}
				wg.Wait()
				rate := float64(b.N) / time.Since(start).Seconds()
				used = processor(b) - used
				b.StopTimer()
				t := (before + fsyncTime(b, dir)) / 2
				b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/life")
				b.ReportMetric(rate, "lives/s")
				b.ReportMetric(float64(t.Microseconds()), "fsync-µs")
				b.ReportMetric(rate*t.Seconds(), "lives·t")
			})
		}
	}
}

// BenchmarkTwo measures whole lives of two owners of one store together, with eight callers each.
func BenchmarkTwo(b *testing.B) {
	for _, d := range []Durability{Power, Process} {
		b.Run(string(d), func(b *testing.B) {
			dir := newDir(b)
			start := time.Now()
			var wg sync.WaitGroup
			var lives [2]int
			left := make(chan int, b.N)
			for n := range b.N {
				left <- n
			}
			close(left)
			for i := range lives {
				s := open(b, dir, func(c *Config) { c.Durability = d })
				for c := range 8 {
					wg.Go(func() {
						for n := range left {
							live(b, s, c, n)
							if c == 0 {
								lives[i]++
							}
						}
					})
				}
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "lives/s")
			b.ReportMetric(float64(min(lives[0], lives[1]))/float64(max(1, lives[0]+lives[1])), "share-of-the-slower")
		})
	}
}

// processor is the processor time that this process has used.
func processor(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fsyncTime is the median time that the disk takes to have 4 KiB appended to a file.
func fsyncTime(tb testing.TB, dir string) time.Duration {
	tb.Helper()
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		tb.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	times := make([]time.Duration, 101)
	for i := range times {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			tb.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			tb.Fatal(err)
		}
		times[i] = time.Since(start)
	}
	for i := range times {
		for j := i; j > 0 && times[j] < times[j-1]; j-- {
			times[j], times[j-1] = times[j-1], times[j]
		}
	}
	return times[len(times)/2]
}

// many makes a store with n succeeded intents.
func many(tb testing.TB, dir string, n int) {
	tb.Helper()
	s, err := Open(context.Background(), Config{Dir: dir, Durability: Process})
	if err != nil {
		tb.Fatal(err)
	}
	live(tb, s, 0, 0)
	text := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO intents SELECT seq + i, state, scope, randomblob(16), owner, staged, ended, expires, attempts, handed, repeatable, digest || i, key,
			credential, print, policy, generation, approval, history, code, message, result_bytes, result_digest, arguments, result, session
		FROM n, (SELECT * FROM intents WHERE seq = 1)`
	for _, q := range []func() (sql.Result, error){
		func() (sql.Result, error) { return s.conn.ExecContext(context.Background(), text, n-1) },
		func() (sql.Result, error) {
			return s.conn.ExecContext(context.Background(), "UPDATE totals SET n6 = ?", n)
		},
	} {
		if _, err := q(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// resident is the process's memory in MiB, after what Go can give back is given back.
func resident(tb testing.TB) float64 {
	tb.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Skip("no /proc/self/status: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kib float64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				tb.Fatal(err)
			}
			return kib / 1024
		}
	}
	tb.Fatal("no VmRSS")
	return 0
}

// BenchmarkMillion opens a store with 1,000,000 ended intents, and then uses it.
func BenchmarkMillion(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "intents")
	many(b, dir, 1_000_000)
	before := resident(b)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s, err := Open(context.Background(), Config{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Recover(context.Background()); err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s, err := Open(context.Background(), Config{Dir: dir, Durability: Process})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Run("live", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			live(b, s, 1, n)
		}
		for _, f := range []Filter{{}, {Principal: "alice"}, {States: []State{Succeeded}}} {
			if _, err := s.List(context.Background(), f); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(resident(b)-before, "MiB")
	})
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Counts(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.List(context.Background(), Filter{Principal: "alice", Limit: 50}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
