package binding_test

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// documented are the arguments of the tools in the tables of docs/bindings.md about HTTP requests.
func documented(t testing.TB) contract.Spec {
	t.Helper()
	spec := args(t, "id=\"7\"", "tenant?", "limit?:integer", "tags?:array", "filter?:object", "file?", "files=[]:array", "text=\"\"")
	spec.Schema = json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {
		"id": {"type": "string", "default": "7"}, "tenant": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}},
		"filter": {"type": "object", "properties": {"city": {"type": "string"}, "units": {"enum": ["C", "F"]}}, "required": ["city"]},
		"file": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}, "default": []}, "text": {"type": "string", "default": ""}}}`)
	return spec
}

// rows returns the rows of the tables of commands and HTTP requests with this header, without the marks of code.
func rows(t *testing.T, header string) (out [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/bindings.md")
	if err != nil {
		t.Fatal(err)
	}
	in, section := false, false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			section = line == "## Commands" || line == "## HTTP requests"
		case line == header:
			in = section
		case !strings.HasPrefix(line, "|"):
			in = false
		case in && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "| "), " | ")
			for i, cell := range cells {
				cells[i] = strings.ReplaceAll(strings.Trim(cell, "`"), "\x00", "|")
			}
			out = append(out, cells)
		}
	}
	if len(out) < 4 {
		t.Fatalf("got %d rows below %s, want more", len(out), header)
	}
	return out
}

var bareKey = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*:`)

// asJSON is a declaration in CUE's short form as JSON: its labels in quotes.
func asJSON(text string) string {
	return "{" + bareKey.ReplaceAllStringFunc(text, func(s string) string {
		if label, ok := strings.CutSuffix(s, ":"); ok {
			return `"` + label + `":`
		}
		return s
	}) + "}"
}

// declaredHTTP is a tool with a binding as a table has it: the fields of http in CUE's short form.
func declaredHTTP(t testing.TB, text string) registry.Tool {
	t.Helper()
	var h struct {
		registry.HTTP
		Headers map[string]any `json:"headers"`
		Query   map[string]any `json:"query"`
	}
	data := asJSON(text)
	if err := json.Unmarshal([]byte(data), &h); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	values := func(in map[string]any) map[string]registry.Value {
		out := map[string]registry.Value{}
		for name, v := range in {
			if text, ok := v.(string); ok {
				out[name] = registry.Value{Literal: text}
				continue
			}
			out[name] = registry.Value{Secret: v.(map[string]any)["secret"].(string)}
		}
		return out
	}
	h.HTTP.Headers, h.HTTP.Query = values(h.Headers), values(h.Query)
	if h.HTTP.Method == "" {
		h.HTTP.Method = "GET"
	}
	if h.HTTP.Output == "" {
		h.HTTP.Output = "text"
	}
	if h.HTTP.URL == "" {
		h.HTTP.URL = "/v"
	}
	h.HTTP.URL = "https://x.example" + h.HTTP.URL
	return registry.Tool{Name: "tool", Effect: registry.Read, Args: documented(t), Binding: registry.Binding{HTTP: &h.HTTP}}
}

// TestDocumentedRequests plans what the tables of docs/bindings.md say of requests.
func TestDocumentedRequests(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | arguments | request |") {
		tool := declaredHTTP(t, row[0])
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			t.Errorf("%s: %v", row[0], problems.Err())
			continue
		}
		plan, err := c.Bind(trust.Trust{}, binding.Deps{}).Plan(checked(t, tool, row[1]))
		if err != nil {
			t.Errorf("%s %s: %v", row[0], row[1], err)
			continue
		}
		u, err := url.Parse(plan.URL)
		if err != nil || u.Host != "x.example" {
			t.Fatal(plan.URL, err)
		}
		told := plan.Method + " " + u.RequestURI()
		names := make([]string, 0, len(plan.Headers))
		for name := range plan.Headers {
			if name != "User-Agent" && name != "Accept" && (name != "Content-Type" || plan.Body != "") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			told += "⏎" + name + ": " + strings.Join(plan.Headers[name], " and ")
		}
		if plan.Body != "" {
			told += "⏎" + strings.ReplaceAll(plan.Body, "\r\n", "⏎")
		}
		if told != row[2] {
			t.Errorf("%s %s:\ngot  %s\nwant %s", row[0], row[1], told, row[2])
		}
	}
}

// TestRefusedArguments holds that arguments which a request can't carry are refused in the words of docs/bindings.md.
func TestRefusedArguments(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | arguments | refused |") {
		tool := declaredHTTP(t, row[0])
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			t.Errorf("%s: %v", row[0], problems.Err())
			continue
		}
		var data string // in which \n and the like are escapes of JSON
		if data = row[1]; !json.Valid([]byte(data)) {
			t.Fatal(data)
		}
		plan, err := c.Bind(trust.Trust{}, binding.Deps{}).Plan(checked(t, tool, data))
		if code(err) != registry.InvalidArguments || err.Error() != row[2] {
			t.Errorf("%s %s:\ngot  %v\nwant %s; plan %+v", row[0], row[1], err, row[2], plan)
		}
	}
}

// TestMisusedHTTP holds the errors of a catalog that docs/bindings.md lists.
func TestMisusedHTTP(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "| declaration | error |") {
		tool := declaredHTTP(t, row[0])
		c, problems := binding.Compile(tool, "")
		if c != nil || len(problems) != 1 {
			t.Errorf("%s: got %v", row[0], problems)
			continue
		}
		if got := strings.TrimPrefix(problems[0].Path, "tools.tool.binding.http.") + ": " + problems[0].Message; got != row[1] {
			t.Errorf("%s:\ngot  %s\nwant %s", row[0], got, row[1])
		}
	}
}
