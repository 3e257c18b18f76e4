package shapes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// A place says where a shape's definitions and other tools are.
type place int

const (
	alone     place = iota // in the file of the tool, which is the only one of its package
	inCompany              // there too, and another tool beside it in one struct
	otherFile              // in another file of the package
	parent                 // in the folder above, which the package inherits
)

func (s shape) place() place { return place(s.number / 2 % 4) }

// What every tool has.
const (
	description = `description: "-"`
	effect      = `effect: "read"`
	binding     = `binding: jq: program: "."`
)

// files are the shape's package in a catalog.
func (s shape) files() map[string]string {
	args := strings.ReplaceAll(s.args.src, more, "...")
	defs := strings.ReplaceAll(strings.Join(s.args.defs, "\n"), more, "...")
	if defs != "" {
		defs += "\n"
	}
	tool := fmt.Sprintf("%s: {\n\t%s\n\t%s\n\t%s\n\tstrictness: %q\n\targs: %s\n}\n",
		s.tool(), description, effect, binding, s.declared(), args)
	const head = "package catalog\n"
	file := s.tool() + "/x.cue"
	switch place := s.place(); {
	case place == inCompany:
		other := fmt.Sprintf("e%d: {%s, %s, %s, args: e?: int}\n", s.number, description, effect, binding)
		return map[string]string{file: head + imports(args+defs) + defs + "tools: {" + tool + other + "}\n"}
	case place >= otherFile && defs != "":
		if place == parent {
			file = s.tool() + "/in/x.cue"
		}
		return map[string]string{
			file:                   head + imports(args) + "tools: " + tool,
			s.tool() + "/defs.cue": head + imports(defs) + defs,
		}
	default:
		return map[string]string{file: head + imports(args+defs) + defs + "tools: " + tool}
	}
}

// source is the files as they are shown.
func (s shape) source() string {
	var out strings.Builder
	files := s.files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if len(files) > 1 {
			fmt.Fprintf(&out, "// %s\n", name)
		}
		out.WriteString(strings.TrimPrefix(files[name], "package catalog\n"))
	}
	return out.String()
}

func (s shape) tool() string { return fmt.Sprintf("s%d", s.number) }

// owns reports whether the file is one of the shape's.
func (s shape) owns(file string) bool { return strings.HasPrefix(file, s.tool()+"/") }

// declared is the strictness that the tool itself has.
func (s shape) declared() contract.Strictness {
	if s.tightened {
		return contract.Open
	}
	return s.strictness
}

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
	checker  *worker.InProcessChecker
}

func newCatalog(t *testing.T) *catalog {
	t.Helper()
	schema, err := os.ReadFile("../../../schema.cue")
	if err != nil {
		t.Fatal(err)
	}
	compiler := loader.NewCompiler(loader.Config{Schema: schema, Steps: 1})
	return &catalog{schema, compiler, worker.NewInProcessChecker(schema)}
}

// compile compiles the shapes together. release must be called when their contracts are no longer used.
func (c *catalog) compile(ctx context.Context, shapes []shape) (_ map[int]compiled, release func(), _ error) {
	const module = "module: \"shapes.example@v0\"\nlanguage: version: \"v0.17.0\"\n"
	files := fstest.MapFS{"cue.mod/module.cue": {Data: []byte(module)}, "schema.cue": {Data: c.schema}}
	byNumber := map[int]shape{}
	for _, s := range shapes {
		for name, text := range s.files() {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		byNumber[s.number] = s
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
	all := map[int]compiled{}
	for _, p := range problems {
		if p.Severity == problem.Warning {
			continue
		}
		n, ok := 0, false
		// A problem outside of the shape's files names the shape in its path, at best.
		for _, s := range shapes {
			if s.owns(p.File) || strings.Contains(p.Path+" "+p.Message, s.tool()+".") || len(shapes) == 1 {
				n, ok = s.number, true
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
		n, err := strconv.Atoi(build.Tools[i].Name[1:])
		if err != nil {
			return all, release, err
		}
		if build.Tools[i].Name[0] != 's' {
			continue // the company of a shape
		}
		one := all[n]
		if len(one.problems) > 0 {
			continue
		}
		if byNumber[n].tightened {
			if spec, err = spec.Tighten(contract.Closed); err != nil { // a refusal like that of a closed tool
				one.problems = append(one.problems, problem.Problem{
					Code: problem.UnsupportedConstr, Severity: problem.Error, Position: build.Tools[i].Source.Pos, Message: "... contradicts strictness: " + err.Error(),
				})
				all[n] = one
				continue
			}
		}
		one.spec = spec
		var rest contract.Rest
		if spec.Remainder != nil {
			rest = c.checker.Rest(*spec.Remainder, spec.Strictness == contract.Open)
		}
		one.contract, one.err = contract.New(spec, rest)
		all[n] = one
	}
	return all, release, nil
}

// check is the contract's answer to a call. Inside gives up after 100 ms, which a loaded machine may need for
// anything; so a call that was not decided is asked again.
func check(ctx context.Context, c *contract.Contract, call string) (a answer, err error) {
	for try := range 10 {
		args, found, err2 := c.Check(ctx, json.RawMessage(call))
		if err = err2; err != nil {
			if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "does not end") {
				return a, err
			}
			time.Sleep(time.Duration(20<<min(try, 5)) * time.Millisecond)
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
