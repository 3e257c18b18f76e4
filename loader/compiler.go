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

	"cuelang.org/go/cue/parser"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Config is what a Compiler needs.
type Config struct {
	// Schema is the schema.cue that this binary knows; every catalog is compiled with it, whatever stands in the
	// catalog's own copy.
	Schema []byte
	// MaxTools caps the tools of a build; 10,000 by default.
	MaxTools int
	// Steps is how many packages are evaluated at once; as many as there are processors by default.
	Steps int
	// Logger gets one line where the CUE evaluator fails; nil discards it.
	Logger *slog.Logger
	// Begin is called at the begin of each step, from several goroutines at once, and what it returns at the step's end.
	// It may be nil.
	Begin func(Step) (end func())
}

// Compiler compiles snapshots, and keeps what one build and the next have in common. It is safe for concurrent use; one
// Compile runs at a time.
type Compiler struct {
	schema   []byte
	maxTools int
	steps    int
	logger   *slog.Logger
	step     func(Step) (end func())
	shapes   map[string]*shape
	ofSchema map[string]bool // the labels at the top of the schema
	broken   error           // why the schema itself can't be used
	proven   derive.Proven

	mu      sync.Mutex
	sources map[sourceKey]*source
	results map[string]result // by packages' keys
}

// sourceKey names a file's summary; the tags are in it because of @if.
type sourceKey struct {
	name, place, version, tags string
	sum                        [sha256.Size]byte
}

// NewCompiler returns a Compiler with nothing kept. A schema that is not one of a catalog makes every Compile fail.
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

// Compile builds the catalog of s. The problems hold everything that is wrong, sorted by position; the build holds what
// is sound, and may be served only if no problem is an error. A build is nil if ctx has ended; ctx is looked at between
// packages, because CUE can't be interrupted. A build shares what is unchanged with those before and after it, so it must
// not be changed.
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
	return b, append(l, j.problems...).Sorted()
}

// partial reports whether an error is about a whole file or a field at its top, so that declarations may be missing.
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

// readAll summarises the files of a snapshot; those that are unchanged since the last build are not parsed again.
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

// evaluateAll evaluates the packages that have changed, in parallel.
func (c *Compiler) evaluateAll(ctx context.Context, src *sources, units []pkgID, tags []string) map[pkgID]result {
	kept := map[string]result{}
	byID := map[pkgID]result{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, c.steps)
	for _, u := range units {
		key := src.key(u, c.schema, tags)
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
