package daemon

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestLoad lets the real program serve a branch of 200 tools to 64 clients, while one of its tools changes and the files are
// reloaded five times a second. No call may fail: a call runs to its end on the generation with which it began. Memory
// and goroutines stay what they were.
//
// CATALOGD_LOAD is how long: 3 s by default, thirty in `make load`. From ten seconds on the times of calls are asserted
// too: p99 at most 5 times p50, and of a quiet branch beside one that 64 clients flood, at most twice its p99 without
// them. Shorter runs only report them.
func TestLoad(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is found in /proc")
	}
	d, err := time.ParseDuration(cmp.Or(os.Getenv("CATALOGD_LOAD"), "3s"))
	if err != nil {
		t.Fatalf("CATALOGD_LOAD: %v", err)
	}
	l := startLoad(t)
	timed := d >= 10*time.Second

	l.run("warm", d/10, 64, "default", l.anyTool, nil)
	base := l.settled(func(held) bool { return true })
	begin := time.Now()
	all := l.run("reloads", d, 64, "default", l.anyTool, l.change)
	if timed {
		l.flat(begin, time.Now())
	}
	if rss := l.metrics()["process_resident_memory_bytes"] / (1 << 20); rss == 0 || rss > 768 {
		t.Errorf("%.0f MiB are resident, want at most 768", rss)
	}
	t.Logf("%.0f calls a second, %d reloads (%v)", float64(len(all))/d.Seconds(), l.written.Load(), l.reloads)
	if p50, p99 := percentile(all, 50), percentile(all, 99); timed && p99 > 5*p50 {
		t.Errorf("p99 %v is %.1f times p50 %v, want at most 5 times", p99, float64(p99)/float64(p50), p50)
	}
	if l.reloads["adopted"] == 0 {
		t.Errorf("no reload was adopted: %v", l.reloads)
	}
	for _, tool := range []string{"remote", "tool_000_00"} {
		one := func(int) string { return tool }
		quiet := l.run("alone "+tool, d/6, 1, "research", one, nil)
		beside := l.run("flood "+tool, d/6, 1, "research", one, func(ctx context.Context) { l.call(ctx, 64, "default", l.anyTool) })
		p, q := percentile(beside, 99), percentile(quiet, 99)
		t.Logf("p99 of %s on a quiet branch: %v alone, %v beside a flood of another branch, %.1f times", tool, q, p, float64(p)/float64(q))
		if timed && tool == "remote" && p > 2*q {
			t.Errorf("the flood of one branch takes the p99 of another from %v to %v, want at most twice", q, p)
		}
	}
	after := l.settled(func(h held) bool {
		return h.goroutines <= base.goroutines+200 && h.workers <= mostWorkers && h.children <= base.children && h.zombies == 0
	})
	t.Logf("held before %+v, after %+v", base, after)
}

// load is a daemon, and the client of its callers.
type load struct {
	*soak
	client *http.Client
	serial atomic.Int64
}

// remoteTime is what the tool named remote takes at its own server.
const remoteTime = 20 * time.Millisecond

func startLoad(t *testing.T) *load {
	t.Helper()
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(remoteTime)
		fmt.Fprint(w, "done")
	}))
	t.Cleanup(remote.Close)
	s := &soak{T: t, dir: harness.Starter(t), log: &daemonLog{}, ended: make(chan error, 1), reloads: map[string]int{}, badAnswers: map[string]int{}}
	harness.ManyTools(t, s.dir, 200, `jq: program: "{found: .city}"`)
	harness.WriteFile(t, filepath.Join(s.dir, "catalog/remote.cue"), fmt.Sprintf(`package catalog

tools: remote: {description: "A remote one.", effect: "read", tags: ["everyday"], binding: http: url: %q}
`, remote.URL+"/"))
	trust := filepath.Join(s.dir, "policy/trust/data.yaml")
	harness.WriteFile(t, trust, harness.ReadFile(t, trust)+fmt.Sprintf("  remote: {scheme: http, host: 127.0.0.1, port: %s, addresses: [127.0.0.0/8]}\n",
		remote.URL[strings.LastIndexByte(remote.URL, ':')+1:]))
	s.next()
	s.serve(harness.Catalogd(t))
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	t.Cleanup(transport.CloseIdleConnections)
	return &load{soak: s, client: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// anyTool is one of the 200 tools, each in its turn.
func (l *load) anyTool(n int) string { return fmt.Sprintf("tool_%03d_%02d", n/100%2, n%100) }

// run has n clients call for a time, beside what disturbs, and returns what their calls took.
func (l *load) run(name string, d time.Duration, n int, branch string, tool func(int) string, disturb func(context.Context)) []time.Duration {
	ctx, cancel := context.WithTimeout(l.Context(), d)
	defer cancel()
	var beside sync.WaitGroup
	if disturb != nil {
		beside.Go(func() { disturb(ctx) })
	}
	beside.Go(func() { l.watch(ctx) })
	took := l.call(ctx, n, branch, tool)
	beside.Wait()
	l.Logf("%-17s %7d calls of %2d clients, median %8v, p99 %8v, most %8v", name, len(took), n, percentile(took, 50), percentile(took, 99), percentile(took, 100))
	if len(took) == 0 {
		l.Errorf("%s: no call ended", name)
	}
	return took
}

// call has n clients call until ctx ends, and returns what their calls took. A call that has begun is let finish.
func (l *load) call(ctx context.Context, n int, branch string, tool func(int) string) (all []time.Duration) {
	var clients sync.WaitGroup
	var mu sync.Mutex
	for range n {
		clients.Go(func() {
			var took []time.Duration
			for ctx.Err() == nil {
				name, begin := tool(int(l.serial.Add(1))), time.Now()
				if status, body, err := l.one(branch, name); err != nil || status != http.StatusOK || strings.Contains(body, `"isError"`) || !strings.Contains(body, `"result"`) {
					l.fail("%s on %s: %d, %v: %s", name, branch, status, err, body)
					return
				}
				took = append(took, time.Since(begin))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	clients.Wait()
	return all
}

func (l *load) one(branch, tool string) (status int, body string, err error) {
	args := `{"city":"Lyon"}`
	if tool == "remote" {
		args = "{}"
	}
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args, harness.Modern)
	r, err := http.NewRequest(http.MethodPost, l.url+"/branches/"+branch+"/mcp", bytes.NewReader([]byte(message)))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", harness.Modern)
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", tool)
	resp, err := l.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// change edits a tool and has the daemon read the files, five times a second until ctx ends.
func (l *load) change(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		l.next()
		l.reload(http.StatusOK)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
