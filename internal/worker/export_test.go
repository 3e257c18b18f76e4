package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Confined tries things as a child that is confined, and writes what came of each, a line each.
func Confined(out io.Writer, tries map[string]func() error) {
	fmt.Fprintln(out, "held:", confine(1<<30))
	for _, name := range slices.Sorted(maps.Keys(tries)) {
		fmt.Fprintf(out, "%s: %v\n", name, tries[name]())
	}
}

// Ask writes what a parent writes for one build.
func Ask(in io.Writer, schema []byte, src loader.Sources) error {
	w := frameWriter{out: in}
	a := &attempt{src: src, sums: sums(src)}
	return errors.Join(
		w.write(frameSetup, setup{Schema: schema, MaxTools: 10_000, Memory: 1 << 30, Keep: 1 << 30}),
		w.write(frameRequest, a.request(&compiling{})))
}

// Began reads a child's frames until the evaluation of the package begins.
func Began(out io.Reader, dir string) error {
	for {
		f, err := readFrame(out, maxFrame)
		if err != nil {
			return err
		}
		var b begin
		if f.kind == frameBegin && f.decode(frameBegin, &b) == nil && b.Package == dir {
			return nil
		}
	}
}

// Chatter is a child that answers a build with figures of its memory alone, or with steps that begin and end, for ever.
func Chatter(in io.Reader, out io.Writer, steps bool) {
	w := frameWriter{out: out}
	if _, err := readFrame(in, maxRequest); err != nil {
		return
	}
	w.write(frameHello, hello{Sandbox: []string{}})
	if _, err := readFrame(in, maxRequest); err != nil {
		return
	}
	for err := error(nil); err == nil; {
		if err = w.write(frameMemory, memory{1}); err == nil && steps {
			err = errors.Join(w.write(frameBegin, begin{ID: 1}), w.write(frameEnd, end{1}))
		}
	}
}

// Answers are streams that children may answer with.
func Answers() [][]byte {
	var all bytes.Buffer
	w := frameWriter{out: &all}
	w.write(frameBegin, begin{1, "catalog/a", []string{"catalog/a/a.cue"}})
	w.write(frameMemory, memory{1 << 20})
	w.write(frameEnd, end{1})
	w.write(framePart, part{
		Problems: problem.List{{Code: problem.BadName, Severity: problem.Error, Position: problem.Position{File: "a", Line: 1}, Message: "m"}},
		Tools:    []registry.Tool{{Name: "a", Source: registry.Source{Digest: "d"}}, {Name: "b"}},
		Servers:  []registry.Server{{Name: "s"}}, Branches: []registry.Branch{{Name: "x", Labels: map[string]string{"a": "b"}}},
	})
	w.write(frameDone, done{Tools: []string{"gone"}})
	return [][]byte{all.Bytes()}
}

// Hear takes in a stream as a parent does.
func Hear(stream []byte) {
	a := &attempt{compiler: New(Config{Memory: 1 << 20}), running: map[uint64]running{}, src: loader.Sources{Files: []loader.SourceFile{{Name: "a", Place: "a"}}}, sums: make([]digest, 1)}
	r := bytes.NewReader(stream)
	for {
		f, err := readFrame(r, maxFrame)
		if err != nil {
			break
		}
		answer, err := a.take(f)
		if err != nil {
			break
		}
		if answer != nil {
			a.finish(&compiling{build: &registry.Build{Tools: []registry.Tool{{Name: "gone"}}}}, answer)
			break
		}
	}
	a.left()
	a.locate(a.suspects())
}
