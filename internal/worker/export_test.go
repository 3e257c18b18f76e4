package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// CPUTime is the processor time that a process has used.
func CPUTime(pid int) (used time.Duration, known bool) { return cpuTime(pid) }

// TryEscapes tries things as a confined child. It writes the sandbox, then the result of each on a line.
func TryEscapes(out io.Writer, tries map[string]func() error) {
	fmt.Fprintln(out, "sandbox:", confine(1<<30))
	for _, name := range slices.Sorted(maps.Keys(tries)) {
		fmt.Fprintf(out, "%s: %v\n", name, tries[name]())
	}
}

// WriteRequest writes what a parent writes for the first build.
func WriteRequest(in io.Writer, schema []byte, src loader.Sources) error {
	w := frameWriter{out: in}
	a := &compilation{src: src, sums: sums(src)}
	return errors.Join(
		w.write(frameSetup, compileSetup{Schema: schema, MaxTools: 10_000, Memory: 1 << 30, Keep: 1 << 30}),
		w.write(frameRequest, a.request(&compileProcess{})))
}

// AwaitPackage reads a child's frames until the evaluation of the package begins.
func AwaitPackage(out io.Reader, dir string) error {
	for {
		f, err := readFrame(out, maxChildFrame)
		if err != nil {
			return err
		}
		var b stepBegan
		if f.kind == frameBegin && f.decode(frameBegin, &b) == nil && b.Package == dir {
			return nil
		}
	}
}

// AnswerForever is a child that answers a request with frameMemory alone, or with steps that begin and end,
// for ever.
func AnswerForever(in io.Reader, out io.Writer, steps bool) {
	w := frameWriter{out: out}
	if _, err := readFrame(in, maxParentFrame); err != nil {
		return
	}
	w.write(frameHello, hello{Sandbox: []string{}})
	if _, err := readFrame(in, maxParentFrame); err != nil {
		return
	}
	for err := error(nil); err == nil; {
		if err = w.write(frameMemory, memory{1}); err == nil && steps {
			err = errors.Join(w.write(frameBegin, stepBegan{ID: 1}), w.write(frameEnd, stepEnded{1}))
		}
	}
}

// AnswerStreams are streams of frames that a child may answer a request with.
func AnswerStreams() [][]byte {
	var all bytes.Buffer
	w := frameWriter{out: &all}
	w.write(frameBegin, stepBegan{1, "catalog/a", []string{"catalog/a/a.cue"}})
	w.write(frameMemory, memory{1 << 20})
	w.write(frameEnd, stepEnded{1})
	w.write(framePart, part{
		Problems: problem.List{{
			Code: problem.BadName, Severity: problem.Error, Position: problem.Position{File: "a", Line: 1}, Message: "m",
		}},
		Tools:   []registry.Tool{{Name: "a", Source: registry.Source{Digest: "d"}}, {Name: "b"}},
		Servers: []registry.Server{{Name: "s"}}, Branches: []registry.Branch{{Name: "x", Labels: map[string]string{"a": "b"}}},
	})
	w.write(frameDone, done{Tools: []string{"gone"}})
	return [][]byte{all.Bytes()}
}

// HandleAnswer handles a stream of frames as a parent does.
func HandleAnswer(stream []byte) {
	a := &compilation{
		compiler: New(Config{Memory: 1 << 20}), running: map[uint64]runningStep{}, sums: make([]digest, 1),
		src: loader.Sources{Files: []loader.SourceFile{{Name: "a", Place: "a"}}},
	}
	r := bytes.NewReader(stream)
	for {
		f, err := readFrame(r, maxChildFrame)
		if err != nil {
			break
		}
		answer, err := a.handle(f)
		if err != nil {
			break
		}
		if answer != nil {
			a.finish(&compileProcess{build: &registry.Build{Tools: []registry.Tool{{Name: "gone"}}}}, answer)
			break
		}
	}
	a.left()
	a.locate(a.runningSteps())
}
