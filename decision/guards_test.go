package decision_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// documented are the modules of that name on a page of docs/, in their order.
func documented(t *testing.T, page, name string) (modules []string) {
	t.Helper()
	content, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)\n```rego\n(# "+regexp.QuoteMeta(name)+"\n.*?)```\n").FindAllStringSubmatch(string(content), -1) {
		modules = append(modules, m[1])
	}
	return modules
}

// The guard of docs/policy.md lets nothing through but what it says, and the one without the import is refused.
func TestDocumentedGuards(t *testing.T) {
	t.Parallel()
	guards := documented(t, "policy.md", "policy/guard.rego")
	if len(guards) != 3 {
		t.Fatalf("%d guards", len(guards))
	}
	policy := func(module string) fstest.MapFS {
		fsys := fstest.MapFS{}
		if err := fillFrom(fsys, "../policy"); err != nil {
			t.Fatal(err)
		}
		with(fsys, "policy/access/data.yaml", "branches:\n  research:\n    tools: [page_host]\n")
		return with(fsys, "policy/guard.rego", module)
	}
	_, problems := decision.Load(t.Context(), policy(guards[0]), patient)
	if !slices.ContainsFunc(problems, func(p problem.Problem) bool { return p.Code == problem.SuspectNegation && p.Severity == problem.Error }) {
		t.Errorf("without the import: %v", problems)
	}
	engine := load(t, policy(guards[2]))
	allowed := func(arguments string) bool {
		d := engine.Call(t.Context(), decision.CallInput{
			Branch: decision.Branch{Name: "research"}, Tool: decision.Tool{Name: "page_host", Effect: "read"}, Arguments: json.RawMessage(arguments),
		})
		if !d.Allow && !slices.Contains(d.Reasons, "research reads from data.example.com only") {
			t.Errorf("%s: %v", arguments, d)
		}
		return d.Allow
	}
	for _, url := range []string{
		"https://data.example.com", "https://data.example.com/", "https://data.example.com/a/b?c=@evil.com#d", "HTTPS://DATA.Example.COM/", "https://data.example.com./x",
		"http://data.example.com:8080/",
	} {
		text, _ := json.Marshal(url)
		if !allowed(`{"url": ` + string(text) + `}`) {
			t.Errorf("%s is denied", url)
		}
	}
	for _, url := range []string{
		"https://data.example.com@evil.com/", "https://data.example.com:443@evil.com/", "https://data.example.com:x@evil.com", "https://data.example.com\\@evil.com/",
		"https://evil.com\\@data.example.com/", "https://evil.com/@data.example.com", "https://evil.com?data.example.com", "https://evil.com#@data.example.com/",
		"https://data.example.com.evil.com/", "https://evil-data.example.com", "https://xdata.example.com", "https://example.com",
		"https://data。example。com/", "https://dаta.example.com/", "https://ⓓata.example.com/", "https://data.example.com\u200b/", "https://data.example.com%00.evil.com/",
		"https://data.example.com%2f@evil.com", "https://[data.example.com]/", "https://data.example.com:99999/", "https://data.example.com/../x", "https://data.example.com/\\evil.com",
		"file:///etc/passwd", "file://data.example.com/etc/passwd", "ftp://data.example.com/", "javascript:alert(1)//data.example.com", "//data.example.com/", "data.example.com",
		"not a url", "", " https://data.example.com/", "https://data.example.com/\n", "https:data.example.com", "https:/data.example.com", "https:///data.example.com",
	} {
		text, _ := json.Marshal(url)
		if allowed(`{"url": ` + string(text) + `}`) {
			t.Errorf("%q is let through", url)
		}
	}
	for _, arguments := range []string{`{}`, `{"url": null}`, `{"url": 7}`, `{"url": true}`, `{"url": ["https://data.example.com/"]}`, `{"url": {"host": "data.example.com"}}`, `{"URL": "https://data.example.com/"}`, `null`, ``} {
		if allowed(arguments) {
			t.Errorf("%s is let through", arguments)
		}
	}
}

// The rule of docs/policy.md that redacts addresses of mail names them by JSON pointers, wherever they are.
func TestDocumentedRedaction(t *testing.T) {
	t.Parallel()
	modules := documented(t, "policy.md", "policy/mail.rego")
	if len(modules) != 1 {
		t.Fatalf("%d modules", len(modules))
	}
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	engine := load(t, with(fsys, "policy/mail.rego", modules[0]))
	d := engine.Result(t.Context(), decision.ResultInput{Branch: decision.Branch{Name: "default"}, Tool: decision.Tool{Name: "t", Effect: "read"}, Arguments: json.RawMessage(`{}`)}, func() decision.ToolResult {
		return decision.ToolResult{Structured: json.RawMessage(`{"a/b": [{"mail": "a@b.c"}, 1, "x y@z"], "~": "d@e.f", "n": null}`)}
	})
	if want := []string{"/a~1b/0/mail", "/~0"}; !d.Allow || !slices.Equal(d.Redact, want) {
		t.Errorf("%v, want %v", d, want)
	}
}
