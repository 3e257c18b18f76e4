package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"catalogd": main, "upstream": upstream})
}

// TestScript runs the program as people do: each file of testdata/script is a session of command lines with what they
// print and how they end. CATALOGD_UPDATE=1 writes the expected outputs again; review the difference.
func TestScript(t *testing.T) {
	all, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	runScripts(t, slices.DeleteFunc(all, func(name string) bool { return isRow(name) })...)
}

func runScripts(t *testing.T, files ...string) {
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("CATALOGD_UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			// Under the race detector each program would sleep a second before it ends.
			env.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
			env.Setenv("TMPDIR", t.TempDir()) // testscript's own lies in the catalog's tree
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"starter":  starter,
			"skeleton": skeleton,
			"freeport": freeport,
			"ready":    ready,
			"http":     request,
			"until":    until,
			"signal":   sendSignal,
			"gone":     gone,
			"redact":   redact,
			"replace":  replace,
			"fill":     fill,
			"bearer":   bearer,
			"commit":   commit,
			"event":    event,
			"opa":      opa,
			"intent":   intentID,
		},
	})
}
