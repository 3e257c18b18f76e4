package diff_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/diff"
)

// What a change narrows is seen where it shows only in what nobody declares: another effect, kind of binding or action, a
// resource that several parts of the data grant together, a flag, nothing at all.
func TestChangesAreClassed(t *testing.T) {
	t.Parallel()
	edits := []struct {
		what string // which change it is: a part of its name or text
		// old of the file becomes new, which narrows; without old, new is added.
		file, old, new string
	}{
		{"an effect that no tool has: data.access.branches.default.effects", "policy/access/data.yaml", "    tools: [\"*\"]\n", "    tools: [\"*\"]\n    effects: [read]\n"},
		{"no tool at all: catalogd.lib.access.refusals", "policy/catalogd/access.rego", `input.tool.name != ""`, `input.tool.name == ""`},
		{"a resource by its server and URI: data.access.branches.default.resources.wiki", "policy/access/data.yaml", `"wiki://*"`, `"wiki://x*"`},
		{"a kind of binding", "policy/house_call.rego", "", `deny contains "a kind of binding" if input.tool.binding == "mcp"`},
		{"what reaches nothing", "policy/house_list.rego", "", "deny contains \"what reaches nothing\" if {\n\tinput.tool.trust == \"\"\n\tinput.tool.effect == \"write\"\n}"},
		{"an action on resources", "policy/house_call.rego", "", `deny contains "an action on resources" if input.resource.action == "subscribe"`},
		{"an action on prompts", "policy/house_list.rego", "", `deny contains "an action on prompts" if input.prompt.action == "complete"`},
		{"/a/flag/of/results", "policy/house_result.rego", "", `redact contains "/a/flag/of/results" if input.result.is_error`},
		{"what calls fill in", "policy/connect.rego", "", `deny contains "what calls fill in" if count(input.target.command.from_call) > 0`},
		{"what is not committed", "policy/adopt.rego", "", `deny contains "what is not committed" if not input.candidate.commit.clean`},
	}
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	write(t, before, house)
	write(t, after, house)
	for _, e := range edits {
		name := filepath.Join(after, e.file)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b) + "\n" + e.new + "\n"
		if e.old != "" {
			if strings.Count(string(b), e.old) != 1 {
				t.Fatalf("%s does not hold %s once", e.file, e.old)
			}
			text = strings.Replace(string(b), e.old, e.new, 1)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := catalogd.Diff(t.Context(), catalogd.Config{Dir: after}, before, after, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		_, what, named := strings.Cut(e.what, ": ")
		if !named {
			what = e.what
		}
		i := slices.IndexFunc(d.Changes, func(c diff.Change) bool { return strings.Contains(c.Name+" "+c.New, what) })
		if i < 0 {
			t.Errorf("%s: nothing is reported", e.what)
			continue
		}
		c := d.Changes[i]
		if c.Class != diff.Narrowing || !slices.ContainsFunc(c.Examples, func(x diff.Example) bool { return x.Class == diff.Narrowing }) {
			t.Errorf("%s: got %s with %d examples, want narrowing with one that shows it", e.what, c.Class, len(c.Examples))
		}
	}
	if len(d.Changes) != len(edits) {
		t.Errorf("%d changes are reported of %d", len(d.Changes), len(edits))
	}
}
