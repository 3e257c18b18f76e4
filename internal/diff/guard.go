package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// Source is the files of one side.
type Source struct {
	// FS are the catalog's files.
	FS fs.FS
	// Expected are the decisions expected by test tables.
	Expected []Expected
}

// Expected is one decision expected by a test table.
type Expected struct {
	Name          string
	Pos           problem.Position
	Point         string
	Input, Expect json.RawMessage
}

// guard is a test, identified by its content.
type guard struct {
	name, text, meaning string
	pos                 problem.Position
}

// testChanges returns the removed, new or changed tests. A failing test prevents the adoption of a
// generation, so a removed test widens.
func testChanges(ctx context.Context, from, to Source) []Change {
	return append(guardChanges(rules(ctx, from), rules(ctx, to)), guardChanges(tables(from), tables(to))...)
}

func rules(ctx context.Context, s Source) (out []guard) {
	for _, t := range decision.TestSources(ctx, s.FS) {
		out = append(out, guard{t.Name, t.Text, t.Meaning, t.Pos})
	}
	return out
}

func tables(s Source) (out []guard) {
	for _, x := range s.Expected {
		text := fmt.Sprintf("%s %s expects %s", x.Point, x.Input, x.Expect)
		out = append(out, guard{x.Pos.File + ": " + x.Name, text, x.Point + jsonText(asData(x.Input)) + jsonText(asData(x.Expect)), x.Pos})
	}
	return out
}

func guardChanges(from, to []guard) (changes []Change) {
	old, now := named(from), named(to)
	for _, name := range keys(old, now) {
		before, after := unlike(old[name], now[name]), unlike(now[name], old[name])
		for i := range max(len(before), len(after)) {
			c := Change{Class: Unclassified, Kind: "test", Name: name}
			if i < len(before) {
				c.Old, c.OldAt = before[i].text, before[i].pos
			}
			if i < len(after) {
				c.New, c.NewAt = after[i].text, after[i].pos
			}
			switch {
			case i >= len(after):
				c.Class = Widening
			case i >= len(before):
				c.Class = Narrowing
			}
			c.What = "the test " + name + " " + action(c.Old, c.New)
			changes = append(changes, c)
		}
	}
	return changes
}

func named(all []guard) map[string][]guard {
	out := map[string][]guard{}
	for _, g := range all {
		out[g.name] = append(out[g.name], g)
	}
	return out
}

// unlike returns the guards that others does not contain.
func unlike(all, others []guard) []guard {
	return slices.DeleteFunc(slices.Clone(all), func(g guard) bool {
		return slices.ContainsFunc(others, func(o guard) bool { return o.meaning == g.meaning })
	})
}

// fileChanges returns the policy's files that differ without a change in explained that explains it. Rules, data
// and tests have been compared by their meaning, so a remaining difference in a module, a data file or a test
// has no effect; the effect of any other file is unknown.
func fileChanges(from, to Source, explained []Change) (changes []Change) {
	names := map[string]bool{}
	for _, fsys := range []fs.FS{from.FS, to.FS} {
		_ = fs.WalkDir(fsys, "policy", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				names[name] = true
			}
			return nil
		})
	}
	for _, name := range keys(names) {
		old, err1 := fs.ReadFile(from.FS, name)
		now, err2 := fs.ReadFile(to.FS, name)
		if (err1 == nil) == (err2 == nil) && bytes.Equal(old, now) {
			continue
		}
		if slices.ContainsFunc(explained, func(c Change) bool { return c.OldAt.File == name || c.NewAt.File == name }) {
			continue
		}
		line := firstUnlike(old, now)
		c := Change{Class: Unclassified, Kind: "file", Name: name, What: "the file " + name + " differs, and nothing shows what that does"}
		if err1 == nil {
			c.OldAt = problem.Position{File: name, Line: line, Col: 1}
		}
		if err2 == nil {
			c.NewAt = problem.Position{File: name, Line: line, Col: 1}
		}
		if compared(name) {
			c.Class, c.What = Neutral, "the file "+name+" differs in comments, formatting, local names or order only"
		}
		changes = append(changes, c)
	}
	return changes
}

// compared reports whether everything relevant in a file has been compared.
func compared(name string) bool {
	base := path.Base(name)
	return !strings.HasPrefix(base, ".") && (path.Ext(base) == ".rego" || strings.HasSuffix(base, "_test.cue") || slices.Contains([]string{"data.yaml", "data.yml", "data.json"}, base))
}

func firstUnlike(old, now []byte) int {
	a, b := bytes.Split(old, []byte("\n")), bytes.Split(now, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return i + 1
		}
	}
	return min(len(a), len(b))
}
