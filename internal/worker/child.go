package worker

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// How a child ends by itself.
const (
	exitEnded    = 0  // the parent has closed the stream
	exitProtocol = 3  // what came was no message of the protocol
	exitMemory   = 17 // it used more memory than it may
	exitSpent    = 18 // between two builds, to return its memory
)

// watchEvery is how often a child looks at its own memory.
const watchEvery = 25 * time.Millisecond

// Child is the whole life of a worker; a program calls it from main and ends with what it returns. It compiles catalogs,
// or checks calls, as the first message from in asks, answers on out, and opens nothing. It ends the process itself when in
// ends, also in the middle of an evaluation, and when the process uses more memory than the parent allows.
func Child(in io.Reader, out io.Writer) int {
	r := bufio.NewReaderSize(in, 1<<16)
	first, err := readFrame(r, maxRequest)
	if err == io.EOF {
		return exitEnded
	}
	if err != nil {
		return refuse(err)
	}
	if first.kind == frameRules {
		return checkCalls(first, r, out)
	}
	return compileCatalogs(first, r, out)
}

func compileCatalogs(first frame, r io.Reader, out io.Writer) int {
	c := &child{mouth: mouth{frameWriter{out: out}}, contents: map[digest][]byte{}}
	c.tools.kind, c.servers.kind, c.branches.kind = tools, servers, branches
	var s setup
	if err := first.decode(frameSetup, &s); err != nil {
		return refuse(err)
	}
	c.keep = s.Keep
	c.compiler = loader.NewCompiler(loader.Config{Schema: s.Schema, MaxTools: s.MaxTools, Steps: s.Steps, Begin: c.begin})
	requests := make(chan request, 1)
	c.begins(s.Memory, func() int {
		return receive(r, func(f frame) error {
			var req request
			err := f.decode(frameRequest, &req)
			if err == nil {
				requests <- req
			}
			return err
		})
	}, func(bytes int64) { c.send(frameMemory, memory{bytes}) })
	for {
		if err := c.compile(<-requests); err != nil {
			return refuse(err)
		}
		c.rest()
	}
}

// begins confines the process, starts to read and to watch its memory, and says hello. It ends when read returns.
func (m *mouth) begins(limit int64, read func() int, tell func(bytes int64)) {
	debug.SetMemoryLimit(limit / 8 * 7)
	sandbox := confine(limit)
	go func() { os.Exit(read()) }()
	m.send(frameHello, hello{Sandbox: sandbox})
	go watch(limit, tell)
}

// receive hands on the frames until the stream ends, and says how the process is to end then. It reads on during an
// evaluation, so that the end of the stream is seen.
func receive(r io.Reader, take func(frame) error) int {
	for {
		f, err := readFrame(r, maxRequest)
		if err == io.EOF {
			return exitEnded
		}
		if err == nil {
			err = take(f)
		}
		if err != nil {
			return refuse(err)
		}
	}
}

func refuse(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return exitProtocol
}

// child is the state that a worker keeps between builds.
type child struct {
	mouth
	compiler *loader.Compiler
	contents map[digest][]byte
	tools    differ[registry.Tool]
	servers  differ[registry.Server]
	branches differ[registry.Branch]
	steps    atomic.Uint64
	keep     int64
}

// mouth is a child's way to say something.
type mouth struct{ frames frameWriter }

// send writes a message. A parent that doesn't take it is gone, and then so is the child.
func (m *mouth) send(kind byte, message any) {
	if err := m.frames.write(kind, message); err != nil {
		os.Exit(exitEnded)
	}
}

func (c *child) begin(s loader.Step) func() {
	id := c.steps.Add(1)
	c.send(frameBegin, begin{id, s.Package, s.Files})
	return func() { c.send(frameEnd, end{id}) }
}

// compile answers one request.
func (c *child) compile(req request) error {
	src, err := c.sources(req)
	if err != nil {
		return err
	}
	build, problems := c.compiler.Compile(context.Background(), loader.FromSources(src))
	answer := done{NoBuild: build == nil}
	if build != nil {
		var l problem.List
		answer.Tools, l = c.tools.next(build.Tools, func(t []registry.Tool) { c.send(framePart, part{Tools: t}) })
		problems = append(problems, l...)
		answer.Servers, l = c.servers.next(build.Servers, func(s []registry.Server) { c.send(framePart, part{Servers: s}) })
		problems = append(problems, l...)
		answer.Branches, l = c.branches.next(build.Branches, func(b []registry.Branch) { c.send(framePart, part{Branches: b}) })
		problems = append(problems, l...)
		for some := range slices.Chunk(build.Packages, 16) {
			c.send(framePart, part{Packages: some})
		}
	}
	for some := range slices.Chunk(problems, 512) {
		c.send(framePart, part{Problems: some})
	}
	c.send(frameDone, answer)
	return nil
}

// sources puts a request together with the contents that are here, and keeps those that it names.
func (c *child) sources(req request) (loader.Sources, error) {
	for _, data := range req.Contents {
		c.contents[sha256.Sum256(data)] = data
	}
	src := loader.Sources{Refused: req.Refused, Tags: req.Tags}
	kept := make(map[digest][]byte, len(req.Files))
	for _, f := range req.Files {
		data, ok := c.contents[f.Sum]
		if !ok {
			return src, fmt.Errorf("the content of %s did not come", f.Name)
		}
		kept[f.Sum] = data
		src.Files = append(src.Files, loader.SourceFile{Name: f.Name, Place: f.Place, Data: data})
	}
	c.contents = kept
	return src, nil
}

// rest gives memory back between two builds: what is free, and all of it where too much is kept.
func (c *child) rest() {
	debug.FreeOSMemory()
	if inUse() > c.keep {
		os.Exit(exitSpent)
	}
}

// watch ends the process when it uses more than limit, and tells of every eighth of it on the way, by which a
// death that comes between two looks can be explained.
func watch(limit int64, tell func(bytes int64)) {
	told := int64(0)
	for range time.Tick(watchEvery) {
		switch now := inUse(); {
		case now > limit:
			os.Exit(exitMemory)
		case now > told+limit/8:
			told = now
			tell(now)
		case now < told/2:
			told = now
		}
	}
}

// inUse is the memory that the Go runtime has from the operating system, in bytes.
func inUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
