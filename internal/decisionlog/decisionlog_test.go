package decisionlog_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/decisionlog"
)

// event is a line of the log.
type event struct {
	ID      string `json:"decision_id"`
	Path    string
	By      string `json:"requested_by"`
	Input   map[string]any
	Result  map[string]any
	Erased  []string
	Masked  []string
	Metrics map[string]int64
	Custom  struct {
		Seq        uint64
		What       string
		Events     int
		Generation string
		Policy     string
		Call       string
		Arguments  string
		Rules      []string
		MaskError  string `json:"mask_error"`
		Previous   decisionlog.Previous
	}
	Labels map[string]string
}

func read(t *testing.T, text string) (events []event) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

// policy is an engine with the given modules beside a policy that allows everything to who is not eve.
func policy(t testing.TB, modules map[string]string) *decision.Engine {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, point := range decision.Points() {
		fsys["policy/"+string(point)+".rego"] = &fstest.MapFile{Data: []byte("package catalogd." + string(point) + "\n\ndefault allow := false\n\nallow if input\n")}
	}
	fsys["policy/call.rego"] = &fstest.MapFile{Data: []byte("package catalogd.call\n\ndefault allow := false\n\nallow if input.branch.name == \"b\"\n\ndeny contains \"not eve\" if input.principal.name == \"eve\"\n")}
	for name, text := range modules {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	engine, problems := decision.Load(t.Context(), fsys, decision.Config{Deadline: time.Minute})
	if engine == nil {
		t.Fatal(problems)
	}
	return engine
}

// call is the event of one call.
func call(engine *decision.Engine, id, principal string) decision.Event {
	in := decision.CallInput{
		Branch: decision.Branch{Name: "b", Labels: map[string]string{}}, Tool: decision.Tool{Name: "t", Effect: "read", Tags: []string{"tagged-1", "tagged-2"}, Binding: "jq"},
		Principal: decision.Principal{Name: principal, Groups: []string{}}, Arguments: json.RawMessage(`{"pin":"hunter2"}`), Time: time.Now().UTC(),
	}
	return decision.Event{
		ID: id, Call: id, Time: time.Now(), Point: decision.Call, Input: in, Arguments: "sha256:0", Principal: principal,
		Decision: engine.Call(context.Background(), in), Took: time.Microsecond, Generation: "g1", Engine: engine,
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	engine := policy(t, nil)
	var out bytes.Buffer
	log := decisionlog.New(decisionlog.Config{Sink: decisionlog.Stream{W: &out}, Version: "v1"})
	log.Add(call(engine, "one", "ann"))
	log.Add(call(engine, "two", "eve"))
	result := decision.ResultInput{Arguments: json.RawMessage(`{"pin":"hunter2"}`), Result: decision.ToolResult{Structured: json.RawMessage(`{"x":"hunter2"}`), Text: []string{"hunter2"}, Bytes: 9, Types: []string{"text"}}}
	log.Add(decision.Event{ID: "one-result", Call: "one", Point: decision.Result, Input: result, Engine: engine, Decision: decision.Decision{Point: decision.Result, Allow: true, Code: decision.Allowed}})
	log.Add(decision.Event{ID: "view", Point: decision.List, Input: decision.Viewer{Branch: decision.Branch{Name: "b"}}, Visible: []string{"t", "u"}, Engine: engine})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("an argument or result is in the log:\n%s", &out)
	}
	events := read(t, out.String())
	if len(events) != 6 {
		t.Fatalf("%d events:\n%s", len(events), &out)
	}
	for i, e := range events {
		if e.Custom.Seq != uint64(i+1) || e.Labels["run"] != events[0].Labels["run"] || e.Labels["version"] != "v1" || e.ID == "" {
			t.Errorf("%+v", e)
		}
	}
	if events[0].Custom.What != "opened" || events[5].Custom.What != "closed" {
		t.Errorf("%+v %+v", events[0], events[5])
	}
	allowed, denied := events[1], events[2]
	if allowed.Path != "catalogd/call" || allowed.By != "ann" || allowed.Result["allow"] != true || allowed.Custom.Generation != "g1" ||
		allowed.Custom.Policy != engine.Digest() || allowed.Custom.Call != "one" || allowed.Custom.Arguments != "sha256:0" || allowed.Metrics["timer_rego_query_eval_ns"] != 1000 ||
		!slices.Equal(allowed.Custom.Rules, []string{"policy/call.rego:5:1"}) || !slices.Equal(allowed.Erased, []string{"/input/arguments"}) {
		t.Errorf("%+v", allowed)
	}
	if denied.Result["allow"] != false || fmt.Sprint(denied.Result["reasons"]) != "[not eve]" || !slices.Equal(denied.Custom.Rules, []string{"policy/call.rego:7:1"}) {
		t.Errorf("%+v", denied)
	}
	if seen := events[3].Input["result"].(map[string]any); seen["bytes"] != 9.0 || seen["structured"] != nil {
		t.Errorf("%+v", events[3])
	}
	if fmt.Sprint(events[4].Result) != "map[tools:2 visible:[t u]]" {
		t.Errorf("%+v", events[4])
	}
}

// The policy says what the log leaves out; one that can't say so leaves out everything that it could have meant.
func TestMask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rules     string
		masked          []string
		principal, fail bool
	}{
		{"a name", "mask contains \"/input/principal/name\" if input.path == \"catalogd/call\"\n\nmask contains \"/input/none\"", []string{"/input/principal/name"}, false, false},
		{"no match", "mask contains \"/input/principal/name\" if input.path == \"catalogd/list\"", nil, true, false},
		{"what may not be left out", "mask contains \"/custom/seq\"", []string{"/input", "/result/reasons"}, false, true},
		{"an error", "mask contains \"/input/principal/name\" if to_number(input.path) > 0", []string{"/input", "/result/reasons"}, false, true},
		{"an item of a list", "mask contains sprintf(\"/input/tool/tags/%d\", [i]) if { some i, _ in input.input.tool.tags }\n\nmask contains \"/input/tool/tags/9\"", []string{"/input/tool/tags/0", "/input/tool/tags/1"}, true, false},
		{"a wrong type", "mask := [\"/input\"]", []string{"/input", "/result/reasons"}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			engine := policy(t, map[string]string{"policy/log.rego": "package catalogd.log\n\n" + c.rules + "\n"})
			var out bytes.Buffer
			log := decisionlog.New(decisionlog.Config{Sink: decisionlog.Stream{W: &out}})
			log.Add(call(engine, "one", "eve"))
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			e := read(t, out.String())[1]
			principal, _ := e.Input["principal"].(map[string]any)
			if _, named := principal["name"]; !slices.Equal(e.Masked, c.masked) || named != c.principal || (e.Custom.MaskError != "") != c.fail {
				t.Errorf("%+v", e)
			}
			if (e.By == "eve") != c.principal {
				t.Errorf("the principal that was left out is named all the same, or one that wasn't isn't: %s", out.String())
			}
			if strings.Contains(c.name, "list") && strings.Contains(out.String(), "tagged") {
				t.Errorf("still there: %s", out.String())
			}
		})
	}
}

// A run says how the one before it in the file ended, and ends a line that was cut off.
func TestRuns(t *testing.T) {
	t.Parallel()
	engine := policy(t, nil)
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	open := func() *decisionlog.Log {
		sink, err := decisionlog.OpenFile(name, 1<<20, 1)
		if err != nil {
			t.Fatal(err)
		}
		return decisionlog.New(decisionlog.Config{Sink: sink})
	}
	run := func() event {
		log := open()
		log.Add(call(engine, "x", "ann"))
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return read(t, lines[len(lines)-3])[0]
	}
	first := run()
	if p := first.Custom.Previous; p != (decisionlog.Previous{}) {
		t.Errorf("%+v", p)
	}
	second := run()
	if p := second.Custom.Previous; p.Run != first.Labels["run"] || !p.Closed || p.Torn || p.Seq != 3 {
		t.Errorf("%+v", p)
	}
	// Killed behind an event: its last lines are gone.
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.LastIndexByte(bytes.TrimSpace(text), '\n') + 1
	if err := os.Truncate(name, int64(cut)); err != nil {
		t.Fatal(err)
	}
	third := run()
	if p := third.Custom.Previous; p.Run != second.Labels["run"] || p.Closed || p.Torn || p.Seq != 2 {
		t.Errorf("%+v", p)
	}
	// Killed within a line.
	if text, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, int64(len(text)-10)); err != nil {
		t.Fatal(err)
	}
	fourth := run()
	if p := fourth.Custom.Previous; p.Closed || !p.Torn || p.Run != third.Labels["run"] || p.Seq != 2 {
		t.Errorf("%+v", p)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// Files are rotated, the newest of them kept, and no event is cut.
func TestRotation(t *testing.T) {
	t.Parallel()
	engine := policy(t, nil)
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	sink, err := decisionlog.OpenFile(name, 4000, 3)
	if err != nil {
		t.Fatal(err)
	}
	log := decisionlog.New(decisionlog.Config{Sink: slowly{sink}, Block: true, Queue: 1})
	for i := range 40 {
		log.Add(call(engine, fmt.Sprint(i), "ann"))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for _, file := range []string{name + ".3", name + ".2", name + ".1", name} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 4000 {
			t.Errorf("%s has %d bytes", file, len(text))
		}
		for _, e := range read(t, string(text)) {
			if last != 0 && e.Custom.Seq != last+1 {
				t.Errorf("%d behind %d", e.Custom.Seq, last)
			}
			last = e.Custom.Seq
		}
	}
	if last != 42 {
		t.Errorf("the last event is %d", last)
	}
	if _, err := os.Stat(name + ".4"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a fourth file is kept: %v", err)
	}
}

// TestSharedFile: two processes may write one file. No line is lost or cut, and no file grows over its size.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	const writers, lines, size, keep = 3, 300, 1000, 100
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	var writing sync.WaitGroup
	for w := range writers {
		sink, err := decisionlog.OpenFile(name, size, keep)
		if err != nil {
			t.Fatal(err)
		}
		writing.Go(func() {
			for i := range lines {
				if err := sink.Write(t.Context(), fmt.Appendf(nil, "{\"writer\": %d, \"line\": %d}\n", w, i)); err != nil {
					t.Error(err)
				}
			}
			if err := sink.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	files, err := filepath.Glob(name + "*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > size {
			t.Errorf("%s has %d bytes, want at most %d", file, len(text), size)
		}
		for line := range strings.Lines(string(text)) {
			found[line]++
		}
	}
	for w := range writers {
		for i := range lines {
			if line := fmt.Sprintf("{\"writer\": %d, \"line\": %d}\n", w, i); found[line] != 1 {
				t.Errorf("%q is there %d times", line, found[line])
			}
		}
	}
	if len(found) != writers*lines {
		t.Errorf("got %d different lines, want %d", len(found), writers*lines)
	}
}

// TestSharedFileTorn: a line that another process did not end takes none of this one's with it.
func TestSharedFileTorn(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	sink, err := decisionlog.OpenFile(name, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	write := func(line string) {
		t.Helper()
		if err := sink.Write(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	write("1\n")
	other, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.WriteString(`{"cut`); err != nil {
		t.Fatal(err)
	}
	write("2\n")
	write("3\n")
	if text, err := os.ReadFile(name); err != nil || string(text) != "1\n{\"cut\n2\n3\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestSharedFileLocked: while a process that is stopped holds the file, a write fails after a while, so that it is
// reported, and succeeds once the file is free.
func TestSharedFileLocked(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	sink, err := decisionlog.OpenFile(name, 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	other, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = sink.Write(ctx, []byte("1\n"))
	if err == nil || !strings.Contains(err.Error(), "another process keeps "+name+" locked") || ctx.Err() != nil {
		t.Errorf("got %v, and of the test's own time %v", err, ctx.Err())
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(ctx, []byte("2\n")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "2\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

// slowly makes small batches of what comes fast.
type slowly struct{ decisionlog.Sink }

func (s slowly) Write(ctx context.Context, lines []byte) error {
	time.Sleep(time.Millisecond)
	return s.Sink.Write(ctx, lines)
}

// stuck is a sink that takes nothing until it is let go.
type stuck struct {
	mu   sync.Mutex
	out  bytes.Buffer
	free chan struct{}
}

func (s *stuck) Previous() decisionlog.Previous { return decisionlog.Previous{} }
func (s *stuck) Close() error                   { return nil }
func (s *stuck) Write(ctx context.Context, lines []byte) error {
	select {
	case <-s.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(lines)
	return nil
}

// TestThreat holds the log to the rows of the project's threat model.
func TestThreat(t *testing.T) {
	t.Parallel()
	t.Run("T22/a log that can't be written holds up nobody, or everybody", overflow)
}

// A full queue drops and says how many, or makes the caller wait.
func overflow(t *testing.T) {
	t.Parallel()
	engine := policy(t, nil)
	sink := &stuck{free: make(chan struct{})}
	log := decisionlog.New(decisionlog.Config{Sink: sink, Queue: 4})
	for range 50 {
		log.Add(call(engine, "x", "ann"))
	}
	dropped := log.Counts().Dropped
	if dropped < 40 {
		t.Errorf("%d dropped", dropped)
	}
	close(sink.free)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	events, said := read(t, sink.out.String()), 0
	for _, e := range events {
		said += e.Custom.Events
	}
	if uint64(said) != dropped || log.Counts().Written+dropped != 50 {
		t.Errorf("the log says that %d are missing; %+v", said, log.Counts())
	}

	sink = &stuck{free: make(chan struct{})}
	log = decisionlog.New(decisionlog.Config{Sink: sink, Queue: 4, Block: true})
	added := make(chan struct{})
	go func() {
		defer close(added)
		for range 50 {
			log.Add(call(engine, "x", "ann"))
		}
	}()
	select {
	case <-added:
		t.Error("nobody waited")
	case <-time.After(100 * time.Millisecond):
	}
	close(sink.free)
	<-added
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if n := log.Counts(); n.Written != 50 || n.Dropped != 0 {
		t.Errorf("%+v", n)
	}
}

// A collector gets OPA's form, once more after a failure; a sink that never takes anything does not hold up the end.
func TestCollector(t *testing.T) {
	t.Parallel()
	engine := policy(t, nil)
	var mu sync.Mutex
	var got []event
	failures := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if failures--; failures >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		zip, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v %v", err, r.Header)
			return
		}
		body, err := io.ReadAll(zip)
		var events []event
		if err := errors.Join(err, json.Unmarshal(body, &events)); err != nil {
			t.Errorf("%v: %s", err, body)
		}
		got = append(got, events...)
	}))
	defer server.Close()
	sink, err := decisionlog.NewCollector(server.URL, "Bearer x")
	if err != nil {
		t.Fatal(err)
	}
	log := decisionlog.New(decisionlog.Config{Sink: sink})
	for range 3 {
		log.Add(call(engine, "x", "ann"))
	}
	for end := time.Now().Add(2 * time.Minute); log.Counts().Written < 3; time.Sleep(time.Millisecond) { // Close does not wait as long
		if time.Now().After(end) {
			t.Fatalf("got %+v, want 3 events written", log.Counts())
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 || got[1].Path != "catalogd/call" {
		t.Errorf("%+v", got)
	}
	for _, address := range []string{"http://logs.example.com/logs", "ftp://127.0.0.1/", "https://user:pass@logs.example.com/", "logs.example.com", ""} {
		if _, err := decisionlog.NewCollector(address, ""); err == nil {
			t.Errorf("NewCollector(%q): no error", address)
		}
	}
}

// A path that is no regular file is refused at the start.
func TestOpenFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{dir, filepath.Join(dir, "missing", "x"), "/dev/null"} {
		if f, err := decisionlog.OpenFile(name, 1, 1); err == nil {
			t.Errorf("%s is taken", name)
			f.Close()
		}
	}
}
