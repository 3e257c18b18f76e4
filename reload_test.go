package catalogd_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// The two eras of MCP that clients speak here.
const (
	modernEra = "2026-07-28"
	legacyEra = "2025-06-18"
)

// patience bounds every wait for something that must happen. Nothing is asserted about how long it takes.
const patience = 30 * time.Second

// starterDir is a copy of the starter catalog in a folder of its own.
func starterDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// running is a catalog that watches its files and serves on a loopback port.
type running struct {
	*catalogd.Catalog
	dir, url string
	tags     []string
	log      *journal
	end      func()
}

// run opens the catalog in cfg.Dir, and watches and serves it until the test ends or end is called.
func run(t testing.TB, cfg catalogd.Config) *running {
	t.Helper()
	if cfg.Timing.Quiet == 0 {
		cfg.Timing.Quiet = 20 * time.Millisecond
	}
	if cfg.Timing.Poll == 0 {
		cfg.Timing.Poll = time.Second
	}
	// The machine that runs the tests may be busy, and a decision that is late is a denial.
	cfg.PolicyDeadline = 10 * time.Second
	r := &running{dir: cfg.Dir, tags: cfg.Tags, log: &journal{}}
	cfg.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	c, err := catalogd.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Catalog = c
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	parts.Go(func() {
		if err := c.Serve(ctx, ln); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	r.end = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		c.Close()
	})
	t.Cleanup(r.end)
	return r
}

// digest is what names the files as they are now.
func (r *running) digest(t testing.TB) string {
	t.Helper()
	snap, problems := loader.Dir{Root: r.dir, Tags: r.tags}.Snapshot(t.Context())
	if snap == nil {
		t.Fatal(problems.Err())
	}
	return snap.Digest()
}

// settled waits until the files as they are now are served or refused, and says which.
func (r *running) settled(t testing.TB) (served bool) {
	t.Helper()
	digest := r.digest(t)
	await(t, "the files to be served or refused", func() bool {
		s := r.Status()
		served = s.Failed == nil && s.Generation.ID == digest
		return served || s.Failed != nil && s.Failed.Digest == digest
	})
	return served
}

// await polls until done, for as long as the test's patience lasts.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// journal keeps a log's lines.
type journal struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

// entry is what the tests look at in a line of the log.
type entry struct {
	Msg, Generation string
	Changed         []string
}

// adoptions are the generations that the log says were adopted, in order.
func (j *journal) adoptions(t testing.TB) (all []entry) {
	t.Helper()
	for line := range strings.Lines(j.String()) {
		if !strings.Contains(line, `"generation adopted"`) {
			continue
		}
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// listener is an MCP client of one branch that counts the list_changed it hears.
type listener struct {
	*client.Client
	era, branch string
	heard       atomic.Int64
	close       func()
}

func (l *listener) String() string { return l.era + " client of " + l.branch }

// connect makes a client over HTTP that listens for list_changed. It ends with the test or with close.
func connect(t testing.TB, url, branch, era string) *listener {
	t.Helper()
	options := []transport.StreamableHTTPCOption{transport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
	if era != modernEra {
		//lint:ignore SA1019 the older eras are what is tested
		options = append(options, transport.WithContinuousListening())
	}
	tr, err := transport.NewStreamableHTTP(url+"/branches/"+branch+"/mcp", options...)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Client: client.NewClient(tr, client.WithProtocolVersion(era)), era: era, branch: branch}
	l.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == mcp.MethodNotificationToolsListChanged {
			l.heard.Add(1)
		}
	})
	ctx := context.Background()
	if err := l.Start(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = l.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: era, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}})
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if l.ProtocolVersion() != era {
		t.Fatalf("speaks %s, want %s", l.ProtocolVersion(), era)
	}
	stop := func() {}
	if era == modernEra {
		stop, err = l.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	l.close = sync.OnceFunc(func() {
		stop()
		l.Client.Close()
	})
	t.Cleanup(l.close)
	return l
}

// listing is what a client is shown: descriptions by name.
func (l *listener) listing(t testing.TB) map[string]string {
	t.Helper()
	result, err := l.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatalf("%v: list: %v", l, err)
	}
	shown := map[string]string{}
	for _, tool := range result.Tools {
		shown[tool.Name] = tool.Description
	}
	return shown
}

// answer calls a tool and returns its text, or a word for its failure.
func (l *listener) answer(ctx context.Context, tool string, args any) string {
	result, err := l.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
	switch {
	case err != nil && strings.Contains(err.Error(), fmt.Sprintf("unknown tool %q", tool)):
		return absent
	case err != nil:
		return "error: " + err.Error()
	}
	text := contentText(result)
	if result.IsError {
		return "failed: " + text
	}
	return text
}

func contentText(result *mcp.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		if text, ok := c.(mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// absent is the answer of a tool that a branch doesn't have.
const absent = "absent"

// footprint is what a process holds that could leak.
type footprint struct{ goroutines, files, children int }

func measure(t testing.TB) footprint {
	t.Helper()
	f := footprint{goroutines: runtime.NumGoroutine()}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.files = len(fds)
	}
	f.children = len(childrenOf(os.Getpid()))
	return f
}

// childrenOf are the live processes below a process, their own children included; nothing where there is no /proc.
func childrenOf(pid int) (all []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	below := map[int][]int{}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid: the name may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		child, err1 := strconv.Atoi(strings.Split(stat, "/")[2])
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil && fields[0] != "Z" {
			below[parent] = append(below[parent], child)
		}
	}
	for queue := below[pid]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, below[queue[0]]...)
	}
	return all
}

// returns waits until the process holds no more than it did.
func returns(t testing.TB, when string, want footprint) {
	t.Helper()
	var got footprint
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got = measure(t)
		if got.goroutines <= want.goroutines && got.files <= want.files && got.children <= want.children {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	t.Errorf("%s: %+v is held, want at most %+v\n%s", when, got, want, stacks)
}

// write replaces a file in one step, as most editors do.
func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".swp")
	if err := os.WriteFile(next, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
}

// read is a file's content.
func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// edits is how many edits reloadWhileCalling makes: 200, or what CATALOGD_RELOAD_EDITS says for a long run.
func edits(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("CATALOGD_RELOAD_EDITS"), "200"))
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
	dir := starterDir(t)
	w := newWorld(t, dir)
	r := run(t, catalogd.Config{Dir: dir})
	w.running = r
	for i := range 8 {
		w.clients = append(w.clients, connect(t, r.url, []string{"default", "research"}[i%2], []string{modernEra, legacyEra}[i/4]))
	}
	w.listening(t)
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
	w.judge(t, slices.Concat(records...))
	w.compareLists(t, "at the end")
	slices.Sort(w.latency)
	if len(w.latency) > 0 {
		t.Logf("an edit is heard and listed by all clients of its branches (quiet period of 20 ms and the polling of this test included) after: median %v, 95%% %v, most %v",
			w.latency[len(w.latency)/2], w.latency[len(w.latency)*95/100], w.latency[len(w.latency)-1])
	}

	// What serves is as large as it was before the edits. Idle connections of the clients may differ.
	returns(t, "after the edits", footprint{idle.goroutines + 4*len(w.clients), idle.files + 4*len(w.clients), idle.children})
	for _, l := range w.clients {
		l.close()
	}
	r.end()
	returns(t, "after the end", before)
}

// record is one call as its client saw it.
type record struct {
	branch, tool, answer string
	from, to             time.Time
}

// callAll calls random tools until ctx ends.
func callAll(ctx context.Context, l *listener, seed uint64) (all []record) {
	random := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		r := record{branch: l.branch, tool: liveName(random.IntN(liveNames)), from: time.Now()}
		if random.IntN(20) == 0 {
			r.tool = "current_time"
		}
		r.answer = l.answer(context.Background(), r.tool, nil)
		r.to = time.Now()
		all = append(all, r)
		time.Sleep(time.Duration(random.IntN(15)) * time.Millisecond)
	}
	return all
}

// liveNames is how many tools the edits make and unmake.
const liveNames = 12

func liveName(i int) string { return fmt.Sprintf("live_%02d", i) }

// liveTool is a tool that the edits change. It answers its version.
type liveTool struct {
	version     int
	description string
	tags        []string
}

func (l liveTool) cue(name string) string {
	return fmt.Sprintf("tools: %s: {\n\tdescription: %q\n\teffect: \"read\"\n\ttags: [%s]\n\tbinding: jq: program: \"\\\"v%d\\\"\"\n}\n",
		name, l.description, quoted(l.tags), l.version)
}

func quoted(words []string) string {
	var q []string
	for _, w := range words {
		q = append(q, strconv.Quote(w))
	}
	return strings.Join(q, ", ")
}

// span is a time in which a tool could answer in one way.
type span struct {
	answer   string
	from, to time.Time // to is zero while it lasts
}

// world is the model: what stands in the files, what must be served of it, and what could be answered when.
type world struct {
	*running
	clients []*listener
	random  *rand.Rand
	fixed   map[string]map[string]string // branch -> what it shows of the starter catalog

	files  map[string]map[string]liveTool // file -> its tools
	deny   map[string][]string            // branch -> names that the policy data deny
	broken map[string]string              // file -> its last good content; broken now
	access string                         // the starter's access data

	spans   map[string][]span            // branch/tool
	shown   map[string]map[string]string // branch -> what its list must show now
	heard   map[*listener]int64          // what each client must have heard by now
	seen    int                          // adoptions in the log that are accounted for
	version int
	latency []time.Duration
	count   map[string]int
}

const accessFile = "policy/access/data.yaml"

func newWorld(t *testing.T, dir string) *world {
	w := &world{
		random: rand.New(rand.NewPCG(2, 3)),
		files:  map[string]map[string]liveTool{},
		deny:   map[string][]string{}, broken: map[string]string{}, access: read(t, filepath.Join(dir, accessFile)),
		spans: map[string][]span{}, heard: map[*listener]int64{}, count: map[string]int{},
	}
	// One file beside the starter's, one in a package of its own, and one two levels down.
	for i, file := range []string{"catalog/live.cue", "catalog/one/live.cue", "catalog/two/deep/live.cue"} {
		w.files[file] = map[string]liveTool{}
		for j := range liveNames / 4 {
			w.files[file][liveName(i*liveNames/4+j)] = w.newTool()
		}
		write(t, filepath.Join(dir, file), w.cue(file))
	}
	return w
}

// newTool is a tool that default, research, both or none of them shows.
func (w *world) newTool() liveTool {
	w.version++
	tags := [][]string{{"everyday"}, {"everyday", "numbers"}, {"everyday", "text"}, {"research"}, {"text"}}[w.random.IntN(5)]
	return liveTool{w.version, fmt.Sprintf("Live since %d.", w.version), tags}
}

func (w *world) cue(file string) string {
	text := "package catalog\n\n"
	for _, name := range slices.Sorted(maps.Keys(w.files[file])) {
		text += w.files[file][name].cue(name)
	}
	return text
}

func (w *world) accessData() string {
	text := "branches:\n"
	for _, branch := range []string{"default", "research"} {
		text += fmt.Sprintf("  %s:\n    tools: [\"*\"]\n    deny: [%s]\n", branch, quoted(w.deny[branch]))
	}
	return text + "hide: []\n"
}

// visible is what the files as they stand would show to each branch; the live tools' versions with it.
func (w *world) visible() (shown map[string]map[string]string, answers map[string]string) {
	shown, answers = map[string]map[string]string{}, map[string]string{}
	for _, branch := range []string{"default", "research"} {
		shown[branch] = maps.Clone(w.fixed[branch])
		for _, tools := range w.files {
			for name, l := range tools {
				admitted := slices.Contains(l.tags, "everyday")
				if branch == "research" {
					admitted = !slices.Contains(l.tags, "text")
				}
				if admitted && !slices.Contains(w.deny[branch], name) {
					shown[branch][name] = l.description
					answers[branch+"/"+name] = fmt.Sprintf("v%d", l.version)
				}
			}
		}
	}
	return shown, answers
}

// listening waits until every client hears what it must, and starts the model from there.
func (w *world) listening(t *testing.T) {
	w.fixed = map[string]map[string]string{}
	for _, l := range w.clients {
		shown := l.listing(t)
		maps.DeleteFunc(shown, func(name, _ string) bool { return strings.HasPrefix(name, "live_") })
		w.fixed[l.branch] = shown
	}
	file := filepath.Join(w.dir, "catalog/warm.cue")
	await(t, "every client to listen", func() bool {
		before := map[*listener]int64{}
		for _, l := range w.clients {
			before[l] = l.heard.Load()
		}
		w.version++
		write(t, file, "package catalog\n\n"+liveTool{w.version, fmt.Sprintf("Warm %d.", w.version), []string{"everyday"}}.cue("warm"))
		w.settled(t)
		time.Sleep(200 * time.Millisecond)
		return !slices.ContainsFunc(w.clients, func(l *listener) bool { return l.heard.Load() == before[l] })
	})
	for _, l := range w.clients {
		w.heard[l] = l.heard.Load()
		w.fixed[l.branch]["warm"] = fmt.Sprintf("Warm %d.", w.version)
	}
	w.seen = len(w.log.adoptions(t))
	w.shown, _ = w.visible()
	w.open(time.Now())
	w.compareLists(t, "before the first edit")
}

// open notes that from now on calls may be answered as the files stand.
func (w *world) open(from time.Time) {
	_, answers := w.visible()
	for _, branch := range []string{"default", "research"} {
		for i := range liveNames {
			key := branch + "/" + liveName(i)
			w.may(key, cmp.Or(answers[key], absent), from)
		}
	}
}

func (w *world) may(key, answer string, from time.Time) {
	spans := w.spans[key]
	if !slices.ContainsFunc(spans, func(s span) bool { return s.to.IsZero() && s.answer == answer }) {
		w.spans[key] = append(spans, span{answer: answer, from: from})
	}
}

// settle notes that only what is served now can be answered from here on.
func (w *world) settle(served map[string]string) {
	now := time.Now()
	for key, spans := range w.spans {
		for i, s := range spans {
			if s.to.IsZero() && s.answer != cmp.Or(served[key], absent) {
				spans[i].to = now
			}
		}
	}
}

// judge holds every call against the model.
func (w *world) judge(t *testing.T, records []record) {
	answers := map[string]int{}
	for _, r := range records {
		answers[strings.TrimRight(r.answer, "0123456789")]++
		if r.tool == "current_time" {
			if _, err := time.Parse(time.RFC3339, strings.TrimSpace(r.answer)); err != nil {
				t.Errorf("%s through %s: %s", r.tool, r.branch, r.answer)
			}
			continue
		}
		explained := slices.ContainsFunc(w.spans[r.branch+"/"+r.tool], func(s span) bool {
			return s.answer == r.answer && !s.from.After(r.to) && (s.to.IsZero() || !s.to.Before(r.from))
		})
		if !explained {
			t.Errorf("%s through %s answered %q, which no edit explains: %v to %v of %v", r.tool, r.branch, r.answer, r.from, r.to, w.spans[r.branch+"/"+r.tool])
		}
	}
	t.Logf("%d calls: %d answered by a live tool, %d for one that is not there", len(records), answers["v"], answers[absent])
	if answers["v"] == 0 || answers[absent] == 0 {
		t.Error("the calls met only one kind of answer")
	}
}

func (w *world) compareLists(t *testing.T, when string) {
	t.Helper()
	for _, l := range w.clients {
		if got := l.listing(t); !maps.Equal(got, w.shown[l.branch]) {
			t.Errorf("%s, the %v lists\n%v, want\n%v", when, l, got, w.shown[l.branch])
		}
	}
}

// save writes a file in one of the ways in which editors do, the two that are not one step included.
func (w *world) save(t *testing.T, file, content string) {
	t.Helper()
	name := filepath.Join(w.dir, file)
	w.open(time.Now())
	how := w.random.IntN(4)
	if how >= 2 {
		// Between its two steps the file is empty or gone, which a snapshot may see.
		for key := range w.spans {
			if tools, ok := w.files[file]; !ok || tools[key[strings.LastIndexByte(key, '/')+1:]].version > 0 {
				w.may(key, absent, time.Now())
			}
		}
	}
	switch how {
	default:
		write(t, name, content)
	case 2:
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	case 3:
		if err := os.Rename(name, name+"~"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name + "~"); err != nil {
			t.Fatal(err)
		}
	}
}

// step makes one edit, or a few at once, and waits until it is served or refused.
func (w *world) step(t *testing.T, i, n int) {
	t.Helper()
	count := 1
	if w.random.IntN(10) == 0 {
		count = 4
	}
	var did []string
	for range count {
		did = append(did, w.edit(t, i == n-1))
	}
	what := fmt.Sprintf("edit %d (%s)", i, strings.Join(did, ", "))
	wrote := time.Now()
	served := w.settled(t)
	if served != (len(w.broken) == 0) {
		t.Fatalf("%s: served %v with these files broken: %v; %+v", what, served, slices.Collect(maps.Keys(w.broken)), w.Status().Failed)
	}
	if served {
		w.adopted(t, what, count)
		w.latency = append(w.latency, time.Since(wrote))
		w.compareLists(t, "after "+what)
	} else {
		w.refused(t, what)
	}
}

// adopted checks what clients are told of the files as they stand, and settles the model.
func (w *world) adopted(t *testing.T, what string, count int) {
	t.Helper()
	shown, answers := w.visible()
	var changed []string
	for _, branch := range []string{"default", "research"} {
		if !maps.Equal(shown[branch], w.shown[branch]) {
			changed = append(changed, branch)
		}
	}
	w.shown = shown
	var adoptions []entry
	await(t, "the log line", func() bool {
		adoptions = w.log.adoptions(t)
		return len(adoptions) > 0 && adoptions[len(adoptions)-1].Generation == w.Status().Generation.ID
	})
	if news := adoptions[w.seen:]; len(news) == 1 && count == 1 && !slices.Equal(news[0].Changed, changed) {
		t.Errorf("%s: the log says that %v changed, want %v", what, news[0].Changed, changed)
	}
	for _, a := range adoptions[w.seen:] {
		for _, l := range w.clients {
			if slices.Contains(a.Changed, l.branch) {
				w.heard[l]++
			}
		}
	}
	w.seen = len(adoptions)
	for _, l := range w.clients {
		await(t, fmt.Sprintf("the %v to hear of %s", l, what), func() bool { return l.heard.Load() >= w.heard[l] })
	}
	w.settle(answers)
	w.silence(t, what)
}

// silence checks that no client heard more than it must have.
func (w *world) silence(t *testing.T, what string) {
	t.Helper()
	for _, l := range w.clients {
		if got := l.heard.Load(); got != w.heard[l] {
			t.Errorf("%s: the %v has heard %d list_changed, want %d", what, l, got, w.heard[l])
		}
	}
}

// refused checks that a broken edit is reported with its place and changes nothing.
func (w *world) refused(t *testing.T, what string) {
	t.Helper()
	failed := w.Status().Failed
	for file := range w.broken {
		placed := false
		for _, p := range failed.Problems {
			// YAML errors have no column, and broken data keep the rules from being looked at.
			data := filepath.Ext(p.File) == ".yaml"
			for _, also := range p.Also {
				placed = placed || also.File == file && also.Line > 0 && also.Col > 0
			}
			placed = placed || (p.File == file || data && strings.HasPrefix(file, "policy/")) && p.Line > 0 && (p.Col > 0 || data)
		}
		if !placed {
			t.Errorf("%s: no problem is placed in %s: %v", what, file, failed.Problems)
		}
	}
	if len(w.log.adoptions(t)) != w.seen {
		t.Logf("%s: a step in between was served", what)
		return
	}
	w.silence(t, what)
	w.compareLists(t, "after "+what)
}

// edit changes the files once and the model with them, and says what it did. The last edit leaves nothing broken.
func (w *world) edit(t *testing.T, last bool) string {
	t.Helper()
	if len(w.broken) > 0 && (last || w.random.IntN(2) == 0) {
		return w.mend(t)
	}
	file := slices.Sorted(maps.Keys(w.files))[w.random.IntN(len(w.files))]
	for w.broken[file] != "" {
		file = slices.Sorted(maps.Keys(w.files))[w.random.IntN(len(w.files))]
	}
	tools := w.files[file]
	names := slices.Sorted(maps.Keys(tools))
	kind := w.random.IntN(20)
	switch {
	case last:
		kind = 9
	case len(names) == 0:
		kind = 0
	}
	what := ""
	switch kind {
	case 0, 1, 2, 3:
		what = "add"
		tools[w.free()] = w.newTool()
	case 4, 5:
		what = "remove"
		delete(tools, names[0])
	case 6, 7:
		what = "rename"
		old := names[w.random.IntN(len(names))]
		renamed := w.free()
		tools[renamed] = tools[old]
		delete(tools, old)
	case 8, 9, 10:
		what = "describe"
		name := names[w.random.IntN(len(names))]
		tool := tools[name]
		w.version++
		tool.description = fmt.Sprintf("Described at %d.", w.version)
		tools[name] = tool
	case 11, 12:
		what = "change the answer"
		name := names[w.random.IntN(len(names))]
		tool := tools[name]
		w.version++
		tool.version = w.version
		tools[name] = tool
	case 13:
		what = "rewrite"
	case 14, 15, 16:
		if w.broken[accessFile] != "" {
			return w.mend(t)
		}
		branch := []string{"default", "research"}[w.random.IntN(2)]
		w.deny[branch] = nil
		for i := range liveNames {
			if w.random.IntN(4) == 0 {
				w.deny[branch] = append(w.deny[branch], liveName(i))
			}
		}
		w.count["access"]++
		w.save(t, accessFile, w.accessData())
		return "access"
	default:
		if last || len(w.broken) > 1 {
			return w.mend(t)
		}
		return w.spoil(t, file)
	}
	w.count[what]++
	w.save(t, file, w.cue(file))
	return what
}

// free is the name of a live tool that is in no file.
func (w *world) free() string {
	for i := w.random.IntN(liveNames); ; i++ {
		name := liveName(i % liveNames)
		taken := false
		for _, tools := range w.files {
			taken = taken || tools[name].version > 0
		}
		if !taken {
			return name
		}
		if i > 3*liveNames {
			// Every name is in use: one more than clients call.
			w.version++
			return fmt.Sprintf("more_%d", w.version)
		}
	}
}

// spoil breaks CUE, Rego or data. What is broken changes nothing until it is mended.
func (w *world) spoil(t *testing.T, file string) string {
	t.Helper()
	kind := w.random.IntN(4)
	if kind >= 2 {
		file = []string{"policy/list.rego", accessFile}[kind-2]
	}
	if w.broken[file] != "" {
		return w.mend(t)
	}
	good := read(t, filepath.Join(w.dir, file))
	w.broken[file] = good
	bad := good + []string{
		"tools: live_00: {description: 1\n",
		"tools: current_time: effect: \"sometimes\"\n",
		"\nallow if input.nothing_of_the_kind\n",
		"branches: [\n",
	}[kind]
	w.count["break "+filepath.Ext(file)]++
	write(t, filepath.Join(w.dir, file), bad)
	return "break " + file
}

func (w *world) mend(t *testing.T) string {
	t.Helper()
	file := slices.Sorted(maps.Keys(w.broken))[0]
	good := w.broken[file]
	delete(w.broken, file)
	w.count["mend"]++
	w.open(time.Now())
	write(t, filepath.Join(w.dir, file), good)
	return "mend " + file
}

// compare checks that a client is shown exactly these tools.
func (l *listener) compare(t *testing.T, when string, want []string) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(l.listing(t))); !slices.Equal(got, want) {
		t.Errorf("%s, the %v lists %v, want %v", when, l, got, want)
	}
}

// hears waits until a client hears of a change while edit is done again and again, then until it is quiet again: a
// client that has only just connected may not be listening yet.
func (l *listener) hears(t *testing.T, edit func(i int)) {
	t.Helper()
	i := 0
	await(t, fmt.Sprintf("the %v to listen", l), func() bool {
		heard := l.heard.Load()
		i++
		edit(i)
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if l.heard.Load() > heard {
				return true
			}
		}
		return false
	})
}

// jqTool is the text of a tool that answers a word.
func jqTool(name, description, word string) string {
	return fmt.Sprintf("tools: %s: {\n\tdescription: %q\n\teffect: \"read\"\n\ttags: [\"everyday\"]\n\tbinding: jq: program: %q\n}\n",
		name, description, strconv.Quote(word))
}

// editReachesClients: an edit is list_changed and then the new list, without anybody asking the daemon to reload.
func editReachesClients(t *testing.T) {
	t.Parallel()
	for _, era := range []string{modernEra, legacyEra} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			dir := starterDir(t)
			r := run(t, catalogd.Config{Dir: dir, Timing: loader.WatchConfig{Quiet: 150 * time.Millisecond}})
			l := connect(t, r.url, "default", era)
			file := filepath.Join(dir, "catalog/new.cue")
			describe := func(i int) {
				write(t, file, "package catalog\n\n"+jqTool("new", fmt.Sprintf("Edit %d.", i), "x"))
			}
			l.hears(t, describe)
			var took []time.Duration
			for i := range 10 {
				heard := l.heard.Load()
				start := time.Now()
				describe(1000 + i)
				await(t, "list_changed", func() bool { return l.heard.Load() > heard })
				if got, want := l.listing(t)["new"], fmt.Sprintf("Edit %d.", 1000+i); got != want {
					t.Errorf("after list_changed the list says %q, want %q", got, want)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			t.Logf("from the save to the new list in the client's hands, with the default quiet period of 150 ms: median %v, most %v", took[len(took)/2], took[len(took)-1])
		})
	}
}

// brokenEdit: what is wrong is reported by file, line and column, nothing changes for clients, and the fix is served
// without a restart.
func brokenEdit(t *testing.T) {
	t.Parallel()
	dir := starterDir(t)
	r := run(t, catalogd.Config{Dir: dir})
	l := connect(t, r.url, "default", modernEra)
	names := slices.Sorted(maps.Keys(l.listing(t)))
	serving := r.Status().Generation.ID
	for _, test := range []struct {
		name, file, old, new string
		place                string // file:line:col: code
	}{
		{"CUE syntax", "catalog/branches.cue", "hide: tags: [\"text\"]", "hide: tags: [\"text\"", "catalog/branches.cue:12:1: cue_syntax"},
		{"CUE conflict", "catalog/system.cue", "\teffect:      \"read\"\n\ttags: [\"everyday\"", "\teffect:      \"reads\"\n\ttags: [\"everyday\"", "catalog/system.cue:8:15: cue_value"},
		{"a misspelt field", "catalog/system.cue", "title:       \"Current time\"", "titel:       \"Current time\"", "catalog/system.cue:6:2: unknown_field"},
		{"an argument that isn't there", "catalog/system.cue", "argv: [\"-sm\"]", "argv: [\"{what}\"]", "catalog/system.cue:23:10: bad_placeholder"},
		{"jq", "catalog/text.cue", ".separator as $s", ".separator as", "catalog/text.cue:44:15: bad_jq"},
		{"Rego syntax", "policy/list.rego", "allow if access.granted", "allow if access.", "policy/list.rego:9"},
		{"Rego input", "policy/list.rego", "allow if access.granted", "allow if input.tool.nam", "policy/list.rego:8:10: rego_compile"},
		{"data", "policy/access/data.yaml", "branches:\n  default:", "branches:\n  default: [", "policy/access/data.yaml:25: policy_data"},
		{"no policy", "policy/list.rego", "package catalogd.list", "package catalogd.lst", "policy/list.rego:2:1: policy_point"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := filepath.Join(dir, test.file)
			good := read(t, name)
			bad := strings.Replace(good, test.old, test.new, 1)
			if bad == good {
				t.Fatal("the edit changes nothing")
			}
			heard := l.heard.Load()
			write(t, name, bad)
			if r.settled(t) {
				t.Fatal("it is served")
			}
			s := r.Status()
			if s.Healthy || s.Failed.Reason != "problems" || s.Generation.ID != serving || s.Failed.At.IsZero() {
				t.Errorf("status %+v, failed %+v", s, s.Failed)
			}
			if !slices.ContainsFunc(s.Failed.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), test.place) }) {
				t.Errorf("no problem begins with %s:\n%v", test.place, s.Failed.Problems)
			}
			for _, p := range s.Failed.Problems {
				t.Log(p)
			}
			l.compare(t, "while it is broken", names)
			if got := l.answer(t.Context(), "slugify", map[string]any{"title": "A b"}); got != "a-b" {
				t.Errorf("while it is broken: %s", got)
			}
			if l.heard.Load() != heard {
				t.Error("a broken edit was told")
			}
			write(t, name, good)
			if !r.settled(t) || !r.Status().Healthy {
				t.Errorf("the fix isn't served: %+v", r.Status().Failed)
			}
		})
	}
}

// rootIsDeleted: without its folder the last good generation keeps serving, and a new folder is found.
func rootIsDeleted(t *testing.T) {
	t.Parallel()
	dir := starterDir(t)
	r := run(t, catalogd.Config{Dir: dir})
	l := connect(t, r.url, "default", legacyEra)
	for round := range 2 {
		names := slices.Sorted(maps.Keys(l.listing(t)))
		// In one step: a folder that is seen while its files go one by one is a smaller catalog.
		if err := os.Rename(dir, fmt.Sprintf("%s.%d", dir, round)); err != nil {
			t.Fatal(err)
		}
		await(t, "the missing folder to be reported", func() bool { f := r.Status().Failed; return f != nil && f.Reason == "source" })
		l.compare(t, "without a folder", names)
		if got := l.answer(t.Context(), "slugify", map[string]any{"title": "A b"}); got != "a-b" {
			t.Errorf("without a folder: %s", got)
		}
		if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
			t.Fatal(err)
		}
		tool := fmt.Sprintf("again_%d", round)
		write(t, filepath.Join(dir, "catalog/again.cue"), "package catalog\n\n"+jqTool(tool, "Back.", "x"))
		await(t, "the new folder to be served", func() bool { _, ok := l.listing(t)[tool]; return ok })
		if s := r.Status(); !s.Healthy && !r.settled(t) {
			t.Errorf("status %+v", s.Failed)
		}
	}
}

// configMap swaps the folder as Kubernetes does: what lies in it are symlinks into a folder that one symlink names,
// and that one is replaced.
func configMap(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mount")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	version := func(i int) string {
		name := fmt.Sprintf("..2026_%d", i)
		must(os.CopyFS(filepath.Join(dir, name), catalogd.Starter()))
		write(t, filepath.Join(dir, name, "catalog/version.cue"), "package catalog\n\n"+jqTool(fmt.Sprintf("version_%d", i), "One.", "x"))
		return name
	}
	swap := func(to string) {
		must(os.Symlink(to, filepath.Join(dir, "..data_tmp")))
		must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	old := version(0)
	swap(old)
	for _, name := range []string{"schema.cue", "cue.mod", "catalog", "policy"} {
		must(os.Symlink("..data/"+name, filepath.Join(dir, name)))
	}
	r := run(t, catalogd.Config{Dir: dir})
	l := connect(t, r.url, "default", modernEra)
	if _, ok := l.listing(t)["version_0"]; !ok {
		t.Fatalf("lists %v", l.listing(t))
	}
	for i := 1; i <= 3; i++ {
		next := version(i)
		swap(next)
		must(os.RemoveAll(filepath.Join(dir, old)))
		old = next
		await(t, "the swap", func() bool { _, ok := l.listing(t)[fmt.Sprintf("version_%d", i)]; return ok })
		if _, ok := l.listing(t)[fmt.Sprintf("version_%d", i-1)]; ok {
			t.Errorf("swap %d: the old one is still listed", i)
		}
	}
	if !r.settled(t) {
		t.Errorf("%+v", r.Status().Failed)
	}
}

// gitCheckout switches between two branches of a repository that differ in a hundred files.
func gitCheckout(t *testing.T) {
	t.Parallel()
	dir := starterDir(t)
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "starter")
	commit := func(branch string, first, last int) {
		git(t, dir, "checkout", "--quiet", "-b", branch, "main")
		for i := first; i < last; i++ {
			write(t, filepath.Join(dir, fmt.Sprintf("catalog/p%d/tools.cue", i)), "package catalog\n\n"+jqTool(fmt.Sprintf("tool_%03d", i), "On "+branch+".", branch))
		}
		git(t, dir, "add", ".")
		git(t, dir, "commit", "--quiet", "-m", branch)
	}
	// 30 packages are in both, with other content.
	commit("left", 0, 60)
	commit("right", 30, 90)
	r := run(t, catalogd.Config{Dir: dir})
	l := connect(t, r.url, "default", modernEra)
	for i := range 4 {
		branch := []string{"left", "right"}[i%2]
		git(t, dir, "checkout", "--quiet", branch)
		if !r.settled(t) {
			t.Fatalf("checkout of %s is refused: %+v", branch, r.Status().Failed)
		}
		shown := l.listing(t)
		n := 0
		for name, description := range shown {
			if strings.HasPrefix(name, "tool_") {
				n++
				if description != "On "+branch+"." {
					t.Errorf("%s shows %s as %q", branch, name, description)
				}
			}
		}
		if n != 60 {
			t.Errorf("%s shows %d tools", branch, n)
		}
		if got := l.answer(t.Context(), "tool_045", nil); got != branch {
			t.Errorf("tool_045 answers %q on %s", got, branch)
		}
	}
}

// git runs one command in a folder, with nobody's configuration.
func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
