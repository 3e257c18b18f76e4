package shapes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// source is the file of the shape's package in a catalog.
func (s shape) source() string {
	args := strings.ReplaceAll(s.args.src, more, "...")
	defs := strings.ReplaceAll(strings.Join(s.args.defs, "\n"), more, "...")
	if defs != "" {
		defs += "\n"
	}
	return fmt.Sprintf("package catalog\n%s%stools: %s: {\n\tdescription: \"-\"\n\teffect: \"read\"\n\tstrictness: %q\n\tbinding: jq: program: \".\"\n\targs: %s\n}\n",
		imports(args+defs), defs, s.tool(), s.declared(), args)
}

// declared is the strictness that the tool itself has.
func (s shape) declared() contract.Strictness {
	if s.tightened {
		return contract.Open
	}
	return s.strictness
}

func (s shape) tool() string { return fmt.Sprintf("s%d", s.number) }

func (s shape) file() string { return s.tool() + "/x.cue" }

// A compiled is what the loader made of a shape: a contract, or problems.
type compiled struct {
	spec     contract.Spec
	contract *contract.Contract
	problems problem.List
	err      error
}

// A catalog compiles shapes, each in a package of its own so that none costs another.
type catalog struct {
	schema   []byte
	compiler *loader.Compiler
	checker  *worker.Inside
}

func newCatalog(t *testing.T) *catalog {
	t.Helper()
	schema, err := os.ReadFile("../../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	return &catalog{schema, loader.NewCompiler(loader.Config{Schema: schema, Steps: 1}), worker.NewInside(schema)}
}

// compile compiles the shapes together. release must be called when their contracts are no longer used.
func (c *catalog) compile(ctx context.Context, shapes []shape) (all map[int]compiled, release func(), err error) {
	files := fstest.MapFS{"cue.mod/module.cue": {Data: []byte("module: \"shapes.example@v0\"\nlanguage: version: \"v0.17.0\"\n")}}
	files["schema.cue"] = &fstest.MapFile{Data: c.schema}
	byFile, byNumber := map[string]int{}, map[int]shape{}
	for _, s := range shapes {
		files[s.file()] = &fstest.MapFile{Data: []byte(s.source())}
		byFile[s.file()], byNumber[s.number] = s.number, s
	}
	snap, problems := loader.Tree{FS: files}.Snapshot(ctx)
	if snap == nil || problems.HasErrors() {
		return nil, nil, fmt.Errorf("no snapshot: %v", problems.Err())
	}
	build, problems := c.compiler.Compile(ctx, snap)
	if build == nil {
		return nil, nil, fmt.Errorf("no build: %v", problems.Err())
	}
	release = c.checker.Hold(build)
	all = map[int]compiled{}
	for _, p := range problems {
		if p.Severity == problem.Warning {
			continue
		}
		n, ok := byFile[p.File]
		if !ok {
			for _, s := range shapes { // a problem outside of the shape's file names the shape in its path, at best
				if strings.Contains(p.Path+" "+p.Message+" "+p.File, s.tool()) || len(shapes) == 1 {
					n, ok = s.number, true
				}
			}
		}
		if !ok {
			return all, release, fmt.Errorf("a problem of no shape: %s", p)
		}
		one := all[n]
		one.problems = append(one.problems, p)
		all[n] = one
	}
	for i := range build.Tools {
		spec := build.Tools[i].Args
		var n int
		if _, err := fmt.Sscanf(build.Tools[i].Name, "s%d", &n); err != nil {
			return all, release, err
		}
		one := all[n]
		if len(one.problems) > 0 {
			continue
		}
		one.spec = spec
		var rest contract.Rest
		if spec.Remainder != nil {
			rest = c.checker.Rest(*spec.Remainder, spec.Strictness == contract.Open)
		}
		if one.contract, one.err = contract.New(spec, rest); one.err == nil && byNumber[n].tightened {
			if spec.Remainder != nil {
				rest = c.checker.Rest(*spec.Remainder, false)
			}
			if one.contract, one.err = one.contract.Tighten(contract.Closed, rest); one.err == nil {
				one.spec = one.contract.Spec()
			}
		}
		all[n] = one
	}
	return all, release, nil
}

// check is the contract's answer to a call. Inside gives up after 100 ms, which a loaded machine may need for anything; so
// a call that was not decided is asked again.
func check(ctx context.Context, c *contract.Contract, call string) (a answer, err error) {
	for try := range 6 {
		args, found, err2 := c.Check(ctx, json.RawMessage(call))
		if err = err2; err != nil {
			if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "does not end") {
				return a, err
			}
			time.Sleep(time.Duration(20<<try) * time.Millisecond)
			continue
		}
		if len(found) > 0 {
			var all []string
			for _, v := range found {
				all = append(all, v.String())
			}
			return answer{why: strings.Join(all, "; ")}, nil
		}
		return answer{accepted: true, filled: canonical(string(args.JSON()))}, nil
	}
	return a, err
}
