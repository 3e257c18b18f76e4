package lint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"testing"
	"testing/fstest"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
)

// relaxed is for tests of answers, not of deadlines: a busy machine must not deny.
var relaxed = decision.Config{Deadline: time.Minute}

// minimal is a policy that loads and denies everything.
func minimal() fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, point := range decision.Points() {
		with(fsys, "policy/"+string(point)+".rego", fmt.Sprintf("package catalogd.%s\n\ndefault allow := false\n", point))
	}
	return fsys
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content), Mode: 0o644} }

// with replaces one file.
func with(fsys fstest.MapFS, name, content string) fstest.MapFS {
	fsys[name] = file(content)
	return fsys
}

// fillFrom copies a directory to policy/.
func fillFrom(into fstest.MapFS, dir string) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path.Join(dir, name))
		into[path.Join("policy", name)] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
}

func load(t testing.TB, fsys fstest.MapFS) *decision.Engine {
	t.Helper()
	engine, problems := decision.Load(t.Context(), fsys, relaxed)
	if problems.HasErrors() {
		t.Fatal(problems.Err())
	}
	return engine
}

// dateCommand asks about the command date -u.
func dateCommand() decision.ConnectInput {
	return decision.ConnectInput{
		Subject: decision.Subject{Kind: "tool", Name: "now", Effect: "read"},
		Target:  trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "date", Path: "/usr/bin/date", Args: []string{"-u"}}},
	}
}
