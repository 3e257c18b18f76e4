package reach_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/reach"
)

// What runs from the catalog's own tree is seen there: a command, a script, a module, also through links either way.
func ownTree(t *testing.T) {
	t.Parallel()
	root, outside := realDir(t), realDir(t)
	for _, dir := range []string{"sub", "pkg"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(root, "tool"), filepath.Join(root, "sub", "s.js"), filepath.Join(root, "mod.py"), filepath.Join(outside, "o.js")} {
		put(t, file, "#!/bin/sh\n")
	}
	for from, to := range map[string]string{
		filepath.Join(root, "out.js"):     filepath.Join(outside, "o.js"),
		filepath.Join(outside, "in.js"):   filepath.Join(root, "sub", "s.js"),
		filepath.Join(outside, "catalog"): root,
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		dir, line string
		want      bool
	}{
		{"", "./tool", true},
		{"", root + "/tool", true},
		{"", root + "/sub/../tool", true},
		{"", outside + "/catalog/tool", true},
		{"", outside + "/o.js", false},
		{"", root + "-evil/tool", false},
		{"", "date -u", false},
		{"", "wc tool", false}, // what it reads, not what runs
		{"", "node sub/s.js", true},
		{"sub", "node s.js", true},
		{"sub", "node ../tool", true},
		{"", "node --no-warnings sub/s.js x", true},
		{"", "node out.js", true},
		{outside, "node o.js", false},
		{outside, "node in.js", true},
		{outside, "node catalog/sub/s.js", true},
		{"", "node " + outside + "/o.js", false},
		{"", "node not-there-yet.js", true},
		{"", "sh -e ./tool", true},
		{"", "python3 -m pkg.server", true},
		{"", "python3 -u -m mod", true},
		{"", "python3 -m http.server", false},
		{outside, "python3 -m pkg.server", false},
		{"", "deno run sub/s.js", true},
	} {
		words := strings.Fields(tt.line)
		c := trust.Command{Declared: words[0], Path: "/usr/bin/" + filepath.Base(words[0]), Args: words[1:], Dir: tt.dir}
		if strings.Contains(words[0], "/") {
			if path, err := reach.Resolve(words[0], root); err == nil {
				c.Path = path
			}
		}
		observer := new(reach.Observer)
		for _, as := range []string{root, filepath.Join(outside, "catalog")} { // the root may be given through a link
			if got := observer.Observe(trust.Target{Kind: trust.Exec, Command: &c}, as).InTree; got != tt.want {
				t.Errorf("%s in %q of %s: in tree %v, want %v", tt.line, tt.dir, as, got, tt.want)
			}
		}
		if observer.Observe(trust.Target{Kind: trust.Exec, Command: &c}, "").InTree {
			t.Errorf("%s: in the tree of a catalog that has none", tt.line)
		}
	}
}
