package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cuelang.org/go/cue/parser"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Config configures a Compiler.
type Config struct {
	// Schema is the schema.cue of this binary. Every catalog is compiled with it, whatever the catalog's own
	// copy says.
	Schema []byte
	// MaxTools caps the tools of a build; 10,000 by default.
	MaxTools int
	// Steps is how many packages are evaluated in parallel; the number of processors by default.
	Steps int
	// Logger receives one line when the CUE evaluator panics; nil discards it.
	Logger *slog.Logger
	// Begin is called at the start of each step, from several goroutines concurrently; the function that it
	// returns is called at the end of the step. Begin may be nil.
	Begin func(Step) (end func())
}

// Compiler compiles snapshots and caches what consecutive builds share. It is safe for concurrent use; calls
// of Compile run one at a time.
type Compiler struct {
	schema   []byte
	maxTools int
	steps    int
	logger   *slog.Logger
	step     func(Step) (end func())
	shapes   map[string]*shape
	ofSchema map[string]bool // the top-level labels of the schema
	broken   error           // why the schema itself can't be used
	proven   derive.Proven

	toolsRead, toolsKnown atomic.Int64

	mu      sync.Mutex
	sources map[sourceKey]*source
	results map[string]result // by the keys of packages
}

// sourceKey identifies the summary of a file; it includes the tags because of @if.
type sourceKey struct {
	name, place, version, tags string
	sum                        [sha256.Size]byte
}

// NewCompiler returns a Compiler with an empty cache. With a schema that is not a catalog's, every Compile
// fails.
func NewCompiler(cfg Config) *Compiler {
	c := &Compiler{
		schema: bytes.Clone(cfg.Schema), maxTools: cfg.MaxTools, steps: cfg.Steps, logger: cfg.Logger, step: cfg.Begin, ofSchema: map[string]bool{},
		sources: map[sourceKey]*source{}, results: map[string]result{},
	}
	if c.maxTools == 0 {
		c.maxTools = Limits{}.orDefaults().Tools
	}
	if c.steps == 0 {
		c.steps = runtime.GOMAXPROCS(0)
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.shapes, c.broken = shapes(c.schema)
	if f, err := parser.ParseFile(schemaPath, c.schema); err == nil {
		for _, d := range f.Decls {
			if label, ok := labelOf(d); ok {
				c.ofSchema[label] = true
			}
		}
	}
	return c
}

// Compile builds the catalog of s. The problems are all that were found, sorted by position; the build holds
// the valid declarations, and may be served only if no problem is an error. The build is nil if ctx has ended
// or a file contains a literal secret; in the second case the problems report nothing but that. ctx is
// checked between packages, because CUE can't be interrupted. A build shares unchanged parts with earlier and
// later builds, so it must not be modified.
func (c *Compiler) Compile(ctx context.Context, s *Snapshot) (*registry.Build, problem.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l problem.List
	if c.broken != nil {
		l.Errorf(problem.SchemaDiffers, problem.Position{File: schemaPath}, "", "the schema of this catalogd can't be used: %v", c.broken)
		return nil, l
	}
	l = append(l, c.checkSchema(s)...)
	src, problems := c.readAll(s)
	l = append(l, problems...)
	l = append(l, src.check(s.tags)...)
	if l.Has(problem.LiteralSecret) { // no message of an evaluation, which could quote the secret, is reported
		return nil, l.Discreet().Sorted()
	}
	units := src.units()
	if len(units) == 0 && !src.unread() {
		l.Errorf(problem.NoCatalog, problem.Position{File: "."}, "", "no file of the catalog has `package %s`; write one in catalog/, or run `catalogd init`", rootName)
	}
	for _, u := range units {
		if cycle := src.cycle(u); cycle != nil {
			l.Errorf(problem.CUEImport, src.byDir[cycle[0].dir][0].pkgPos, "", "the package imports itself, through %s", names(cycle))
		}
	}
	j := &joiner{units: units, results: c.evaluateAll(ctx, src, append(units, src.libraries()...), s.tags), partial: partial(l)}
	if err := ctx.Err(); err != nil {
		l.Errorf(problem.LoadFailed, problem.Position{File: "."}, "", "the build was ended before it was done: %v", err)
		return nil, l
	}
	b := j.build(c.maxTools)
	b.Digest = s.Digest()
	src.ship(b, s)
	if l = append(l, j.problems...); l.Has(problem.LiteralSecret) {
		return nil, l.Discreet().Sorted()
	}
	return b, l.Sorted()
}

// Tools returns how many tools of changed packages the running Compile has read, and how many it knows of. It
// does not wait for Compile.
func (c *Compiler) Tools() (read, known int64) { return c.toolsRead.Load(), c.toolsKnown.Load() }

// partial reports whether an error concerns a whole file or a top-level field, so that declarations may be
// missing.
func partial(l problem.List) bool {
	return slices.ContainsFunc(l, func(p problem.Problem) bool {
		return p.Severity == problem.Error && p.Code != problem.SchemaDiffers && !strings.Contains(p.Path, ".")
	})
}

// checkSchema compares the catalog's copy of the schema with the binary's.
func (c *Compiler) checkSchema(s *Snapshot) problem.List {
	var l problem.List
	switch data, ok := s.memory.files[schemaPath]; {
	case !ok && !s.refused[schemaPath]:
		l.Errorf(problem.SchemaDiffers, problem.Position{File: schemaPath}, "",
			"the file is missing, and without it stock CUE does not see what catalogd sees; `catalogd init` writes it")
	case ok && !bytes.Equal(data, c.schema):
		l.Errorf(problem.SchemaDiffers, problem.Position{File: schemaPath}, "",
			"the file is not the schema of this catalogd; `catalogd init --upgrade` puts the right one in its place")
	}
	return l
}

// readAll summarises the files of a snapshot; files unchanged since the last build are not parsed again.
func (c *Compiler) readAll(s *Snapshot) (*sources, problem.List) {
	mod, l := readModule(s)
	src := &sources{module: mod, byDir: map[string][]*source{}, refused: map[string]bool{}}
	set := map[string]bool{}
	for _, t := range s.tags {
		if !strings.Contains(t, "=") {
			set[t] = true
		}
	}
	kept := map[sourceKey]*source{}
	add := func(name string, data []byte) {
		key := sourceKey{name, s.place(name), mod.version, strings.Join(s.tags, "\x00"), sha256.Sum256(data)}
		f, ok := c.sources[key]
		if !ok {
			end := c.begin(Step{Files: []string{key.place}})
			f = c.read(name, key.place, data, mod.version, set)
			end()
		}
		kept[key] = f
		src.byDir[path.Dir(name)] = append(src.byDir[path.Dir(name)], f)
		src.all = append(src.all, f)
	}
	var paths []string
	for name := range s.memory.files {
		if path.Ext(name) == ".cue" && name != modulePath && name != schemaPath {
			paths = append(paths, name)
		}
	}
	paths = append(paths, schemaPath)
	slices.Sort(paths)
	for _, name := range paths {
		if name == schemaPath {
			add(name, c.schema)
		} else {
			add(name, s.memory.files[name])
		}
	}
	for name := range s.refused {
		src.refused[path.Dir(name)] = true
	}
	c.sources = kept
	return src, l
}

// evaluateAll evaluates the changed packages in parallel.
func (c *Compiler) evaluateAll(ctx context.Context, src *sources, units []pkgID, tags []string) map[pkgID]result {
	kept := map[string]result{}
	byID := map[pkgID]result{}
	c.toolsRead.Store(0)
	c.toolsKnown.Store(0)
	keys := make([]string, len(units))
	for i, u := range units {
		keys[i] = src.key(u, c.schema, tags)
		if _, ok := c.results[keys[i]]; ok || u.name != rootName {
			continue
		}
		own, _, _ := src.files(u)
		for _, f := range own {
			c.toolsKnown.Add(int64(len(f.declared[toolsField])))
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, c.steps)
	for i, u := range units {
		key := keys[i]
		if r, ok := c.results[key]; ok {
			mu.Lock()
			kept[key], byID[u] = r, r
			mu.Unlock()
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			end := c.begin(src.stepOf(u))
			r := c.evaluate(src, u, key, tags)
			end()
			mu.Lock()
			defer mu.Unlock()
			kept[key], byID[u] = r, r
		})
	}
	wg.Wait()
	c.results = kept
	return byID
}

func names(ids []pkgID) string {
	var out []string
	for _, id := range ids {
		out = append(out, id.dir+":"+id.name)
	}
	return strings.Join(out, " -> ")
}
