package loader

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue/errors"
	"cuelang.org/go/mod/modfile"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// module is the content of cue.mod/module.cue.
type module struct {
	path, major string
	version     string // CUE language version
	file        *modfile.File
}

// String returns the module in the form used in cache keys.
func (m module) String() string { return fmt.Sprintf("%s@%s %s", m.path, m.major, m.version) }

// languageVersion is assumed if the module file gives no usable version.
const languageVersion = "v0.17.0"

// readModule reads the module file. Its errors don't stop the build: the files are then read with the newest
// language version, and only imports from the module itself are not found.
func readModule(s *Snapshot) (module, problem.List) {
	var l problem.List
	m := module{version: languageVersion}
	data, ok := s.memory.files[modulePath]
	if !ok {
		if !s.refused[modulePath] {
			l.Errorf(problem.CUEModule, problem.Position{File: modulePath}, "",
				"the file is missing, and without it stock CUE does not see what catalogd sees; `catalogd init` writes it")
		}
		return m, l
	}
	f, err := modfile.ParseNonStrict(data, modulePath)
	if err != nil {
		for _, e := range errors.Errors(err) {
			l.Errorf(problem.CUEModule, positionOr(derive.Position(e.Position()), modulePath), "", "%s", strings.TrimPrefix(text(e), modulePath+": "))
		}
		return m, l
	}
	m.file = f
	if f.Language != nil && f.Language.Version != "" {
		m.version = f.Language.Version
	}
	if f.Module == "" {
		l.Errorf(problem.CUEModule, problem.Position{File: modulePath, Line: 1, Col: 1}, "", `the module has no name; write module: "example.com/catalog@v0"`)
	}
	m.path, m.major, _ = strings.Cut(f.Module, "@")
	return m, l
}
