package generation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// inputs are the compiled files that a generation is built from.
type inputs struct {
	id     string
	engine *decision.Engine // nil if the policy doesn't load
	policy string
	// declared is the build of the CUE alone, build adds the discovered tools; declared is not modified.
	declared, build *registry.Build
	locked          *lockfile.File
	degraded        []lockfile.Degraded
	problems        problem.List
}

// join adds the discovered tools to the declared ones. If the declarations are broken, a server may be
// missing for that reason alone, so no stale lock is reported.
func (in *inputs) join(fsys fs.FS, broken bool) problem.List {
	locked, problems := lockfile.Load(fsys)
	in.locked, in.build = locked, in.declared
	joined := lockfile.Join(in.declared, locked)
	in.degraded = joined.Degraded
	if !problems.HasErrors() { // else tools are missing because of the lock, not the catalog
		problems = append(problems, joined.Problems...)
	}
	if broken {
		problems = slices.DeleteFunc(problems, func(p problem.Problem) bool { return p.Code == problem.StaleLock })
	}
	if !slices.ContainsFunc(in.declared.Servers, func(s registry.Server) bool { return s.Discover != nil }) {
		return problems
	}
	all := *in.declared
	all.Tools = slices.Concat(in.declared.Tools, joined.Tools)
	slices.SortFunc(all.Tools, func(x, y registry.Tool) int { return cmp.Compare(x.Name, y.Name) })
	in.build = &all
	unlocked := func(p problem.Problem) bool { return p.Code == problem.NotLocked || p.Code == problem.BadLock }
	if !slices.ContainsFunc(problems, unlocked) { // else branches may select tools that are not known yet
		var leftOut []string
		for _, d := range joined.Degraded {
			leftOut = append(leftOut, d.Name)
		}
		problems = append(problems, loader.Selections(&all, leftOut)...)
	}
	return append(problems, in.leaveOut()...)
}

// complete completes the tools of Go functions.
func (in *inputs) complete(functions Functions, processors []registry.Processor) problem.List {
	tools, problems := functions.complete(in.build.Tools, processors)
	all := *in.build
	all.Tools = tools
	in.build = &all
	return problems
}

// loadPolicy loads the snapshot's policy, or reuses the previous engine if no file of the policy has changed.
func (b *Builder) loadPolicy(ctx context.Context, snap *loader.Snapshot, policy string, prev *Generation) (*decision.Engine, problem.List) {
	if prev != nil && policy != "" && prev.policy == policy {
		return prev.engine, nil
	}
	return decision.Load(ctx, snap.FS(), b.Policy)
}

// namedHosts returns the host of every well-formed URL that the build declares.
func namedHosts(build *registry.Build) (names []string) {
	add := func(declared string) {
		if u, err := egress.ParseURL(declared); err == nil {
			names = append(names, u.Host)
		}
	}
	for _, s := range build.Servers {
		if s.HTTP != nil {
			add(s.HTTP.URL)
		}
	}
	for _, t := range build.Tools {
		if t.Binding.HTTP != nil {
			add(t.Binding.HTTP.URL)
		}
	}
	return names
}

// policyFiles returns a digest of every file below policy/, tests included; empty if they can't be read.
func policyFiles(fsys fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(fsys, "policy", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(sum, "%q %d\n", name, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
