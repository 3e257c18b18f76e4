package daemon

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// sample is the daemon's memory at one moment.
type sample struct {
	at        time.Time
	heap, rss float64
}

// held is what the daemon has that could leak. The workers, which compile, check and run jq programs, are not among the
// children: how many there are depends on how many calls came at once.
type held struct{ goroutines, files, workers, children, zombies int }

// mostWorkers is one that compiles, two that check, and four that run jq programs (worker.CheckerConfig,
// worker.ProgramRunnerConfig).
const mostWorkers = 1 + 2 + 4

// metrics are the values that the daemon shows.
func (s *soak) metrics() map[string]float64 {
	values := map[string]float64{}
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.fail("metrics: %v", err)
		return values
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
			values[name], _ = strconv.ParseFloat(value, 64) // zero where a name has spaces; none that is used here has
		}
	}
	return values
}

// watch samples the memory until ctx ends.
func (s *soak) watch(ctx context.Context) {
	for pause(ctx, 250*time.Millisecond) {
		m := s.metrics()
		s.mu.Lock()
		s.samples = append(s.samples, sample{time.Now(), m["go_memstats_heap_alloc_bytes"], m["process_resident_memory_bytes"]})
		s.mu.Unlock()
	}
}

// flat checks that the memory in the last third of a time is that of the first third: its live heap, which is what the
// heap shrinks to, and what the process has of the machine.
func (s *soak) flat(begin, end time.Time) {
	const mib = 1 << 20
	third := end.Sub(begin) / 3
	of := func(from, to time.Time) (live, most float64) {
		for _, x := range s.samples {
			if x.at.Before(from) || x.at.After(to) {
				continue
			}
			if live == 0 || x.heap < live {
				live = x.heap
			}
			most = max(most, x.rss)
		}
		return live / mib, most / mib
	}
	liveFirst, mostFirst := of(begin, begin.Add(third))
	liveLast, mostLast := of(end.Add(-third), end)
	s.Logf("live heap %.1f MiB in the first third, %.1f MiB in the last; resident at most %.0f and %.0f MiB", liveFirst, liveLast, mostFirst, mostLast)
	if liveLast > 1.5*liveFirst+16 || mostLast > 1.5*mostFirst+64 {
		s.Error("the memory grows")
	}
}

// settled waits until what the daemon holds is enough, for as long as the test's patience lasts, and returns it.
func (s *soak) settled(enough func(held) bool) (h held) {
	for end := time.Now().Add(harness.Timeout); ; time.Sleep(100 * time.Millisecond) {
		m := s.metrics()
		h = held{goroutines: int(m["go_goroutines"]), files: int(m["process_open_fds"])}
		for _, pid := range harness.Children(s.daemon.Process.Pid) {
			line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			switch {
			case err != nil: // it has just ended
			case bytes.Contains(line, []byte("\x00compile-worker\x00")):
				h.workers++
			default:
				h.children++
			}
		}
		h.zombies = zombies(s.daemon.Process.Pid)
		if h.goroutines == 0 || h.files == 0 {
			s.Fatal("/metrics does not show goroutines and descriptors")
		}
		if enough(h) {
			return h
		}
		if time.Now().After(end) {
			s.Errorf("the daemon keeps %+v", h)
			return h
		}
	}
}

// zombies counts the dead children that a process has not waited for.
func zombies(pid int) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if fields[0] == "Z" && fields[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}
