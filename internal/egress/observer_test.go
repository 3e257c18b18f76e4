package egress_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
)

// What runs from the catalog's own tree is seen there: a command, a script, a module, also through links either way. A
// Trust that does not say so starts none of it.
func ownTree(t *testing.T) {
	t.Parallel()
	root, outside, elsewhere := realDir(t), realDir(t), realDir(t)
	for _, dir := range []string{"sub", "pkg"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(root, "tool"), filepath.Join(root, "sub", "s.js"), filepath.Join(root, "mod.py"), filepath.Join(outside, "o.js"), filepath.Join(elsewhere, "o.js")} {
		put(t, file, "#!/bin/sh\n")
	}
	for from, to := range map[string]string{
		filepath.Join(root, "out.js"):     filepath.Join(outside, "o.js"),
		filepath.Join(outside, "in.js"):   filepath.Join(root, "sub", "s.js"),
		filepath.Join(outside, "catalog"): root,
		filepath.Join(elsewhere, "in"):    filepath.Join(root, "sub"),
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
		{elsewhere, "node o.js", false},
		{outside, "node in.js", true},
		{outside, "node catalog/sub/s.js", true},
		{"", "node " + outside + "/o.js", false},
		{"", "node not-there-yet.js", true},
		{"", "sh -e ./tool", true},
		{"", "python3 -m pkg.server", false}, // not found in a private directory
		{".", "python3 -u -m mod", true},
		{".", "python3 -m http.server", true}, // which loads argparse.py from there
		{elsewhere, "python3 -m pkg.server", false},
		{".", "date -u", true},
		{"sub", "date -u", true},
		{"..", "date -u", true}, // the tree lies below it
		{"/", "date -u", true},
		{filepath.Join(elsewhere, "in"), "date -u", true},
		{elsewhere, "date -u", false},
		{root + "-evil", "date -u", false},
		{"", "deno run sub/s.js", true},
	} {
		words := strings.Fields(tt.line)
		c := trust.Command{Declared: words[0], Path: "/usr/bin/" + filepath.Base(words[0]), Args: words[1:], Dir: tt.dir}
		if strings.Contains(words[0], "/") {
			if path, err := egress.Resolve(words[0], root); err == nil {
				c.Path = path
			}
		}
		observer, target := new(egress.Observer), trust.Target{Kind: trust.Exec, Command: &c}
		terms := trust.Terms{Entry: "e", Interpreter: true, Unpinned: true}
		said := terms
		said.InTree = true
		for _, as := range []string{root, filepath.Join(outside, "catalog")} { // the root may be given through a link
			if got := observer.Observe(target, as).InTree; got != tt.want {
				t.Errorf("%s in %q of %s: in tree %v, want %v", tt.line, tt.dir, as, got, tt.want)
			}
			err := egress.Check(trusttest.New(target, terms), target, egress.InTree(c, as))
			if refused := err != nil && strings.Contains(err.Error(), `trust entry "e" would have to say in_tree: true`); refused != tt.want || !refused && err != nil {
				t.Errorf("%s in %q of %s, not said to be in the tree: %v, want it refused: %v", tt.line, tt.dir, as, err, tt.want)
			}
			if err := egress.Check(trusttest.New(target, said), target, egress.InTree(c, as)); err != nil {
				t.Errorf("%s in %q of %s, said to be in the tree: %v", tt.line, tt.dir, as, err)
			}
		}
		if observer.Observe(target, "").InTree {
			t.Errorf("%s: in the tree of a catalog that has none", tt.line)
		}
	}
}
