package servetest

import (
	"context"
	"io/fs"
	"strings"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Stubborn is a compiler that hangs on a catalog that contains "hang" until Let is closed, or, if Obeys is
// set, until its context ends. It compiles all other catalogs normally.
type Stubborn struct {
	generation.Compiler
	Obeys bool
	Let   chan struct{}
	LetGo func() // closes let
	Begun chan struct{}
}

func (c *Stubborn) Compile(ctx context.Context, s *loader.Snapshot) (*registry.Build, problem.List) {
	data, err := fs.ReadFile(s.FS(), "catalog/home.cue")
	if err != nil || !strings.Contains(string(data), "hang") {
		return c.Compiler.Compile(ctx, s)
	}
	c.Begun <- struct{}{}
	done := ctx.Done()
	if !c.Obeys {
		done = nil
	}
	select {
	case <-done:
	case <-c.Let:
	}
	return c.Compiler.Compile(ctx, s)
}
