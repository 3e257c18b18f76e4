package docs

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestEditorCUE holds that an editor with `cue lsp` completes and describes the fields of the schema in a directory
// that `catalogd init` has just written.
func TestEditorCUE(t *testing.T) {
	stockTools(t, "cue")
	dir := t.TempDir()
	if out, err := exec.Command(harness.Catalogd(t), "init", dir).CombinedOutput(); err != nil {
		t.Fatalf("catalogd init: %v\n%s", err, out)
	}
	l := startLanguageServer(t, dir, "cue", "lsp")
	for _, test := range []struct {
		text, offers, shows string
	}{
		{"tools: greet: #Tool & {\n\t|\n}", "args binding description effect result strictness tags timeout", ""},
		{"tools: greet: #Tool & {\n\tdes|\n}", "description deprecated", ""},
		{"tools: greet: #Tool & {\n\teff|ect: \"read\"\n}", "effect", "Whether the tool changes anything."},
		{"tools: greet: #Tool & {\n\tbinding: {\n\t\tht|\n\t}\n}", "exec http jq mcp", ""},
		{"tools: greet: #Tool & {\n\tbinding: http: url|: \"https://example.com/\"\n}", "url method headers body", "The address as an RFC 6570 template"},
		{"tools: greet: #Tool & {\n\tbinding: exec: com|mand: \"date\"\n}", "command argv env stdin", "A bare name is looked up in PATH"},
		{"servers: wiki: #Server & {\n\ttransport: stdio: com|mand: \"npx\"\n}", "command args env cwd", "A bare name is looked up in PATH"},
		{"servers: wiki: #Server & {\n\t|\n}", "transport discover forward prefix", ""},
		{"branches: team: #Branch & {\n\tsel|ect: tags: [\"x\"]\n}", "select hide labels narrow", "What the branch can show at most"},
		{"too|", "#Tool #Server #Branch branches servers tools", ""},
	} {
		labels, hover := l.at("catalog/greet.cue", "cue", "package catalog\n\n"+test.text+"\n")
		for _, want := range strings.Fields(test.offers) {
			if !slices.Contains(labels, want) {
				t.Errorf("%q: got the completions %q, want %s among them", test.text, labels, want)
			}
		}
		if !strings.HasPrefix(hover, test.shows) || test.shows == "" && hover != "" {
			t.Errorf("%q: hovering shows %q, want %q", test.text, hover, test.shows)
		}
	}
}
