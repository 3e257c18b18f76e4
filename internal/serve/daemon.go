package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// DaemonConfig says what a Daemon serves and watches.
type DaemonConfig struct {
	Source  loader.Source
	Builder *Builder
	// Watch is the directory that is watched; empty watches nothing, and only Reload looks again.
	Watch string
	// Timing is the watch's; its zero value is the default.
	Timing  loader.WatchConfig
	Version string
	Log     *slog.Logger
	// Changed is called after each swap but the first with the branches whose visible set changed, before Reload answers.
	// It may be nil.
	Changed func(branches []string)
	// Commit says which commit the files of that digest come from; nil where nobody knows.
	Commit func(ctx context.Context, digest string) decision.Commit
	// Forwarded is called after each swap but the first, and when what servers pass on is another than before. It may be nil.
	Forwarded func()
	// Updated is told of resources that servers say are others than before. It may be nil.
	Updated func([]ResourceUpdate)
	// Ended is called with every outcome of a reload, watched or asked for. It may be nil.
	Ended func(Outcome)
}

// Daemon owns the generation that serves. All methods are safe for concurrent use. Open makes the first generation or
// refuses; Run watches until its context ends; Close ends what the serving generation holds.
type Daemon struct {
	cfg     DaemonConfig
	current atomic.Pointer[Generation]
	failed  atomic.Pointer[FailedStatus]
	reload  sync.Mutex // one reload at a time
	life    context.Context
	end     context.CancelFunc // ends life, and with it a reload that runs
	eager   atomic.Bool
	tested  tested // reload guards it
}

// Open builds and adopts the first generation. Its error holds every problem when the files are not fit to serve.
func Open(ctx context.Context, cfg DaemonConfig) (*Daemon, error) {
	d := &Daemon{cfg: cfg}
	d.life, d.end = context.WithCancel(context.Background())
	outcome := d.Reload(ctx)
	if outcome.Result == "refused" {
		d.end()
		return nil, &RefusedError{Problems: outcome.Problems}
	}
	if live := cfg.Builder.Live; live != nil {
		go d.follow(live)
	}
	return d, nil
}

// RefusedError is why a catalog can't be served at all.
type RefusedError struct{ Problems problem.List }

func (e *RefusedError) Error() string {
	n, _ := e.Problems.Count()
	return fmt.Sprintf("the catalog can't be served; problems: %d\n%v", n, e.Problems.Err())
}

// Run watches the files and reloads after each change, until ctx ends.
func (d *Daemon) Run(ctx context.Context) error {
	if d.cfg.Watch == "" {
		<-ctx.Done()
		return nil
	}
	err := loader.Watch(ctx, d.cfg.Watch, d.cfg.Timing, func() { d.Reload(ctx) })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Eager connects the servers that are to be connected before they are called, now and with each generation to come. Nobody
// waits for that.
func (d *Daemon) Eager() {
	d.eager.Store(true)
	g, release := d.Pin()
	defer release()
	g.upstream.Connect()
}

// Reload looks at the files once, now, and says how that ended. Calls that run go on undisturbed. After Close nothing
// changes any more.
func (d *Daemon) Reload(ctx context.Context) Outcome {
	d.reload.Lock()
	defer d.reload.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	start := time.Now()
	outcome := d.once(ctx)
	outcome.Duration = time.Since(start)
	if outcome.Problems == nil {
		outcome.Problems = problem.List{}
	}
	if outcome.Changed == nil {
		outcome.Changed = []string{}
	}
	if serving := d.current.Load(); serving != nil {
		outcome.Generation = serving.ID
	}
	if outcome.Result == "refused" && ctx.Err() != nil {
		return outcome // broken off, which says nothing about the files
	}
	d.log(outcome)
	if d.cfg.Ended != nil {
		d.cfg.Ended(outcome)
	}
	return outcome
}

func (d *Daemon) once(ctx context.Context) Outcome {
	if d.life.Err() != nil {
		return Outcome{Result: "unchanged"}
	}
	snap, problems := d.cfg.Source.Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return d.refuse(ctx, &FailedStatus{Reason: "source", Problems: problems})
	}
	serving := d.current.Load()
	if serving != nil && serving.ID == snap.Digest() {
		d.failed.Store(nil)
		return Outcome{Result: "unchanged"}
	}
	candidate, more := d.cfg.Builder.Build(ctx, snap, serving)
	read := problems
	problems = append(slices.Clone(read), more...)
	if candidate == nil {
		return d.refuse(ctx, &FailedStatus{Digest: snap.Digest(), Reason: "problems", Problems: problems})
	}
	d.commit(ctx, serving, candidate)
	tests := decision.TestSummary{Failures: []string{}}
	if serving != nil {
		tests = d.test(ctx, serving, candidate, snap)
	}
	if refused := adopt(ctx, serving, candidate, tests); refused != nil {
		candidate.Retire()
		return d.refuse(ctx, &FailedStatus{
			Digest: snap.Digest(), Reason: "adoption_denied", Problems: append(problems, refused...), Candidate: inspected(serving, candidate, tests),
		})
	}
	candidate.read, candidate.Warnings = read, problems.Sorted()
	candidate.since = time.Now()
	candidate.adopted = "adopted"
	if serving == nil {
		candidate.adopted = "bootstrap"
	}
	changed := d.swap(serving, candidate)
	d.failed.Store(nil)
	return Outcome{Result: "adopted", Changed: changed, Problems: candidate.Warnings}
}

// swap puts the candidate in the place of serving, which may be nil, and tells the branches that list something else.
func (d *Daemon) swap(serving, candidate *Generation) (changed []string) {
	changed = serving.changed(candidate)
	d.cfg.Builder.Live.admit(serving, candidate)
	d.current.Store(candidate)
	if d.eager.Load() {
		candidate.upstream.Connect()
	}
	if serving != nil {
		if d.cfg.Changed != nil {
			d.cfg.Changed(changed)
		}
		if d.cfg.Forwarded != nil {
			d.cfg.Forwarded()
		}
		serving.Retire()
	}
	return changed
}

func (d *Daemon) refuse(ctx context.Context, why *FailedStatus) Outcome {
	why.Problems = why.Problems.Sorted()
	if ctx.Err() == nil {
		why.At = time.Now()
		d.failed.Store(why)
	}
	return Outcome{Result: "refused", Problems: why.Problems}
}

// commit notes the commit that the candidate's files come from, where a policy looks at it.
func (d *Daemon) commit(ctx context.Context, serving, candidate *Generation) {
	looks := func(g *Generation) bool {
		return g != nil && (g.engine.Reads(decision.Adopt, "candidate", "commit") || g.engine.Reads(decision.Adopt, "serving", "commit"))
	}
	if d.cfg.Commit != nil && (looks(serving) || looks(candidate)) {
		candidate.summary.Commit = d.cfg.Commit(ctx, candidate.ID)
	}
}

// log writes one line a reload, and none where nothing changed.
func (d *Daemon) log(o Outcome) {
	switch o.Result {
	case "adopted":
		g := d.current.Load()
		d.cfg.Log.Info("generation adopted", "generation", g.ID, "how", g.adopted, "tools", g.registry.Len(), "branches", len(g.paths),
			"changed", o.Changed, "warnings", len(o.Problems), "duration", o.Duration.Round(time.Millisecond))
	case "refused":
		if d.current.Load() == nil {
			return // nothing serves yet: Open returns the problems
		}
		n, _ := o.Problems.Count()
		first := ""
		for _, p := range o.Problems {
			if p.Severity == problem.Error {
				first = p.String()
				break
			}
		}
		d.cfg.Log.Error("reload refused; the last good generation keeps serving", "generation", o.Generation, "problems", n, "first", first)
	}
}

// Pin returns the serving generation and keeps what it needs open until release is called, which must happen once. After
// Close it is the last one, whose servers can't be reached any more.
func (d *Daemon) Pin() (g *Generation, release func()) {
	for {
		// A generation that has just been replaced may close between the two steps; the next one is there by then.
		g := d.current.Load()
		if g.pin() {
			return g, g.unpin
		}
		if d.life.Err() != nil {
			return g, func() {}
		}
	}
}

// Status says what serves, since when, and why newer files don't.
func (d *Daemon) Status() Status {
	g := d.current.Load()
	s := Status{
		Version: d.cfg.Version, Healthy: true, Failed: d.failed.Load(), Warnings: g.Warnings, Servers: g.serverStatus(d.cfg.Builder.Pool),
		Generation: GenerationStatus{
			ID: g.ID, Since: g.since, Policy: g.engine.Digest(), Tools: g.registry.Len(), Branches: len(g.paths),
			Hidden: g.hidden(), Adopted: g.adopted,
		},
	}
	if s.Failed != nil {
		s.Healthy = false
	}
	if s.Warnings == nil {
		s.Warnings = problem.List{}
	}
	return s
}

// serverStatus joins what was decided of each server with how its connections are.
func (g *Generation) serverStatus(pool *upstream.Pool) []ServerStatus {
	live := map[string][]upstream.Status{}
	for _, s := range pool.Status() {
		live[s.Server] = append(live[s.Server], s)
	}
	out := []ServerStatus{}
	for _, r := range g.reaches {
		if r.Kind != "server" {
			continue
		}
		s := ServerStatus{Name: r.Name, Trusted: r.Decision.Allow, Trust: r.Trust, Reasons: r.Decision.Reasons, State: "untrusted", Pos: r.Pos}
		if connections := live[r.Name]; r.Decision.Allow && len(connections) > 0 {
			first := slices.MaxFunc(connections, func(a, b upstream.Status) int { return cmp.Compare(rank(a), rank(b)) })
			s.State, s.Since, s.Error = string(first.State), first.Since, first.LastError
			counts := first.Tally()
			s.Connections, s.Counts = connections, &counts
		}
		s.Forward = g.forwardStatus(r.Name)
		for _, q := range g.quarantined {
			if q.Server == r.Name {
				s.Quarantined = append(s.Quarantined, q)
			}
		}
		for _, tool := range g.made.degraded {
			if tool.Server == r.Name {
				s.Degraded = append(s.Degraded, tool)
			}
		}
		out = append(out, s)
	}
	return out
}

// rank orders the connections of one server by how much they say of it: that something is wrong, then that it works.
func rank(s upstream.Status) int {
	switch {
	case s.State == upstream.Failed || s.Breaker != "closed" && s.State != upstream.Draining:
		return 4
	case s.State == upstream.Ready:
		return 3
	case s.State == upstream.Connecting:
		return 2
	case s.State == upstream.Idle:
		return 1
	}
	return 0
}

// Close breaks off a reload that runs, waits for its end, and retires the serving generation: its connections and children
// end when the calls in flight have.
func (d *Daemon) Close() {
	d.end()
	d.reload.Lock()
	defer d.reload.Unlock()
	if g := d.current.Load(); g != nil {
		g.Retire()
	}
}
