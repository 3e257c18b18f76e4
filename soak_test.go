package catalogd_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
)

// soakUpstream makes the test binary the MCP server that the soak's catalog declares.
const soakUpstream = "-soak-upstream"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == soakUpstream {
		echoServer(os.Stdin, os.Stdout)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == childOfTests {
		os.Exit(catalogd.CompileWorker(os.Stdin, os.Stdout))
	}
	os.Exit(testsWithPrograms(m))
}

// testsWithPrograms runs the tests with a folder for the programs that they build.
func testsWithPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "catalogd-programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programsDir = dir
	return m.Run()
}

// echoServer is an MCP server of 2025-06-18 that answers every call with the arguments.
func echoServer(r io.Reader, w io.Writer) {
	for in := bufio.NewScanner(r); in.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
		case "tools/call":
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, m.Params.Arguments)
		}
		if _, err := fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return
		}
	}
}

// TestSoak lets the real program serve for a while, under everything that happens to a daemon at once: eight clients over
// HTTP and two over stdio that call all the time, edits of tools and policy, broken files, SIGKILL of upstream servers,
// clients that do all they can wrong, and at last a storm of 20 edits and SIGHUPs a second. A call of a good client may
// fail only where an edit or a kill explains it, and afterwards the daemon holds what it held before.
//
// CATALOGD_SOAK is how long: 20 s by default, a minute in `make test`, ten in `make soak`. From five minutes on the time
// that a good client waits and that an end takes is asserted, too; shorter runs, on machines that do other things
// besides, only report it. With GOFLAGS=-race the daemon has the race detector, and what it finds fails the test.
func TestSoak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found in /proc")
	}
	d, err := time.ParseDuration(cmp.Or(os.Getenv("CATALOGD_SOAK"), "20s"))
	if err != nil {
		t.Fatalf("CATALOGD_SOAK: %v", err)
	}
	before := childrenOf(os.Getpid())
	s := startSoak(t)
	s.long = d >= 5*time.Minute

	s.phase("warm", time.Second)
	s.reload(http.StatusOK)
	quiet := s.phase("quiet", d/5)
	base := s.settled(func(held) bool { return true })
	begin := time.Now()
	loud := s.phase("loud", d*3/5, s.edit, s.kill, s.annoy, s.annoy, s.annoy, s.annoy, s.annoy, s.annoy)
	s.phase("storm", d/5, s.storm)
	end := time.Now()
	s.finalEdit()

	if s.long {
		for kind, all := range loud {
			if p, q := percentile(all, 99), percentile(quiet[kind], 99); p > 3*q && kind != upstreamCall {
				t.Errorf("p99 of %s: %v, more than 3 times the %v of quiet times", kind, p, q)
			}
		}
	}
	s.flat(begin, end)
	slack := 4 * len(s.clients) // idle connections of the clients
	after := s.settled(func(h held) bool {
		return h.goroutines <= base.goroutines+slack && h.files <= base.files+slack && h.children <= base.children && h.zombies == 0
	})
	t.Logf("held before %+v, after %+v", base, after)
	s.end()
	if left := slices.DeleteFunc(childrenOf(os.Getpid()), func(pid int) bool { return slices.Contains(before, pid) }); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// soak is a daemon under load, and what is known of it.
type soak struct {
	*testing.T
	long     bool
	dir, url string
	daemon   *exec.Cmd
	ended    chan error // what the daemon's Wait says
	log      *complaints
	clients  []*soakClient

	// The model. live_tool answers its version: at least served, at most written. While hiding, default may not have it.
	written, served, hides atomic.Int64
	hiding                 atomic.Bool
	late                   atomic.Int64 // decisions that came too late

	mu       sync.Mutex
	kills    []time.Time
	failures int
	reloads  map[string]int // by outcome
	annoyed  map[string]int // by what was done and answered
	samples  []sample
}

// sample is the daemon's memory at one moment.
type sample struct {
	at        time.Time
	heap, rss float64
}

// held is what the daemon has that could leak.
type held struct{ goroutines, files, children, zombies int }

// startSoak builds the program, starts it on a catalog with a tool of each kind, and connects the good clients.
func startSoak(t *testing.T) *soak {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "catalogd")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/catalogd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	items := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	t.Cleanup(items.Close)
	s := &soak{T: t, dir: starterDir(t), log: &complaints{}, ended: make(chan error, 1), reloads: map[string]int{}, annoyed: map[string]int{}}
	write(t, filepath.Join(s.dir, "catalog/soak.cue"), fmt.Sprintf(`package catalog

servers: soak: {transport: stdio: {command: %q, args: [%q]}, prefix: "soak_"}

tools: soak_echo: {description: "Echo.", args: message!: string, effect: "read", tags: ["everyday"], binding: mcp: server: "soak"}
tools: item: {description: "An item.", args: id!: string, effect: "read", tags: ["everyday"], binding: http: url: %q}
tools: slow: {description: "Two seconds.", effect: "read", tags: ["everyday"], binding: exec: {command: "sleep", argv: ["2"]}}
`, self, soakUpstream, items.URL+"/items/{id}"))
	trust := filepath.Join(s.dir, "policy/trust/data.yaml")
	write(t, trust, read(t, trust)+fmt.Sprintf(`  soak: {command: [%q, %q], exact: true}
  sleep: {command: [sleep]}
  items: {scheme: http, host: 127.0.0.1, port: %s, addresses: [127.0.0.0/8]}
`, self, soakUpstream, items.URL[strings.LastIndexByte(items.URL, ':')+1:]))
	s.next()

	s.daemon = exec.Command(binary, "serve", s.dir, "--addr", "127.0.0.1:0", "--format", "json", "--state", filepath.Join(t.TempDir(), "state"))
	s.daemon.Stderr = s.log
	if err := s.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.daemon.Process.Kill() }) // or it has ended
	go func() { s.ended <- s.daemon.Wait() }()
	await(t, "the daemon to serve", func() bool {
		if s.url = s.log.url(); s.url == "" && len(s.ended) > 0 {
			t.Fatalf("the daemon does not start: %v\n%s", <-s.ended, strings.Join(s.log.lines, "\n"))
		}
		return s.url != ""
	})
	s.reload(http.StatusOK)
	s.served.Store(s.written.Load())

	for i := range 8 {
		branch, era := []string{"default", "research"}[i%2], []string{modernEra, legacyEra}[i/4]
		s.clients = append(s.clients, &soakClient{Client: connect(t, s.url, branch, era).Client, name: era + " of " + branch, branch: branch, http: true})
	}
	for _, era := range []string{modernEra, legacyEra} {
		s.clients = append(s.clients, s.stdio(binary, era))
	}
	return s
}

// stdio is a client with a `catalogd stdio` of its own, which reads the same files.
func (s *soak) stdio(binary, era string) *soakClient {
	s.Helper()
	cmd := exec.Command(binary, "stdio", "-C", s.dir, "--format", "json", "--state", filepath.Join(s.TempDir(), "state"))
	cmd.Stderr = s.log
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill() }) // or it has ended
	tr := transport.NewIO(out, in, io.NopCloser(strings.NewReader("")))
	c := &soakClient{Client: client.NewClient(tr, client.WithProtocolVersion(era)), name: era + " on stdio", branch: "default", process: cmd}
	if err := c.Start(context.Background()); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: era, ClientInfo: mcp.Implementation{Name: "soak", Version: "1"},
	}})
	if err != nil {
		s.Fatalf("%s: initialize: %v", c.name, err)
	}
	return c
}

// complaints is the log of the processes: it keeps the lines that speak of faults, and the address.
type complaints struct {
	mu    sync.Mutex
	rest  []byte
	base  string
	lines []string
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		c.rest = rest
		var m struct{ Level, Msg, URL string }
		if err := json.Unmarshal(line, &m); (err != nil || m.Level == slog.LevelError.String() && !strings.HasPrefix(m.Msg, "reload refused")) && len(c.lines) < 50 {
			c.lines = append(c.lines, string(line))
		}
		c.base = cmp.Or(c.base, m.URL)
	}
}

func (c *complaints) url() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base
}

// soakClient is a client that does everything right.
type soakClient struct {
	*client.Client
	name, branch string
	http         bool      // it is served by the daemon, whose reloads are confirmed
	process      *exec.Cmd // or by this process
}

// What good clients call.
const (
	jqCall, execCall, httpCall, upstreamCall, liveCall, listCall = "jq", "exec", "http", "upstream", "live", "list"
)

// phase lets every good client call for d, while each disturbance goes on, and returns how long the calls took by kind.
func (s *soak) phase(name string, d time.Duration, disturbances ...func(context.Context)) map[string][]time.Duration {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	took := make([]map[string][]time.Duration, len(s.clients))
	for i, c := range s.clients {
		all.Go(func() { took[i] = s.callAll(ctx, c) })
	}
	for _, disturb := range disturbances {
		all.Go(func() { disturb(ctx) })
	}
	all.Go(func() { s.watch(ctx) })
	all.Wait()
	total := map[string][]time.Duration{}
	for _, one := range took {
		for kind, durations := range one {
			total[kind] = append(total[kind], durations...)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(total)) {
		s.Logf("%-5s %-8s %6d calls, median %8v, p99 %8v, most %8v", name, kind, len(total[kind]),
			percentile(total[kind], 50), percentile(total[kind], 99), percentile(total[kind], 100))
	}
	return total
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*p/100].Round(10 * time.Microsecond)
}

// callAll calls one tool after the other until ctx ends. Its last call is let finish.
func (s *soak) callAll(ctx context.Context, c *soakClient) map[string][]time.Duration {
	took := map[string][]time.Duration{}
	for ; ctx.Err() == nil; time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) {
		kind := []string{jqCall, jqCall, jqCall, execCall, httpCall, upstreamCall, liveCall, liveCall, listCall}[rand.IntN(9)]
		word := strconv.Itoa(rand.IntN(1e6))
		served, hides, hiding := s.served.Load(), s.hides.Load(), s.hiding.Load()
		start := time.Now()
		var got string
		explained := true
		switch kind {
		case jqCall:
			got = c.answer("convert_temperature", map[string]any{"value": 212, "from": "fahrenheit"})
			explained = strings.Contains(got, `"value":100`)
		case execCall:
			got = c.answer("current_time", nil)
			_, err := time.Parse(time.RFC3339, strings.TrimSpace(got))
			explained = err == nil
		case httpCall:
			got = c.answer("item", map[string]any{"id": word})
			explained = got == "/items/"+word
		case upstreamCall:
			got = c.answer("soak_echo", map[string]any{"message": word})
			explained = got == fmt.Sprintf(`{"message":%q}`, word) || strings.HasPrefix(got, "failed: ") && s.killedSince(start)
		case liveCall:
			got = c.answer("live_tool", nil)
			version, err := strconv.ParseInt(got, 10, 64)
			explained = err == nil && version <= s.written.Load() && (version >= served || !c.http) ||
				got == absent && c.branch == "default" && (hiding || s.hiding.Load() || s.hides.Load() > hides || !c.http && hides > 0)
		case listCall:
			result, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
			explained = err == nil && slices.ContainsFunc(result.Tools, func(t mcp.Tool) bool { return t.Name == "current_time" })
			got = fmt.Sprint(result, err)
		}
		took[kind] = append(took[kind], time.Since(start))
		if !s.long && strings.Contains(got, "(policy_timeout)") {
			s.late.Add(1) // a policy that had no time to answer denies, and a busy machine has none
			continue
		}
		if !explained {
			s.fail("%s: the %s call of the client %s, begun %v ago with version %d served, answered %s, which nothing explains",
				time.Now().Format(time.StampMilli), kind, c.name, time.Since(start), served, got)
		}
	}
	return took
}

func (c *soakClient) answer(tool string, args any) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return (&listener{Client: c.Client}).answer(ctx, tool, args)
}

// fail reports a failure; after twenty it only counts.
func (s *soak) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures++; s.failures <= 20 {
		s.Errorf(format, args...)
	}
}

// killedSince reports whether an upstream server was killed in the time of a call or just before: it may have hit the new
// process, too, or the pause before it.
func (s *soak) killedSince(start time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kills) > 0 && s.kills[len(s.kills)-1].After(start.Add(-2*time.Second))
}

// kill ends one upstream server after the other with SIGKILL, those of the stdio processes included.
func (s *soak) kill(ctx context.Context) {
	for pause(ctx, 5*time.Second) {
		for _, pid := range childrenOf(os.Getpid()) {
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err != nil || !bytes.Contains(args, []byte(soakUpstream)) {
				continue
			}
			s.mu.Lock()
			s.kills = append(s.kills, time.Now())
			s.mu.Unlock()
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it has just ended
		}
	}
}

// pause sleeps; it returns false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// next writes the next version of the tool that changes.
func (s *soak) next() {
	v := s.written.Add(1)
	write(s, filepath.Join(s.dir, "catalog/live/live.cue"), "package catalog\n\n"+jqTool("live_tool", fmt.Sprintf("Version %d.", v), strconv.FormatInt(v, 10)))
}

// reload has the daemon look at the files, which must be answered with this status.
func (s *soak) reload(want int) {
	resp, err := http.Post(s.url+"/-/reload", "", nil)
	if err != nil {
		s.fail("reload: %v", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		s.fail("reload: %v, %s, want %d: %s", err, resp.Status, want, body)
	}
	var o struct{ Result string }
	_ = json.Unmarshal(body, &o) // what it is not is counted as ""
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reloads[o.Result]++
}

// edit changes the tool, breaks and mends files, and takes the tool from a branch by policy and gives it back. What a
// reload has answered holds from then on.
func (s *soak) edit(ctx context.Context) {
	data := filepath.Join(s.dir, accessFile)
	good := read(s, data)
	for i := 0; pause(ctx, time.Duration(300+rand.IntN(700))*time.Millisecond); i++ {
		switch i % 4 {
		case 0, 2:
			s.next()
			s.reload(http.StatusOK)
			s.served.Store(s.written.Load())
		case 1:
			s.hides.Add(1)
			s.hiding.Store(true)
			write(s, data, strings.Replace(good, "default:\n", "default:\n    deny: [live_tool]\n", 1))
			s.reload(http.StatusOK)
			pause(ctx, 300*time.Millisecond)
			write(s, data, good)
			s.reload(http.StatusOK)
			s.hiding.Store(false)
		case 3:
			name := filepath.Join(s.dir, []string{"catalog/broken.cue", "policy/broken.rego", "policy/broken/data.yaml"}[i/4%3])
			write(s, name, []string{"package catalog\n\ntools: {", "package broken\n\nx if", "x: ["}[i/4%3])
			s.reload(http.StatusUnprocessableEntity)
			pause(ctx, 300*time.Millisecond)
			if err := os.Remove(name); err != nil {
				s.fail("%v", err)
			}
			s.reload(http.StatusOK)
		}
	}
}

// storm saves a new version and sends SIGHUP 20 times a second.
func (s *soak) storm(ctx context.Context) {
	before := s.metrics()
	signals := 0
	for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; signals++ {
		s.next()
		if err := s.daemon.Process.Signal(syscall.SIGHUP); err != nil {
			s.fail("%v", err)
		}
		<-tick.C
	}
	after := s.metrics()
	var did []string
	for _, result := range []string{"adopted", "unchanged", "refused"} {
		name := fmt.Sprintf("catalogd_reloads_total{result=%q}", result)
		did = append(did, fmt.Sprintf("%v %s", after[name]-before[name], result))
	}
	s.Logf("%d edits with SIGHUP: %s", signals, strings.Join(did, ", "))
}

// finalEdit checks that after all that the newest files are served to every client.
func (s *soak) finalEdit() {
	s.next()
	s.reload(http.StatusOK)
	want := strconv.FormatInt(s.written.Load(), 10)
	for _, c := range s.clients {
		var got string
		await(s, "the last version for "+c.name, func() bool { got = c.answer("live_tool", nil); return got == want || c.http })
		if got != want {
			s.Errorf("at the end, the client %s is answered %s, want %s", c.name, got, want)
		}
	}
}

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
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		m := s.metrics()
		h = held{goroutines: int(m["go_goroutines"]), files: int(m["process_open_fds"])}
		h.children, h.zombies = len(childrenOf(s.daemon.Process.Pid)), zombies(s.daemon.Process.Pid)
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

// end ends the daemon with SIGTERM, while a call is in flight and every client listens, and the others by the end of
// their input.
func (s *soak) end() {
	inFlight := make(chan string, 1)
	go func() { inFlight <- s.clients[0].answer("slow", nil) }()
	time.Sleep(500 * time.Millisecond)
	start := time.Now()
	if err := s.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	select {
	case err := <-s.ended:
		took := time.Since(start)
		s.Logf("SIGTERM: ended after %v: %v", took.Round(time.Millisecond), err)
		if err != nil || s.long && took > 5*time.Second {
			s.Errorf("SIGTERM: ended after %v: %v", took, err)
		}
	case <-time.After(patience):
		s.Fatal("SIGTERM: the daemon goes on")
	}
	if got := <-inFlight; got != "" {
		s.Errorf("the call in flight: %s", got)
	}
	for _, c := range s.clients {
		c.Close() // its daemon is gone, or goes by this
		if c.process != nil {
			if err := c.process.Wait(); err != nil {
				s.Errorf("%s: %v", c.name, err)
			}
		}
	}
	s.Logf("%d kills; reloads asked for: %v; %d late decisions", len(s.kills), s.reloads, s.late.Load())
	for _, what := range slices.Sorted(maps.Keys(s.annoyed)) {
		s.Logf("bad clients: %-30s %d", what, s.annoyed[what])
	}
	for _, line := range s.log.lines {
		s.Errorf("in the log: %s", line)
	}
	if s.failures > 20 {
		s.Errorf("%d failures in all", s.failures)
	}
}

// annoy is a bad client, which does one thing after the other.
func (s *soak) annoy(ctx context.Context) {
	bad := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for pause(ctx, time.Duration(rand.IntN(100))*time.Millisecond) {
		kind := slices.Sorted(maps.Keys(annoyances))[rand.IntN(len(annoyances))]
		answer := annoyances[kind](ctx, s.url, bad)
		if !strings.Contains(" 400 403 404 405 408 413 415 503 closed ", " "+answer+" ") {
			s.fail("%s was answered %s", kind, answer)
		}
		s.mu.Lock()
		s.annoyed[kind+": "+answer]++
		s.mu.Unlock()
	}
}

// annoyances are what bad clients do. Each returns the status that it got, or "closed".
var annoyances = map[string]func(ctx context.Context, url string, c *http.Client) string{
	"a slow body": func(ctx context.Context, url string, _ *http.Client) string {
		return speak(url, func(conn net.Conn) {
			fmt.Fprint(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
			for range 20 {
				if _, err := conn.Write([]byte(" ")); err != nil || !pause(ctx, 50*time.Millisecond) {
					return
				}
			}
		})
	},
	"noise": func(_ context.Context, url string, _ *http.Client) string {
		return speak(url, func(conn net.Conn) {
			noise := make([]byte, 512)
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			_, _ = conn.Write(append(noise, "\r\n\r\n"...)) // the daemon may hang up
		})
	},
	"broken JSON": func(_ context.Context, url string, c *http.Client) string {
		body := []byte(callBody("convert_temperature"))
		return post(c, url+"/mcp", bytes.NewReader(body[:rand.IntN(len(body))]))
	},
	"a body of 5 MiB": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/mcp", strings.NewReader(strings.Repeat(" ", 5<<20)))
	},
	"a forged session": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/branches/research/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"current_time"}}`),
			"Mcp-Session-Id", fmt.Sprintf("%032x", rand.Uint64()))
	},
	"a foreign origin": func(_ context.Context, url string, c *http.Client) string {
		return post(c, url+"/mcp", strings.NewReader(callBody("slow")), append(callHeader("slow"), "Origin", "http://evil.example.com")...)
	},
	"a call that is dropped": func(ctx context.Context, url string, c *http.Client) string {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(20+rand.IntN(200))*time.Millisecond)
		defer cancel()
		return send(ctx, c, http.MethodPost, url+"/mcp", strings.NewReader(callBody("slow")), callHeader("slow")...)
	},
	"an idle stream": func(ctx context.Context, url string, c *http.Client) string {
		req, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"idle","version":"1"}}}`))
		if err != nil {
			return err.Error()
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := c.Do(req)
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		session := resp.Header.Get("Mcp-Session-Id")
		held, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		answer := send(held, c, http.MethodGet, url+"/mcp", nil, "Mcp-Session-Id", session, "Accept", "text/event-stream")
		if rand.IntN(8) > 0 { // the others are left to be swept
			if got := send(context.Background(), c, http.MethodDelete, url+"/mcp", nil, "Mcp-Session-Id", session); !strings.HasPrefix(got, "20") {
				return got
			}
		}
		return answer
	},
}

// callBody is a call in the modern era, to be sent with callHeader.
func callBody(tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, modernEra)
}

func callHeader(tool string) []string {
	return []string{"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", tool, "Accept", "application/json, text/event-stream"}
}

func post(c *http.Client, url string, body io.Reader, header ...string) string {
	return send(context.Background(), c, http.MethodPost, url, body, header...)
}

// send sends a request and reads the answer until ctx ends.
func send(ctx context.Context, c *http.Client, method, url string, body io.Reader, header ...string) string {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "closed"
	}
	return strconv.Itoa(resp.StatusCode)
}

// speak opens a connection, lets say write to it, and reads the status for a moment.
func speak(url string, say func(net.Conn)) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	say(conn)
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a TCP connection has deadlines
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	return strconv.Itoa(resp.StatusCode)
}
