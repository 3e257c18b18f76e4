package daemon

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// brokenEdit: what is wrong is reported by file, line and column, nothing changes for clients, and the fix is served
// without a restart.
func brokenEdit(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	l := harness.Connect(t, r.URL, "default", harness.Modern)
	names := slices.Sorted(maps.Keys(l.Listing(t)))
	serving := r.Status().Generation.ID
	for _, test := range []struct {
		name, file, old, new string
		place                string // file:line:col: code
	}{
		{"CUE syntax", "catalog/branches.cue", "hide: tags: [\"text\"]", "hide: tags: [\"text\"", "catalog/branches.cue:11:14: cue_syntax"},
		{"CUE conflict", "catalog/system.cue", "\teffect:      \"read\"\n\ttags: [\"system\"", "\teffect:      \"reads\"\n\ttags: [\"system\"", "catalog/system.cue:8:15: cue_value"},
		{"a misspelt field", "catalog/system.cue", "title:       \"Current time\"", "titel:       \"Current time\"", "catalog/system.cue:6:2: unknown_field"},
		{"an argument that isn't there", "catalog/system.cue", "argv: [\"-sm\"]", "argv: [\"{what}\"]", "catalog/system.cue:23:10: bad_placeholder"},
		{"jq", "catalog/text.cue", ".separator as $s", ".separator as", "catalog/text.cue:44:15: bad_jq"},
		{"Rego syntax", "policy/list.rego", "allow if access.granted", "allow if access.", "policy/list.rego:10"},
		{"Rego input", "policy/list.rego", "allow if access.granted", "allow if input.tool.nam", "policy/list.rego:9:10: rego_compile"},
		{"data", "policy/access/data.yaml", "branches:\n  default:", "branches:\n  default: [", "policy/access/data.yaml:36: policy_data"},
		{"no policy", "policy/list.rego", "package catalogd.list", "package catalogd.lst", "policy/list.rego:2:1: policy_point"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := filepath.Join(dir, test.file)
			good := harness.ReadFile(t, name)
			bad := strings.Replace(good, test.old, test.new, 1)
			if bad == good {
				t.Fatal("the edit changes nothing")
			}
			heard := l.ListChanged.Load()
			harness.WriteFile(t, name, bad)
			if r.Settled(t) {
				t.Fatalf("got %s served with %q, want it refused", test.file, test.new)
			}
			s := r.Status()
			if s.Healthy || s.Failed.Reason != "problems" || s.Generation.ID != serving || s.Failed.At.IsZero() {
				t.Errorf("status %+v, failed %+v", s, s.Failed)
			}
			if !slices.ContainsFunc(s.Failed.Problems, func(p problem.Problem) bool { return strings.HasPrefix(p.String(), test.place) }) {
				t.Errorf("no problem begins with %s:\n%v", test.place, s.Failed.Problems)
			}
			for _, p := range s.Failed.Problems {
				t.Log(p)
			}
			compareListing(t, l, "while it is broken", names)
			if got := l.Answer(t.Context(), "slugify", map[string]any{"title": "A b"}); got != "a-b" {
				t.Errorf("slugify while %s is broken: got %q, want %q", test.file, got, "a-b")
			}
			if l.ListChanged.Load() != heard {
				t.Error("got list_changed for a broken edit, want none")
			}
			harness.WriteFile(t, name, good)
			if !r.Settled(t) || !r.Status().Healthy {
				t.Errorf("the fix isn't served: %+v", r.Status().Failed)
			}
		})
	}
}
