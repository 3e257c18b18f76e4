package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

type lockCmd struct {
	Names  []string `arg:"" optional:"" name:"name" help:"With --accept or --effect: tools by their name in the catalog, their name at the server, or SERVER/NAME; * matches any characters."`
	Accept bool     `help:"Accept the servers' current definitions of the named tools."`
	Effect string   `enum:"read,write," default:"" help:"Decide the effect of the named locked tools: read or write. No server is asked."`
	Check  bool     `help:"Write nothing, and fail if the lock differs from what the servers offer or the catalog selects."`
	Dir    string   `short:"C" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	catalogFlags
}

func (c *lockCmd) Run(e *env) error {
	switch {
	case c.Accept && c.Effect != "" || c.Check && (c.Accept || c.Effect != ""):
		return errors.New("--accept, --effect and --check exclude each other")
	case (c.Accept || c.Effect != "") != (len(c.Names) > 0):
		return errors.New("names stand with --accept or --effect, and these need names, as in `catalogd lock --accept NAME`")
	case c.Effect != "":
		return c.decide(e)
	}
	root, err := e.root(c.Dir)
	if err != nil {
		return err
	}
	survey, err := c.survey(e, root)
	if err != nil {
		return err
	}
	next := &lockfile.File{Servers: slices.Clone(survey.Lock.Servers)}
	failed, hits := false, map[string]bool{}
	report := lockReport{Tools: []lockfile.Outcome{}, Waiting: []lockfile.Change{}, Removed: []removed{}, Unasked: []unasked{}}
	offers := map[string]lockfile.Offer{}
	for _, s := range survey.Lock.Servers {
		if !slices.ContainsFunc(survey.Servers, func(o generation.Surveyed) bool { return o.Server.Name == s.Name }) {
			next.Put(lockfile.Server{Name: s.Name})
			e.printf("%s: taken out, because no server of this name discovers its tools\n", s.Name)
		}
	}
	for _, s := range survey.Servers {
		if s.Err != nil {
			kept := ""
			if s.Lacking {
				kept = "; what is locked of it is kept as it is"
			}
			failed = failed || !s.Lacking // a command that is missing here is no difference
			report.Unasked = append(report.Unasked, unasked{s.Server.Name, s.Err.Error()})
			fmt.Fprintf(e.stderr, "catalogd: server %q could not be asked: %s%s\n", s.Server.Name, problem.Printable(s.Err.Error()), kept)
			continue
		}
		c.misnamed(e, s)
		old, _ := survey.Lock.Server(s.Server.Name)
		old.Name = s.Server.Name
		merged, waiting := lockfile.Merge(old, s.Offer, s.Chosen, func(tool string) bool {
			return c.Accept && named(c.Names, s.Server, tool, hits)
		}, time.Now())
		next.Put(merged)
		offers[s.Server.Name] = chosenOf(s)
		report.Waiting = append(report.Waiting, waiting...)
		report.Removed = append(report.Removed, c.differences(e, s, old, merged, waiting)...)
		if len(old.Tools) > 0 && merged.Identity.Name != s.Offer.Identity.Name {
			e.printf("%s: waits: it was %q and says that it is %q; to take it: catalogd lock --accept '%s/*'\n",
				s.Server.Name, old.Identity.Name, s.Offer.Identity.Name, s.Server.Name)
			failed = failed || c.Check
		}
		failed = failed || c.Check && len(waiting) > 0
	}
	for _, name := range c.Names {
		if !hits[name] {
			return fmt.Errorf("no server offers or has a tool %q; `catalogd drift` lists what differs", name)
		}
	}
	report.Tools = append(report.Tools, lockfile.Outcomes(survey.Build, survey.Lock, next, offers)...)
	before, after := survey.Lock.Marshal(), next.Marshal()
	report.Changed = string(before) != string(after)
	if !c.Check || report.Changed {
		if err := report.print(e); err != nil {
			return err
		}
	}
	switch {
	case c.Check && report.Changed:
		failed = true
		e.printf("%s is not what `catalogd lock` would write; run it, and review the difference\n", lockfile.Name)
	case c.Check && !failed:
		e.printf("%s: up to date\n", lockfile.Name)
	case !c.Check && report.Changed:
		if err := writeFile(filepath.Join(root, lockfile.Name), after); err != nil {
			return err
		}
		e.printf("%s: written\n", lockfile.Name)
	case !c.Check:
		e.printf("%s: nothing changed\n", lockfile.Name)
	}
	if e.json {
		if err := e.printJSON(report); err != nil {
			return err
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// misnamed warns of tools that discover names and the server doesn't offer: a misspelt name removes its tool
// from the lock, together with the effect that was decided for it.
func (c *lockCmd) misnamed(e *env, s generation.Surveyed) {
	offered := slices.Sorted(maps.Keys(s.Offer.Tools))
	for _, name := range slices.Concat(s.Server.Discover.Only, slices.Sorted(maps.Keys(s.Server.Discover.Tools))) {
		if slices.ContainsFunc(offered, func(tool string) bool { return registry.MatchName(name, tool) }) || s.Offer.Bad[name] != "" {
			continue
		}
		text := fmt.Sprintf("catalogd: server %q offers no tool %q, which its discover names", s.Server.Name, name)
		if near := registry.Nearest(name, offered); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		fmt.Fprintln(e.stderr, problem.Printable(text))
	}
}

// lockReport is the JSON form of a lock's result.
type lockReport struct {
	// Changed: the lock differs from the previous one; it is written unless --check is given.
	Changed bool               `json:"changed"`
	Tools   []lockfile.Outcome `json:"tools"`
	// Waiting are the tools that are not adopted without confirmation.
	Waiting []lockfile.Change `json:"waiting"`
	Removed []removed         `json:"removed"`
	Unasked []unasked         `json:"unasked"`
}

// removed is a tool that was locked and no longer exists.
type removed struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// unasked is a server that could not be queried.
type unasked struct {
	Server string `json:"server"`
	Error  string `json:"error"`
}

// chosenOf returns the tools of a server that the catalog selects.
func chosenOf(s generation.Surveyed) lockfile.Offer {
	offer := s.Offer
	offer.Bad = maps.Clone(offer.Bad)
	maps.DeleteFunc(offer.Bad, func(tool, _ string) bool { return !s.Chosen(tool) })
	return offer
}

// print prints a table of the tools with something to report.
func (r lockReport) print(e *env) error {
	rows := [][]string{{"TOOL", "NAME", "EFFECT", "STATE", "NOTES"}}
	leftOut := 0
	for _, o := range r.Tools {
		notes := o.Notes()
		if o.State == lockfile.LeftOut {
			leftOut++
		}
		if o.State == lockfile.Unchanged && notes == "" {
			continue
		}
		rows = append(rows, []string{
			o.Server + "/" + o.Tool, cmp.Or(o.Name, "-"), cmp.Or(string(o.Effect), "-"), string(o.State), notes,
		})
	}
	if e.json || len(rows) == 1 {
		return nil
	}
	if err := e.table(rows); err != nil {
		return err
	}
	e.printf("%s, left out: %d\n", count(len(r.Tools)-leftOut, "tool"), leftOut)
	return nil
}

// differences prints one line for each tool that was removed or is waiting.
func (c *lockCmd) differences(
	e *env, s generation.Surveyed, old, merged lockfile.Server, waiting []lockfile.Change,
) (dropped []removed) {
	for _, t := range old.Tools {
		if _, ok := merged.Tool(t.Name); !ok {
			dropped = append(dropped, removed{s.Server.Name, t.Name})
			e.printf("%s/%s: taken out\n", s.Server.Name, problem.Printable(t.Name))
		}
	}
	for _, w := range waiting {
		hint := fmt.Sprintf("; to take it: catalogd lock --accept %s/%s", s.Server.Name, w.Tool)
		if w.Kind == lockfile.DefinitionUnusable {
			hint = ""
		}
		e.printf("%s/%s: waits: %s%s\n", s.Server.Name, problem.Printable(w.Tool), problem.Printable(w.Summary()), problem.Printable(hint))
	}
	return dropped
}

// decide sets the effect of locked tools, only in the file.
func (c *lockCmd) decide(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	path := filepath.Join(cfg.Dir, lockfile.Name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s yet; `catalogd lock` writes it", lockfile.Name)
	}
	if err != nil {
		return err
	}
	file, problems := lockfile.Read(data)
	if problems.HasErrors() {
		return &catalogd.RefusedError{Problems: problems}
	}
	servers, err := catalogd.Servers(e.ctx, cfg)
	if err != nil {
		return err
	}
	hits := map[string]bool{}
	for _, s := range file.Servers {
		declared := registry.Server{Name: s.Name}
		if i := slices.IndexFunc(servers, func(d registry.Server) bool { return d.Name == s.Name }); i >= 0 {
			declared = servers[i]
		}
		for _, tool := range s.Names() {
			if named(c.Names, declared, tool, hits) && s.SetEffect(tool, registry.Effect(c.Effect)) {
				e.printf("%s/%s: effect %s\n", s.Name, problem.Printable(tool), c.Effect)
			}
		}
	}
	for _, name := range c.Names {
		if !hits[name] {
			return fmt.Errorf("no tool %q is locked; %s lists what is", name, lockfile.Name)
		}
	}
	return writeFile(path, file.Marshal())
}

// named reports whether one of the names refers to the tool, and records which did.
func named(names []string, s registry.Server, tool string, hits map[string]bool) bool {
	found := false
	for _, name := range names {
		if server, remote, ok := strings.Cut(name, "/"); registry.MatchName(name, tool) || registry.MatchName(name, lockfile.LocalName(s, tool)) ||
			ok && server == s.Name && registry.MatchName(remote, tool) {
			hits[name], found = true, true
		}
	}
	return found
}

// survey queries the servers, and refuses a catalog that has errors.
func (f catalogFlags) survey(e *env, dir string) (*generation.Survey, error) {
	cfg, err := f.config(e, dir)
	if err != nil {
		return nil, err
	}
	done := e.progress("asking the servers")
	survey, problems, err := catalogd.Survey(e.ctx, cfg)
	done()
	if err := errors.Join(err, e.ctx.Err()); err != nil {
		return nil, err
	}
	if survey == nil {
		return nil, &catalogd.RefusedError{Problems: problems}
	}
	return survey, nil
}

// printf writes text for people, and nothing if JSON was requested.
func (e *env) printf(format string, args ...any) {
	if !e.json {
		fmt.Fprintf(e.stdout, format, args...)
	}
}
