// Package daemon decides which generation serves. It watches the files, builds a candidate after each change,
// requests the adopt decision of the serving policy, and swaps one pointer. If a build fails, the last good
// generation keeps serving. Builds run one at a time: newer files supersede a running build, which is
// cancelled, and abandoned if it doesn't end. The last adoption is recorded, so that after a restart the same
// policy decides.
//
// The package also executes calls of tools with a side effect (Effects), because each attempt runs on the
// generation that serves at that moment, and it reports the state of all of this (Status).
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/progress"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// Config configures a Daemon.
type Config struct {
	Source  loader.Source
	Builder *generation.Builder
	// Watch is the directory that is watched. If empty, nothing is watched, and only Reload reads the files
	// again.
	Watch string
	// Once refuses a generation if a decision times out, instead of asking again later.
	Once bool
	// Timing configures the watch; the zero value is the default.
	Timing  loader.WatchConfig
	Version string
	Log     *slog.Logger
	// Changed is called after each swap but the first, with the branches whose visible set changed, before
	// Reload returns. It may be nil.
	Changed func(branches []string)
	// Commit returns the commit that the files of a digest come from; nil if that is unknown.
	Commit func(ctx context.Context, digest string) decision.Commit
	// PassthroughChanged is called after each swap but the first, and when passthrough items of servers have
	// changed. It may be nil.
	PassthroughChanged func()
	// ResourcesUpdated receives the resources that servers have reported as changed. It may be nil.
	ResourcesUpdated func([]generation.ResourceUpdate)
	// Ended receives the outcome of every reload, whether watched or requested. It may be nil.
	Ended func(Outcome)
	// Adoption records adoptions across restarts; nil records none.
	Adoption *AdoptionRecord
}

// Daemon owns the serving generation. All methods are safe for concurrent use. Open builds the first
// generation or returns an error; Run watches until its context ends; Close releases the serving generation.
type Daemon struct {
	cfg     Config
	current atomic.Pointer[generation.Generation]
	failed  atomic.Pointer[FailedStatus]
	builds  builds
	ctx     context.Context
	end     context.CancelFunc // cancels ctx, and with it a running build
	eager   atomic.Bool
	awaited atomic.Bool // a change was seen whose build has not begun
	tested  testResults
	refused atomic.Pointer[string] // the refused files that were last logged; nil if none are refused
	missing atomic.Pointer[string] // the secrets that were last logged as missing
	retry   retryTimer
	before  *buildcache.Adopted // adopted before the start; nil once Open has returned
}

// Open builds and adopts the first generation. If the files differ from those adopted before (AdoptionRecord),
// the policy adopted before decides on them; if it refuses, or if they have errors, the files adopted before
// are served. If nothing can be served, the error is a RefusedError with all problems.
func Open(ctx context.Context, cfg Config) (*Daemon, error) {
	d := &Daemon{cfg: cfg}
	var err error
	if d.before, err = cfg.Adoption.load(); err != nil {
		return nil, err
	}
	if err := cfg.Adoption.link(d.before); err != nil {
		cfg.Log.Error("what was adopted last is not recorded under every name of the catalog: a start by another one may not ask its policy", "error", err)
	}
	if cfg.Adoption != nil && cfg.Adoption.Bootstrap {
		cfg.Log.Warn("bootstrap: the policy that was adopted last is not asked", "record", cfg.Adoption.Record.Path())
	}
	d.ctx, d.end = context.WithCancel(context.Background())
	cfg.Builder.Tolerant = !cfg.Once
	outcome := d.Reload(ctx)
	d.before = nil
	if d.current.Load() == nil {
		d.end()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, &RefusedError{Problems: outcome.Problems}
	}
	if live := cfg.Builder.Live; live != nil {
		go d.follow(live)
	}
	return d, nil
}

// RefusedError is the error of a catalog that can't be served.
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
	var reloads sync.WaitGroup
	defer reloads.Wait()
	err := loader.Watch(ctx, d.cfg.Watch, d.cfg.Timing, func() {
		if !d.awaited.Swap(true) { // else the waiting reload reads this change, too
			reloads.Go(func() { d.reload(ctx, func() { d.awaited.Store(false) }) })
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Eager connects the servers that are to be connected before their first call, now and with each further
// generation. It doesn't wait for the connections.
func (d *Daemon) Eager() {
	d.eager.Store(true)
	g, release := d.Pin()
	defer release()
	g.Upstream().Connect()
}

// Reload reads the files once, now, and returns the outcome. It waits for a running build, and supersedes it
// if it doesn't end and its files are outdated. Calls in flight continue. After Close nothing changes.
func (d *Daemon) Reload(ctx context.Context) Outcome { return d.reload(ctx, func() {}) }

// reload is Reload; begun is called before the files are read.
func (d *Daemon) reload(ctx context.Context, begun func()) Outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	start := time.Now()
	outcome := Outcome{Result: "refused"}
	if d.ctx.Err() != nil {
		outcome.Result = "unchanged"
	}
	building, a, err := d.builds.take(ctx, d.newer(ctx))
	begun()
	if err == nil {
		var ok bool
		if outcome, ok = d.builds.run(building, a, func() Outcome { return d.once(building, a) }); !ok {
			outcome = Outcome{Result: "refused"}
			d.cfg.Log.Error("a build does not end and is left behind", "since", a.since, "step", a.meter.Step().What)
		}
		superseded := errors.Is(context.Cause(building), errSuperseded)
		if superseded && outcome.Result == "refused" {
			outcome = Outcome{Result: "superseded"}
			d.cfg.Log.Warn("a build is superseded by newer files", "since", a.since, "step", a.meter.Step().What)
		}
		d.builds.count(superseded)
	}
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
		return outcome // cancelled, which says nothing about the files
	}
	d.log(outcome)
	d.logSecrets()
	if d.cfg.Ended != nil {
		d.cfg.Ended(outcome)
	}
	d.scheduleRetry(outcome.Result == "adopted")
	return outcome
}

// newer returns a function that reports whether the current files differ from those of a build.
func (d *Daemon) newer(ctx context.Context) func(digest string) bool {
	return func(digest string) bool {
		snap, _ := d.cfg.Source.Snapshot(ctx)
		return snap != nil && snap.Digest() != digest
	}
}

func (d *Daemon) once(ctx context.Context, a *build) Outcome {
	if d.ctx.Err() != nil {
		return Outcome{Result: "unchanged"}
	}
	snap, problems := d.cfg.Source.Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return d.refuseFiles(ctx, a, &FailedStatus{Reason: "source", Problems: problems})
	}
	a.reads(snap.Digest())
	serving := d.current.Load()
	if serving != nil && serving.ID == snap.Digest() && !serving.Outdated() {
		d.failed.Store(nil)
		return Outcome{Result: "unchanged"}
	}
	if d.builds.full() {
		problems.Errorf(problem.LoadFailed, problem.Position{File: "."}, "",
			"nothing is built while %d builds that were superseded have not ended; take back what they can't end of, or restart the daemon", maxAbandoned)
		return d.refuse(ctx, &FailedStatus{Digest: snap.Digest(), Reason: "problems", Problems: problems})
	}
	candidate, more := d.cfg.Builder.Build(ctx, snap, serving)
	read := problems
	problems = append(slices.Clone(read), more...)
	if candidate == nil {
		return d.refuseFiles(ctx, a, &FailedStatus{Digest: snap.Digest(), Reason: "problems", Problems: problems})
	}
	asked, how := serving, "adopted"
	switch {
	case serving != nil:
	case d.before == nil:
		how = "bootstrap"
	case d.before.Snapshot.Digest() == candidate.ID:
		how = "resumed"
	default:
		var refused problem.List
		if asked, refused = d.loadPast(ctx, d.before); asked == nil {
			candidate.Retire()
			return d.refuse(ctx, &FailedStatus{Digest: snap.Digest(), Reason: "adoption_denied", Problems: append(problems, refused...)})
		}
	}
	d.commit(ctx, asked, candidate)
	tests := decision.TestSummary{Failures: []string{}}
	if asked != nil {
		progress.Begin(ctx, "running the policy's tests", "")
		tests = d.test(ctx, asked, candidate, snap)
	}
	progress.Begin(ctx, "asking whether it is adopted", "")
	if refused := generation.Adopt(ctx, asked, candidate, tests); refused != nil {
		candidate.Retire()
		if asked != serving {
			hint := bootstrapHint
			if !d.cfg.Adoption.ReadOnly {
				if err := d.resume(ctx, a, d.before, asked.Summary().Commit); err != nil {
					hint = fmt.Sprintf("what was adopted last can't be served in its place: %v; %s", err, hint)
				}
			}
			if d.current.Load() == nil {
				refused[len(refused)-1].Message += "; " + hint
			}
		}
		return d.refuse(ctx, &FailedStatus{
			Digest: snap.Digest(), Reason: "adoption_denied", Problems: append(problems, refused...), Candidate: inspected(asked, candidate, tests),
		})
	}
	if !d.builds.commit(a) {
		candidate.Retire()
		return Outcome{Result: "refused"}
	}
	candidate.Read, candidate.Warnings = read, problems.Sorted()
	candidate.Since = time.Now()
	candidate.Adopted = how
	if how != "resumed" {
		if err := d.cfg.Adoption.save(candidate, snap); err != nil {
			err = errors.Join(err, d.cfg.Adoption.Record.Supersede())
			d.cfg.Log.Error("the adoption is not recorded: after a restart the policy before decides on these files again", "generation", candidate.ID, "error", err)
		}
	}
	changed := d.swap(serving, candidate)
	d.failed.Store(nil)
	return Outcome{Result: "adopted", Changed: changed, Problems: candidate.Warnings}
}

// swap replaces serving, which may be nil, by candidate, and returns the branches whose visible set changed.
func (d *Daemon) swap(serving, candidate *generation.Generation) (changed []string) {
	changed = serving.Changed(candidate)
	d.cfg.Builder.Live.Adopt(serving, candidate)
	candidate.OnNewView(func() {
		if d.cfg.Changed != nil {
			d.cfg.Changed(nil)
		}
	})
	d.current.Store(candidate)
	if d.eager.Load() {
		candidate.Upstream().Connect()
	}
	if serving != nil {
		if d.cfg.Changed != nil {
			d.cfg.Changed(changed)
		}
		if d.cfg.PassthroughChanged != nil {
			d.cfg.PassthroughChanged()
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

// commit sets the commit of the candidate's files, if a policy reads it.
func (d *Daemon) commit(ctx context.Context, serving, candidate *generation.Generation) {
	if d.cfg.Commit != nil && (serving != nil && serving.ReadsCommit() || candidate.ReadsCommit()) {
		candidate.SetCommit(d.cfg.Commit(ctx, candidate.ID))
	}
}

// RefusedAtStart is the message of the log for files that are refused at a start while what was adopted last serves.
const RefusedAtStart = "the files are refused at this start; what was adopted last is served in their place"

// log writes one line per reload, and none if nothing changed or the same files are refused once more. The first
// reload that refuses nothing after one that did has another line.
func (d *Daemon) log(o Outcome) {
	if o.Result == "adopted" || o.Result == "unchanged" && d.ctx.Err() == nil {
		if d.refused.Swap(nil) != nil {
			d.cfg.Log.Info("the files are right again, and are served", "generation", o.Generation)
		}
	}
	switch o.Result {
	case "adopted":
		g := d.current.Load()
		d.cfg.Log.Info("generation adopted", "generation", g.ID, "how", g.Adopted, "tools", g.Registry().Len(), "branches", len(g.Branches()),
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
		files := fmt.Sprint(o.Problems.Err())
		if failed := d.failed.Load(); failed != nil && failed.Digest != "" {
			files = failed.Digest + failed.Reason
		}
		if was := d.refused.Swap(&files); was != nil && *was == files {
			return
		}
		what := "reload refused; the last good generation keeps serving"
		if d.before != nil {
			what = RefusedAtStart
		}
		d.cfg.Log.Error(what, "generation", o.Generation, "problems", n, "first", first)
	}
}

// SecretsMissing is the message of the log for the secrets that can't be read: at the start, and at each reload after
// which they are others.
const SecretsMissing = "secrets are missing; calls that need them fail"

// logSecrets warns of the secrets that can't be read, once for the same ones.
func (d *Daemon) logSecrets() {
	g := d.current.Load()
	if g == nil {
		return
	}
	var names []string
	for _, s := range g.MissingSecrets() {
		names = append(names, s.String())
	}
	now := strings.Join(names, ", ")
	was := d.missing.Swap(&now)
	switch {
	case was != nil && *was == now:
	case now != "":
		d.cfg.Log.Warn(SecretsMissing, "secrets", now)
	case was != nil:
		d.cfg.Log.Info("no secret is missing any more", "were", *was)
	}
}

// Pin returns the serving generation and keeps its resources open until release is called, which must happen
// exactly once. After Close it returns the last one, whose servers can't be reached.
func (d *Daemon) Pin() (g *generation.Generation, release func()) {
	for {
		// A replaced generation may close between the two steps; the next one is stored by then.
		g := d.current.Load()
		if g.Pin() {
			return g, g.Unpin
		}
		if d.ctx.Err() != nil {
			return g, func() {}
		}
	}
}

// Status returns the state of the daemon: the serving generation, and why newer files are not served.
func (d *Daemon) Status() Status {
	g := d.current.Load()
	hidden, reasons := g.Hidden()
	s := Status{
		Version: d.cfg.Version, Healthy: true, Failed: d.failed.Load(), Warnings: append(slices.Clone(g.Warnings), g.PolicyProblems()...).Sorted(), Servers: serverStatus(g, d.cfg.Builder.Pool),
		MissingSecrets: g.MissingSecrets(),
		Generation: GenerationStatus{
			ID: g.ID, Since: g.Since, Policy: g.Policy(), Tools: g.Registry().Len(), Branches: len(g.Branches()),
			Hidden: hidden, Unseen: g.Unseen(), HiddenTools: reasons, Adopted: g.Adopted,
		},
	}
	s.Build, s.Undecided, s.Overdue = d.builds.status(), g.Undecided(), decision.OverdueEvaluations()
	stuck := s.Build != nil && (s.Build.Stuck || s.Build.Abandoned > 0)
	s.Healthy = s.Failed == nil && !stuck && len(s.Undecided) == 0
	if s.Warnings == nil {
		s.Warnings = problem.List{}
	}
	return s
}

// serverStatus joins the connect decision of each server with the state of its connections.
func serverStatus(g *generation.Generation, pool *upstream.Pool) []ServerStatus {
	live := map[string][]upstream.Status{}
	for _, s := range pool.Status() {
		live[s.Server] = append(live[s.Server], s)
	}
	out := []ServerStatus{}
	for _, r := range g.Outward() {
		if r.Kind != "server" {
			continue
		}
		s := ServerStatus{Name: r.Name, Trusted: r.Decision.Allow, Trust: r.Trust, Reasons: r.Decision.Reasons, State: "untrusted", Pos: r.Pos}
		if r.Missing != "" {
			s.State, s.Error = "missing", r.Missing
		}
		if connections := live[r.Name]; r.Decision.Allow && len(connections) > 0 {
			first := slices.MaxFunc(connections, func(a, b upstream.Status) int { return cmp.Compare(rank(a), rank(b)) })
			s.State, s.Since, s.Error = string(first.State), first.Since, first.LastError
			counts := first.Tally()
			s.Connections, s.Counts = connections, &counts
		}
		s.Forward = g.ForwardStatus(r.Name)
		for _, q := range g.Quarantined() {
			if q.Server == r.Name {
				s.Quarantined = append(s.Quarantined, q)
			}
		}
		for _, tool := range g.Degraded() {
			if tool.Server == r.Name {
				s.Degraded = append(s.Degraded, tool)
			}
		}
		out = append(out, s)
	}
	return out
}

// rank orders the connections of one server by relevance: failing ones first, then ready ones.
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

// Close cancels a running build, waits briefly for its end, and retires the serving generation: its
// connections and child processes end after the calls in flight.
func (d *Daemon) Close() {
	d.end()
	if _, a, err := d.builds.take(context.Background(), func(string) bool { return false }); err == nil {
		defer d.builds.ended(a)
		defer a.cancel(nil)
	}
	if g := d.current.Load(); g != nil {
		g.Retire()
	}
}
