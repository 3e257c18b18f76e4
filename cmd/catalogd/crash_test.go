package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/intent"
)

// payments is a service that counts what it was asked to do, by idempotency key.
type payments struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

func newPayments(t *testing.T) *payments {
	p := &payments{seen: map[string]int{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
		p.mu.Lock()
		p.seen[key]++
		n := len(p.seen)
		p.mu.Unlock()
		time.Sleep(time.Duration(n%5) * time.Millisecond)
		if n%7 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, `{"paid": %q}`, key)
	}))
	t.Cleanup(p.Close)
	return p
}

// payingCatalog is a catalog with one tool, pay, that asks the service at url to do something.
func payingCatalog(t *testing.T, url, more string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, catalogd.Starter()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "catalog/*.cue"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("catalog/pay.cue", fmt.Sprintf("package catalog\n\nbranches: default: {}\n\ntools: pay: {\n\tdescription: \"Pays.\"\n\targs: n!: int\n\teffect: \"write\"\n\tbinding: http: {method: \"POST\", url: %q, body: kind: \"json\", output: \"json\"}\n\t%s\n}\n", url+"/pay", more))
	write("policy/access/data.yaml", "branches:\n  default:\n    tools: [pay]\n")
	host, port, ok := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	if !ok {
		t.Fatal(url)
	}
	write("policy/trust/data.yaml", fmt.Sprintf("entries:\n  payments:\n    scheme: http\n    host: %s\n    port: %s\n    path: /pay\n    addresses: [127.0.0.0/8]\n", host, port))
	return dir
}

// killedDaemon is a running `catalogd serve`, which is killed and started again.
type killedDaemon struct {
	t    *testing.T
	args []string
	env  []string
	dir  string
	log  *lockedBuffer

	mu  sync.Mutex
	cmd *exec.Cmd
	url atomic.Pointer[string]
}

func (d *killedDaemon) start() {
	d.t.Helper()
	cmd := exec.Command("catalogd", d.args...)
	d.log = &lockedBuffer{}
	cmd.Dir, cmd.Env, cmd.Stderr = d.dir, d.env, d.log
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.cmd = cmd
	d.mu.Unlock()
	served := regexp.MustCompile(`"url":"(http://127[^"]*)"`)
	for begun := time.Now(); time.Since(begun) < patience; {
		if at := served.FindStringSubmatch(d.log.String()); at != nil {
			d.url.Store(&at[1])
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Fatalf("it does not serve:\n%s", d.log)
}

func (d *killedDaemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	d.cmd = nil
}

// paid is what a client was answered.
type paid struct {
	n         int
	intent    string
	succeeded bool
	text      string
}

// pay calls the tool once. It is an error where there was no answer.
func pay(ctx context.Context, base string, n int) (paid, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pay","arguments":{"n":%d},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, n, n)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/mcp", strings.NewReader(body))
	if err != nil {
		return paid{}, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "pay"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return paid{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return paid{}, err
	}
	var a struct {
		Result struct {
			IsError bool `json:"isError"`
			Content []struct{ Text string }
			Meta    struct {
				Call struct{ Intent string } `json:"catalogd/call"`
			} `json:"_meta"`
			Structured struct{ Intent *struct{ ID string } } `json:"structuredContent"`
		}
		Error json.RawMessage
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.Error != nil {
		return paid{}, fmt.Errorf("%d %s", resp.StatusCode, raw)
	}
	got := paid{n: n, intent: a.Result.Meta.Call.Intent, succeeded: !a.Result.IsError && a.Result.Structured.Intent == nil}
	for _, c := range a.Result.Content {
		got.text += c.Text
	}
	return got, nil
}

// TestThreatEffects finds the test of what is replayed and lost by its row in the list of threats (docs/robustness.md).
func TestThreatEffects(t *testing.T) {
	t.Parallel()
	t.Run("T18/killed at any moment", killed)
}

// killed kills processes that share a store at random moments while clients call a tool with a side effect that may not
// be repeated. Whatever the moment was, the service was asked at most once for each intent, each intent has ended in a state
// that says what the service saw, and what a client was told stands. CATALOGD_KILLS is how many, 50; CATALOGD_SEED repeats a
// run.
func killed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	kills, seed := 50, uint64(time.Now().UnixNano())
	for name, set := range map[string]func(uint64){"CATALOGD_KILLS": func(n uint64) { kills = int(n) }, "CATALOGD_SEED": func(n uint64) { seed = n }} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			set(n)
		}
	}
	t.Logf("CATALOGD_SEED=%d CATALOGD_KILLS=%d", seed, kills)
	random := rand.New(rand.NewPCG(seed, 1))
	service := newPayments(t)
	dir := payingCatalog(t, service.URL, "")
	store := filepath.Join(t.TempDir(), "intents")
	env := append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"), "GORACE=atexit_sleep_ms=0")
	daemons := make([]*killedDaemon, 2)
	for i := range daemons {
		daemons[i] = &killedDaemon{t: t, dir: dir, env: env, args: []string{"serve", "--addr", "127.0.0.1:0", "--intents", store, "--durability", "process", "--wait", "2s"}}
		daemons[i].start()
		defer daemons[i].kill()
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var (
		clients  sync.WaitGroup
		mu       sync.Mutex
		answered []paid
		next     atomic.Int64
	)
	for i := range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				got, err := pay(ctx, *daemons[i%2].url.Load(), int(next.Add(1)))
				if err != nil {
					time.Sleep(5 * time.Millisecond) // it was killed
					continue
				}
				mu.Lock()
				answered = append(answered, got)
				mu.Unlock()
			}
		})
	}
	done := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(answered)
	}
	// On a busy machine the clients get less done between two kills.
	for n := 0; n < kills || n < 10*kills && done() < 2*kills; n++ {
		time.Sleep(time.Duration(20+random.IntN(200)) * time.Millisecond)
		d := daemons[random.IntN(2)]
		d.kill()
		d.start()
	}
	stop()
	clients.Wait()
	for _, d := range daemons {
		d.kill()
	}
	service.Close()

	s, err := intent.Open(t.Context(), intent.Config{Dir: store, Durability: intent.Process, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	intents := map[string]intent.Intent{}
	states := map[intent.State]int{}
	for before := int64(0); ; {
		page, err := s.List(t.Context(), intent.Filter{Before: before, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, in := range page {
			intents[in.ID] = in
			states[in.State]++
			before = in.Seq
		}
	}
	allowed := map[intent.State][]int{
		intent.Succeeded: {1}, intent.Failed: {1, 0}, intent.Unknown: {0, 1}, intent.Cancelled: {0}, intent.Refused: {0},
	}
	for id, in := range intents {
		if n := service.seen[id]; !slices.Contains(allowed[in.State], n) {
			t.Errorf("intent %s is %s, and the service saw it %d times: %+v", id, in.State, n, in.History)
		}
	}
	for key := range service.seen {
		if _, ok := intents[key]; !ok {
			t.Errorf("the service saw %s, of which nothing is written down", key)
		}
	}
	told := 0
	for _, a := range answered {
		in, ok := intents[a.intent]
		switch {
		case a.intent == "":
			continue // it was refused before it was written down
		case !ok:
			t.Errorf("call %d was answered with intent %s, which is not written down", a.n, a.intent)
		case a.succeeded && in.State != intent.Succeeded:
			t.Errorf("call %d was answered with a result, and its intent is %s: %s", a.n, in.State, a.text)
		}
		told++
	}
	t.Logf("%d intents: %v; %d answers", len(intents), states, told)
	if states[intent.Succeeded] < kills || states[intent.Unknown] == 0 || told < kills {
		t.Errorf("the clients got too little done for this to say much")
	}
}
