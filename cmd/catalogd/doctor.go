package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/doctor"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/problem"
)

type doctorCmd struct {
	Dir     string        `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Addr    string        `default:"127.0.0.1:8420" help:"The address that a daemon is to listen on."`
	State   string        `placeholder:"DIR" help:"The daemon's state directory, by default catalogd's own in the user's state directory; none keeps nothing."`
	Timeout time.Duration `default:"5s" help:"How long each trusted server, and each host of trusted http tools, may take to answer."`
	catalogFlags
}

// examined is the JSON form of what doctor finds.
type examined struct {
	Findings []doctor.Finding `json:"findings"`
	Errors   int              `json:"errors"`
	Warnings int              `json:"warnings"`
}

func (c *doctorCmd) Run(e *env) error {
	began := time.Now()
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return errors.New("--timeout must be more than 0")
	}
	root, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return err
	}
	cfg.Once = true
	done := e.progress("examining this machine")
	found := c.examine(e, cfg, root, began)
	done()
	if err := e.ctx.Err(); err != nil {
		return err
	}
	out := examined{Findings: found}
	for _, f := range found {
		switch f.Severity {
		case doctor.Error:
			out.Errors++
		case doctor.Warning:
			out.Warnings++
		}
	}
	if e.json {
		if err := e.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			if err := e.println(strings.Join(f.Lines(), "\n")); err != nil {
				return err
			}
		}
		fmt.Fprintf(e.stderr, "%s, %s, %d ok\n", count(out.Errors, "error"), count(out.Warnings, "warning"), len(found)-out.Errors-out.Warnings)
	}
	if out.Errors > 0 {
		return errFailed
	}
	return nil
}

// examine runs every check. What needs a catalog that loads is left out of one that doesn't.
func (c *doctorCmd) examine(e *env, cfg catalogd.Config, root string, began time.Time) []doctor.Finding {
	found := c.state()
	found = append(found, c.address(e, root)...)
	catalog, err := catalogd.New(e.ctx, cfg)
	found = append(found, loaded(root, catalog, err))
	leads := map[string]time.Duration{}
	if err == nil {
		defer catalog.Close()
		status := catalog.Status()
		found = append(found, sandbox(status))
		found = append(found, programs(e, catalog, status.Warnings)...)
		found = append(found, secrets(status.MissingSecrets)...)
		found = append(found, servers(e, catalog.ProbeServers(e.ctx, c.Timeout), leads)...)
		for _, p := range catalog.ProbeTools(e.ctx, c.Timeout) {
			found = append(found, doctor.Tools(p.Tools, p.Origin, p.Err))
		}
	} else {
		found = append(found, sandboxAlone(e.ctx, cfg))
	}
	found = append(found, doctor.Limits(root, cfg.CompileMemory)...)
	found = append(found, doctor.Watched(root)...)
	return append(found, doctor.Clock(began, time.Now(), leads)...)
}

func (c *doctorCmd) state() []doctor.Finding {
	dir := c.State
	if dir == "none" {
		return []doctor.Finding{{Check: "state", Severity: doctor.Warning, Where: "--state none",
			Message: "a restart forgets what was adopted, and calls with a side effect need --intents", Fix: "name a directory of your own with --state"}}
	}
	if dir == "" {
		var err error
		if dir, err = buildcache.DefaultDirectory(); err != nil {
			return []doctor.Finding{{Check: "state", Severity: doctor.Error, Where: "the user's state directory",
				Message: err.Error(), Fix: "set HOME or XDG_STATE_HOME, or name a directory with --state"}}
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return []doctor.Finding{{Check: "state", Severity: doctor.Error, Where: c.State, Message: err.Error(), Fix: "name an absolute path with --state"}}
	}
	return doctor.State(dir)
}

// loaded says whether the catalog can be served, of which catalogd check says the rest.
func loaded(root string, catalog *catalogd.Catalog, err error) doctor.Finding {
	f := doctor.Finding{Check: "catalog", Severity: doctor.Error, Where: root}
	var refused *catalogd.RefusedError
	switch {
	case errors.As(err, &refused):
		n, _ := refused.Problems.Count()
		f.Message, f.Fix = "it has "+count(n, "error"), "catalogd check says where and why"
	case err != nil:
		f.Message, f.Fix = "it can't be opened: "+err.Error(), "catalogd check says more"
	default:
		s := catalog.Status()
		f.Severity = doctor.OK
		f.Message = fmt.Sprintf("%s on %s", toolsOf(s.Generation), countBranches(s.Generation.Branches))
		if _, warnings := s.Warnings.Count(); warnings > 0 {
			f.Message += "; catalogd check has " + count(warnings, "warning")
		}
	}
	return f
}

func countBranches(n int) string {
	if n == 1 {
		return "1 branch"
	}
	return fmt.Sprintf("%d branches", n)
}

// sandboxAlone is sandbox of a catalog that doesn't load: a worker compiles the starter.
func sandboxAlone(ctx context.Context, cfg catalogd.Config) doctor.Finding {
	catalog, err := catalogd.New(ctx, catalogd.Config{
		FS: catalogd.Starter(), Once: true, Worker: cfg.Worker, CompileTimeout: cfg.CompileTimeout, CompileMemory: cfg.CompileMemory, Log: cfg.Log,
	})
	if err != nil {
		return doctor.Finding{Check: "sandbox", Severity: doctor.Error, Where: "workers",
			Message: "no worker process can compile: " + err.Error(), Fix: "raise the limits of processes and memory"}
	}
	defer catalog.Close()
	return sandbox(catalog.Status())
}

// sandbox says what confines the processes that evaluate CUE and jq.
func sandbox(s daemon.Status) doctor.Finding {
	if s.Worker == nil {
		return doctor.Sandbox(nil)
	}
	return doctor.Sandbox(s.Worker.Sandbox)
}

// programs says which programs the trusted servers and tools start, and which of them are missing here.
func programs(e *env, catalog *catalogd.Catalog, warnings problem.List) (found []doctor.Finding) {
	users := map[string][]string{} // by path
	declared := map[string]string{}
	for _, r := range catalog.ConnectDecisions() {
		if r.Target.Command != nil && r.Missing == "" {
			path := r.Target.Command.Path
			users[path] = append(users[path], r.Kind+" "+r.Name)
			declared[path] = r.Target.Command.Declared
		}
	}
	for path, by := range users {
		slices.Sort(by)
		who := by[0]
		if len(by) > 1 {
			who += fmt.Sprintf(" and %d more", len(by)-1)
		}
		found = append(found, doctor.Command(declared[path], path, who))
	}
	for _, p := range warnings {
		if p.Code == problem.MissingCommand {
			_, rest, _ := strings.Cut(p.Message, `command "`) // as egress.Resolve writes it
			program, _, _ := strings.Cut(rest, `"`)
			fix := doctor.Install(program)
			if strings.Contains(p.Message, egress.NotRunnable) {
				fix = "make that file one that this user can run, or declare the path of another; then reload"
			}
			found = append(found, doctor.Finding{Check: "command", Severity: doctor.Warning, Where: e.seen(p.Position).String(),
				Message: p.Message, Fix: fix})
		}
	}
	slices.SortStableFunc(found, func(a, b doctor.Finding) int { return cmp.Compare(a.Where, b.Where) })
	return found
}

// secrets says which secrets are missing, and who uses them.
func secrets(missing []catalogd.Secret) (found []doctor.Finding) {
	for _, s := range missing {
		fix := "set it for the daemon, or correct the reference"
		if strings.HasPrefix(s.Reference, "file:") {
			fix = "let this user read a regular file there, or correct the reference"
		}
		found = append(found, doctor.Finding{Check: "secret", Severity: doctor.Warning, Where: s.String(),
			Message: strings.TrimPrefix(s.Missing, "secret "+s.Reference+": ") + ", so calls that need it fail", Fix: fix})
	}
	return found
}

// servers says which trusted HTTP servers answer, and fills in by how much this clock is ahead of theirs.
func servers(e *env, probed []catalogd.ServerProbe, leads map[string]time.Duration) (found []doctor.Finding) {
	for _, p := range probed {
		if p.Dated {
			leads[p.Origin] = p.Lead
		}
		found = append(found, doctor.Server(p.Server, cmp.Or(p.Origin, e.seen(p.Pos).String()), p.Status, p.Err))
	}
	return found
}
