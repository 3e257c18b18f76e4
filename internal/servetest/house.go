package servetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/conversation"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// SetAdopt replaces the policy's gate.
func (h *House) SetAdopt(rule string) {
	h.Set("policy/adopt.rego", rule)
}

// Asked counts the connect and list decisions that the log says were asked since the last look.
func (h *House) Asked() (connect, list int) {
	h.Log.mu.Lock()
	defer h.Log.mu.Unlock()
	for line := range strings.Lines(h.Log.b.String()) {
		if strings.Contains(line, `msg="connect decision"`) {
			connect++
		}
		if m := regexp.MustCompile(`msg="list decisions" .* asked=(\d+)`).FindStringSubmatch(line); m != nil {
			var n int
			fmt.Sscan(m[1], &n)
			list += n
		}
	}
	h.Log.b.Reset()
	return connect, list
}

// Reaches are the ways out of the generation that is serving, by kind and name.
func (h *House) Reaches() map[string]generation.Reach {
	g, release := h.Pin()
	defer release()
	found := map[string]generation.Reach{}
	for _, r := range g.Reaches() {
		found[r.Kind+" "+r.Name] = r
	}
	return found
}

// Reasons are why a tool may not reach what it reaches.
func (h *House) Reasons(tool string) string {
	return strings.Join(h.Reaches()["tool "+tool].Decision.Reasons, "; ")
}

// Variables are what the tool named environment prints.
func (h *House) Variables(t *testing.T) map[string]string {
	t.Helper()
	given := map[string]string{}
	for item := range strings.FieldsSeq(h.Call(t, "default", "environment", `{}`)) { // each value is one word
		name, value, _ := strings.Cut(item, "=")
		given[name] = value
	}
	return given
}

// House is a catalog in memory that a test edits, with the policy of this repository, and a daemon that serves it. It
// is the daemon's loader.Source.
type House struct {
	*daemon.Daemon
	Files fstest.MapFS
	Pool  *upstream.Pool
	Log   *SyncBuffer
	// changed are the branches that each swap named; mu guards it, because servers make swaps too.
	Mu      sync.Mutex
	Changed [][]string
	Ended   []daemon.Outcome
	// Told is called at each swap, where it is set.
	Told func(branches []string)
	// Unreadable makes every snapshot fail.
	Unreadable bool
	// Root is the catalog's directory; a temporary one where empty.
	Root   string
	Commit func(context.Context, string) decision.Commit // nil where nobody knows
	Memory *daemon.AdoptionRecord                        // nil where nothing is remembered
	// Conversations holds the conversation branches; nil where there are none.
	Conversations *conversation.Store
}

func (h *House) Snapshot(ctx context.Context) (*loader.Snapshot, problem.List) {
	if h.Unreadable {
		var l problem.List
		l.Errorf(problem.Unreadable, problem.Position{File: "catalog"}, "", "the disk is on fire")
		return nil, l
	}
	return loader.Tree{FS: h.Files}.Snapshot(ctx)
}

func (h *House) swapped(branches []string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Changed = append(h.Changed, branches)
	if h.Told != nil {
		h.Told(branches)
	}
}

func (h *House) Set(name, content string) { h.Files[name] = &fstest.MapFile{Data: []byte(content)} }

func (h *House) Get(name string) string { return string(h.Files[name].Data) }

// Replace edits a file.
func (h *House) Replace(t testing.TB, name, old, new string) {
	t.Helper()
	before := h.Get(name)
	after := strings.Replace(before, old, new, 1)
	if before == after {
		t.Fatalf("%s has no %q", name, old)
	}
	h.Set(name, after)
}

// save is an edit and a reload that must end as told.
func (h *House) MustReload(t testing.TB, result string) daemon.Outcome {
	t.Helper()
	o := h.Reload(t.Context())
	if o.Result != result {
		t.Fatalf("reload: %s, want %s: %v", o.Result, result, o.Problems)
	}
	return o
}

const HomeCUE = `package catalog

branches: default: {}
branches: public: labels: audience: "public"
branches: small: select: names: ["upper"]

tools: upper: {
	description: "Upper-case a text."
	args: text!: string
	effect: "read"
	binding: jq: program: ".text | ascii_upcase"
}
tools: secret: {
	description: "Not for the public."
	effect:      "read"
	tags: ["internal"]
	binding: jq: program: "\"secret\""
}
tools: clock: {
	description: "The time."
	effect:      "read"
	binding: exec: {command: "date", argv: ["-u"]}
}
tools: wipe: {
	description: "Delete all."
	args: force: *false | bool
	effect: "write"
	binding: jq: program: "\"gone\""
}
tools: remote_echo: {
	description: "Of a server."
	effect:      "read"
	binding: mcp: server: "remote"
}
servers: remote: {
	prefix: "remote_"
	transport: http: url: "http://127.0.0.1:1/mcp"
}
`

const HomeAccess = `branches:
  default: {tools: ["*"]}
  public: {tools: ["*"], deny: [remote_*]}
  small: {tools: ["*"]}
hide:
  - labels: {audience: public}
    tags: [internal]
    reason: not for the public
`

const HomeTrust = `entries:
  clock: {command: [date, -u]}
  remote: {scheme: http, host: 127.0.0.1, port: 1, path: /mcp, addresses: [127.0.0.0/8]}
`

// NewHouse is the files of a house that serves nothing yet.
func NewHouse(t testing.TB) *House {
	t.Helper()
	h := &House{Files: fstest.MapFS{}, Log: &SyncBuffer{}}
	root := os.DirFS("../..")
	for _, part := range []string{"schema.cue", "cue.mod", "policy"} {
		err := fs.WalkDir(root, part, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.rego") { // tests change its policy
				return err
			}
			data, err := fs.ReadFile(root, name)
			h.Set(name, string(data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.Set("catalog/home.cue", HomeCUE)
	h.Set("policy/access/data.yaml", HomeAccess)
	h.Set("policy/trust/data.yaml", HomeTrust)
	return h
}

// ReadSchema is the schema that the binary knows, whatever a test does to its own copy.
func ReadSchema(t testing.TB) []byte {
	t.Helper()
	schema, err := os.ReadFile("../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// Open makes the daemon. Its error is Open's.
func (h *House) Open(t testing.TB) error {
	t.Helper()
	log := slog.New(slog.NewTextHandler(h.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	live := generation.NewLive()
	h.Pool = upstream.NewPool(upstream.Config{Logger: log, Watch: live.Watch()})
	t.Cleanup(h.Pool.Close)
	d, err := daemon.Open(t.Context(), daemon.Config{
		Source: h,
		Builder: &generation.Builder{
			Root: cmp.Or(h.Root, t.TempDir()), Pool: h.Pool, Live: live, Conversations: h.Conversations, Log: log,
			Compiler: loader.NewCompiler(loader.Config{Schema: ReadSchema(t), Logger: log}),
			// The machine that runs the tests may be busy.
			Policy: decision.Config{Deadline: 10 * time.Second, Logger: log},
		},
		Version: "test", Log: log,
		Changed: h.swapped, Commit: h.Commit, Adoption: h.Memory,
		Ended: func(o daemon.Outcome) { h.Ended = append(h.Ended, o) },
	})
	if err == nil {
		h.Daemon = d
		t.Cleanup(d.Close)
	}
	return err
}

func OpenHouse(t testing.TB) *House {
	t.Helper()
	h := NewHouse(t)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	return h
}

// Names are the tools that a branch lists.
func (h *House) Names(t testing.TB, branch string) []string {
	t.Helper()
	g, release := h.Pin()
	defer release()
	path, ok := g.Path(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.View.Names()
}

// Call is what a call on the serving generation comes to: its text, or its code.
func (h *House) Call(t testing.TB, branch, tool, args string) string {
	t.Helper()
	g, release := h.Pin()
	defer release()
	return Outcome(t, CallOn(t, g, branch, tool, args))
}

func CallOn(t testing.TB, g *generation.Generation, branch, tool, args string) registry.Call {
	t.Helper()
	path, ok := g.Path(branch)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.Call(t.Context(), invoke.Request{Tool: tool, Arguments: json.RawMessage(args), Principal: decision.Local()})
}

func Outcome(t testing.TB, c registry.Call) string {
	t.Helper()
	if c.Err != nil {
		return string(c.Err.Code)
	}
	var block struct{ Text string }
	if err := json.Unmarshal(c.Result.Content[0], &block); err != nil {
		t.Fatal(err)
	}
	return block.Text
}

// Unlinked waits until no generation holds a server any more.
func (h *House) Unlinked(t testing.TB) {
	t.Helper()
	Until(t, "the servers to be let go", func() bool { return len(h.Pool.Status()) == 0 })
}

// Lock writes the lock of these tools.
func (h *House) Lock(t *testing.T, tools ...string) {
	t.Helper()
	var raw []json.RawMessage
	for _, tool := range tools {
		raw = append(raw, json.RawMessage(tool))
	}
	s, _ := lockfile.Merge(lockfile.Server{Name: "fickle"}, lockfile.ReadOffer(lockfile.Identity{Name: "fickle", Version: "1", Protocol: "2025-06-18"}, raw),
		func(string) bool { return true }, func(string) bool { return true }, time.Unix(0, 0))
	file := &lockfile.File{}
	file.Put(s)
	h.Set(lockfile.Name, string(file.Marshal()))
}

// Remembering gives the house a record, in a new state directory.
func (h *House) Remembering(t *testing.T) *buildcache.Record {
	t.Helper()
	record, err := buildcache.OpenRecord(filepath.Join(t.TempDir(), "state"), "/house", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := record.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Memory = &daemon.AdoptionRecord{Record: record}
	return record
}

func (h *House) Proposals(t *testing.T, name string) []generation.Proposal {
	t.Helper()
	g, release := h.Pin()
	defer release()
	proposals, _, err := g.Proposals(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return proposals
}

func (h *House) Warnings(t *testing.T, codes ...problem.Code) (found problem.List) {
	t.Helper()
	g, release := h.Pin()
	defer release()
	for _, p := range g.Warnings {
		if slices.Contains(codes, p.Code) {
			found = append(found, p)
		}
	}
	return found
}

// Hang begins a build that does not end, and returns what becomes of it.
func (h *House) Hang(t *testing.T, c *Stubborn, name string) chan daemon.Outcome {
	t.Helper()
	h.Set("catalog/home.cue", "// hang "+name+"\n"+HomeCUE)
	outcome := make(chan daemon.Outcome, 1)
	go func() { outcome <- h.Reload(context.Background()) }()
	<-c.Begun
	return outcome
}

// Build makes a generation of the house's files, without a daemon.
func (h *House) Build(t testing.TB, deadline time.Duration) (*generation.Generation, problem.List) {
	t.Helper()
	snap, problems := h.Snapshot(t.Context())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	log := slog.New(slog.NewTextHandler(h.Log, nil))
	pool := upstream.NewPool(upstream.Config{Logger: log})
	t.Cleanup(pool.Close)
	b := &generation.Builder{
		Root: t.TempDir(), Pool: pool, Log: log,
		Compiler: loader.NewCompiler(loader.Config{Schema: ReadSchema(t), Logger: log}),
		Policy:   decision.Config{Build: deadline, Logger: log},
	}
	g, problems := b.Build(t.Context(), snap, nil)
	if g != nil {
		t.Cleanup(g.Retire)
	}
	return g, problems
}

// OpenShort is a daemon of the house whose build has so long for one decision.
func (h *House) OpenShort(t *testing.T, build time.Duration, once bool) error {
	t.Helper()
	log := slog.New(slog.NewTextHandler(h.Log, nil))
	pool := upstream.NewPool(upstream.Config{})
	t.Cleanup(pool.Close)
	d, err := daemon.Open(t.Context(), daemon.Config{Source: h, Log: log, Once: once, Changed: h.swapped, Builder: &generation.Builder{
		Root: t.TempDir(), Pool: pool, Log: log, Compiler: loader.NewCompiler(loader.Config{Schema: ReadSchema(t)}),
		Policy: decision.Config{Deadline: 10 * time.Second, Build: build, Logger: log},
	}})
	if err == nil {
		h.Daemon = d
		t.Cleanup(d.Close)
	}
	return err
}

// Sees are the tools that a branch lists to a principal.
func (h *House) Sees(t testing.TB, branch string, p decision.Principal) []string {
	t.Helper()
	g, release := h.Pin()
	defer release()
	path, ok := g.PathFor(branch, p)
	if !ok {
		t.Fatalf("no branch %s", branch)
	}
	return path.View.Names()
}
