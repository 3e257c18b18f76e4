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
	"sync"
	"sync/atomic"
	"time"

	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Exit statuses of a child.
const (
	exitEnded    = 0  // the parent closed the stream
	exitProtocol = 3  // a frame was not of the protocol
	exitMemory   = 17 // it used more memory than allowed
	exitSpent    = 18 // it used too much memory between two builds
)

// watchInterval is how often a child looks at its own memory.
const watchInterval = 25 * time.Millisecond

// Child is the whole run of a child; main calls it and exits with the status that it returns. It compiles
// catalogs, checks calls or runs jq programs, as the first message from in says, answers on out, and opens
// nothing but the time zone's file. It exits by itself when in ends, even during an evaluation, and when the
// process uses more memory than the parent allows.
func Child(in io.Reader, out io.Writer) int {
	r := bufio.NewReaderSize(in, 1<<16)
	first, err := readFrame(r, maxParentFrame)
	if err == io.EOF {
		return exitEnded
	}
	if err != nil {
		return refuse(err)
	}
	switch first.kind {
	case frameCheckSetup:
		return runCheckChild(first, r, out)
	case frameProgramSetup:
		return runProgramChild(first, r, out)
	}
	return runCompileChild(first, r, out)
}

// runCompileChild is the whole run of a child that compiles catalogs. It returns the exit status.
func runCompileChild(first frame, r io.Reader, out io.Writer) int {
	c := &compileChild{sender: sender{frameWriter{out: out}}, contents: map[digest][]byte{}}
	c.tools.kind, c.servers.kind, c.branches.kind = tools, servers, branches
	var setup compileSetup
	if err := first.decode(frameSetup, &setup); err != nil {
		return refuse(err)
	}
	c.keep = setup.Keep
	c.compiler = loader.NewCompiler(loader.Config{
		Schema: setup.Schema, MaxTools: setup.MaxTools, Steps: setup.Steps, Begin: c.beginStep,
	})
	requests := make(chan request, 1)
	c.startWork(setup.Memory, func() int {
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
		c.freeMemory()
	}
}

// startWork confines the process, sends the hello, and starts to read and to watch the memory: report is
// called with the bytes in use as they grow. The process exits with the status that read returns, or with
// exitMemory above the limit.
func (s *sender) startWork(limit int64, read func() int, report func(bytes int64)) {
	debug.SetMemoryLimit(limit / 8 * 7)
	sandbox := confine(limit)
	go func() { os.Exit(read()) }()
	s.send(frameHello, hello{Sandbox: sandbox})
	go watchMemory(limit, report)
}

// receive calls handle with each frame until the stream ends, and returns the exit status of the process. It
// goes on reading during an evaluation, to notice the end of the stream.
func receive(r io.Reader, handle func(frame) error) int {
	for {
		f, err := readFrame(r, maxParentFrame)
		if err == io.EOF {
			return exitEnded
		}
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			return refuse(err)
		}
	}
}

// refuse logs an error of the protocol, and returns the exit status.
func refuse(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return exitProtocol
}

// compileChild is the state that a child keeps between builds.
type compileChild struct {
	sender
	compiler *loader.Compiler
	contents map[digest][]byte // of the files of the last request
	tools    differ[registry.Tool]
	servers  differ[registry.Server]
	branches differ[registry.Branch]
	steps    atomic.Uint64 // the ID of the latest step
	keep     int64         // compileSetup.Keep
}

// sender sends a child's frames.
type sender struct{ frames frameWriter }

// send sends a message. If that fails, the parent is gone and the process exits.
func (s *sender) send(kind byte, message any) {
	if err := s.frames.write(kind, message); err != nil {
		os.Exit(exitEnded)
	}
}

// beginStep reports that a step begins; the returned function, that it has ended.
func (c *compileChild) beginStep(s loader.Step) func() {
	id := c.steps.Add(1)
	c.send(frameBegin, stepBegan{id, s.Package, s.Files})
	return func() { c.send(frameEnd, stepEnded{id}) }
}

// compile answers one request.
func (c *compileChild) compile(req request) error {
	src, err := c.sources(req)
	if err != nil {
		return err
	}
	counted := c.count()
	build, problems := c.compiler.Compile(context.Background(), loader.FromSources(src))
	counted()
	answer := done{NoBuild: build == nil}
	if build != nil {
		var l problem.List
		answer.Tools, l = c.tools.next(build.Tools, func(t []registry.Tool) {
			c.send(framePart, part{Tools: t})
		})
		problems = append(problems, l...)
		answer.Servers, l = c.servers.next(build.Servers, func(s []registry.Server) {
			c.send(framePart, part{Servers: s})
		})
		problems = append(problems, l...)
		answer.Branches, l = c.branches.next(build.Branches, func(b []registry.Branch) {
			c.send(framePart, part{Branches: b})
		})
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

// countInterval is how often a child reports how many tools it has read.
const countInterval = 200 * time.Millisecond

// count reports how many tools are read, until the returned function is called.
func (c *compileChild) count() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var counting sync.WaitGroup
	counting.Go(func() {
		tick := time.NewTicker(countInterval)
		defer tick.Stop()
		var sent toolsRead
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var now toolsRead
			if now.Done, now.Of = c.compiler.Tools(); now != sent {
				c.send(frameRead, now)
				sent = now
			}
		}
	})
	return func() { cancel(); counting.Wait() }
}

// sources are the files of a request with their contents, new or kept. Contents that it does not name are
// dropped.
func (c *compileChild) sources(req request) (loader.Sources, error) {
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

// freeMemory returns free memory to the system between two builds. If too much stays in use, the process
// exits.
func (c *compileChild) freeMemory() {
	debug.FreeOSMemory()
	if inUse() > c.keep {
		os.Exit(exitSpent)
	}
}

// watchMemory exits the process when it uses more than limit. On the way it reports every eighth of it, so
// that the parent can explain a death between two looks.
func watchMemory(limit int64, report func(bytes int64)) {
	reported := int64(0)
	for range time.Tick(watchInterval) {
		switch now := inUse(); {
		case now > limit:
			os.Exit(exitMemory)
		case now > reported+limit/8:
			reported = now
			report(now)
		case now < reported/2:
			reported = now
		}
	}
}

// inUse is the memory that the Go runtime has from the operating system, in bytes.
func inUse() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
