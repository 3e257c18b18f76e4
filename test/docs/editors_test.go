package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// newRepository is what `catalogd init` writes, committed, with catalogd, cue and opa on the PATH.
func newRepository(t *testing.T) string {
	t.Helper()
	usePrograms(t)
	stockTools(t, "cue", "opa")
	dir := t.TempDir()
	run(t, dir, "catalogd init && git init -q -b main && git add -A && git -c user.name=a -c user.email=a@example.com commit -q -m init")
	return dir
}

// run runs a command line of a shell, as a CI system does.
func run(t *testing.T, dir, line string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "BASE=HEAD")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// TestNewRepository runs stock cue and opa, and the steps of the workflow, in a repository that `catalogd init` wrote.
func TestNewRepository(t *testing.T) {
	dir := newRepository(t)
	for _, line := range []string{"opa check --strict policy/", "opa test policy/", "cue vet -c=false ./...", "cue fmt --check ./..."} {
		run(t, dir, line)
	}
	data, err := os.ReadFile(filepath.Join(dir, ".github/workflows/catalog.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run, If string }
		}
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, step := range workflow.Jobs["catalog"].Steps {
		if step.If == "hashFiles('catalog.lock.json') != ''" { // it has no server yet
			if step.Run != "catalogd lock --check" {
				t.Errorf("where there is a lock, %q runs", step.Run)
			}
			continue
		}
		if strings.HasPrefix(step.Run, "catalogd ") {
			run(t, dir, step.Run)
			ran = append(ran, step.Name)
		}
	}
	if want := []string{"check", "test", "diff"}; !slices.Equal(ran, want) {
		t.Errorf("ran the steps %q, want %q", ran, want)
	}
	comment, err := os.ReadFile(filepath.Join(dir, "diff.md"))
	if err != nil || !strings.Contains(string(comment), "nothing differs") {
		t.Errorf("the comment is %q, %v", comment, err)
	}
}

// TestEditorCUE holds that an editor with `cue lsp` completes and describes the fields of the schema in a directory
// that `catalogd init` has just written.
func TestEditorCUE(t *testing.T) {
	dir := newRepository(t)
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
