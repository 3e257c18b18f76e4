package lockfile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/registry"
)

// TestRealServers locks the tools of public servers, as their lists in testdata have them, and counts what
// becomes of them. What is left out is listed in docs/upstream.md with its reason, and nothing else is.
func TestRealServers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"../../testdata/dialect/tool-lists/*.json", "../../testdata/tool-lists/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 8 {
		t.Fatalf("got %d lists", len(files))
	}
	total, served, mapped, warned, leftOut := 0, 0, 0, 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		s := server(name, "", registry.Discover{})
		offer := lockfile.ReadOffer(lockfile.Identity{Name: name, Version: "1", Protocol: "2025-11-25"}, list.Tools)
		locked, _ := lockfile.Merge(lockfile.Server{Name: name}, offer, every, none, noon)
		f := &lockfile.File{}
		f.Put(locked)
		read, problems := lockfile.Read(f.Marshal())
		if len(problems) > 0 {
			t.Fatalf("%s: %v", file, problems)
		}
		counts := map[string]int{}
		for _, o := range lockfile.Outcomes(&registry.Build{Servers: []registry.Server{s}}, &lockfile.File{}, read, map[string]lockfile.Offer{name: offer}) {
			counts["tools"]++
			switch {
			case o.State == lockfile.LeftOut:
				counts["left out"]++
				if row := fmt.Sprintf("| `%s` | `%s` | %s |", name, o.Tool, o.Reason); !strings.Contains(string(page), row) {
					t.Errorf("docs/upstream.md has no row\n%s", row)
				}
				continue
			case o.Mapped:
				counts["mapped"]++
			}
			counts["served"]++
			if len(o.Warnings) > 0 {
				counts["warned"]++
				t.Logf("%s/%s: %s", name, o.Tool, strings.Join(o.Warnings, "; "))
			}
		}
		for _, tool := range lockfile.Join(&registry.Build{Servers: []registry.Server{s}}, read).Tools {
			c, err := contract.New(tool.Args, nil)
			if err != nil {
				t.Fatalf("%s/%s: %v", name, tool.Name, err)
			}
			_, found, err := c.Check(t.Context(), nil)
			for _, v := range found {
				if v.Got != "nothing" {
					t.Errorf("%s/%s: a call without arguments: %s", name, tool.Name, v)
				}
			}
			if (found == nil) == (len(requiredOf(t, tool.Args.Schema)) > 0) || err != nil {
				t.Errorf("%s/%s: a call without arguments: got %v %v", name, tool.Name, found, err)
			}
		}
		if counts["tools"] != len(list.Tools) {
			t.Errorf("%s: got %d outcomes of %d tools", name, counts["tools"], len(list.Tools))
		}
		t.Logf("%s: %v", name, counts)
		total, served, mapped, warned, leftOut = total+counts["tools"], served+counts["served"], mapped+counts["mapped"], warned+counts["warned"], leftOut+counts["left out"]
	}
	row := fmt.Sprintf("| %d | %d | %d | %d | %d | %d |", len(files), total, served, mapped, warned, leftOut)
	t.Logf("| servers | tools | served | mapped | warned of | left out |: %s", row)
	if !strings.Contains(string(page), row) {
		t.Errorf("docs/upstream.md has no row %s", row)
	}
}

func requiredOf(t *testing.T, schema json.RawMessage) []string {
	t.Helper()
	var top struct{ Required []string }
	if err := json.Unmarshal(schema, &top); err != nil {
		t.Fatal(err)
	}
	return top.Required
}
