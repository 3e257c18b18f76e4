package contract_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsCoercion runs the table of docs/arguments.md.
func TestDocsCoercion(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/arguments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Coercion\n")
	if !ok {
		t.Fatal("docs/arguments.md has no section on coercion")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	schemas := map[string]string{ // as internal/derive writes them
		"int": `{"type":"integer"}`, "number": `{"type":"number"}`, "bool": `{"type":"boolean"}`, "string": `{"type":"string"}`,
		"[...string]": `{"type":"array","items":{"type":"string"}}`, "[...int]": `{"type":"array","items":{"type":"integer"}}`,
		"int | string": `{"type":["integer","string"]}`, "int | bool": `{"type":["boolean","integer"]}`,
	}
	rows := regexp.MustCompile("(?m)^\\| `(.+)` \\| `(.*)` \\| (`.+`|refused) \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) != strings.Count(section, "\n| ")-1 {
		t.Fatalf("%d rows are understood", len(rows))
	}
	for _, row := range rows {
		schema, ok := schemas[strings.ReplaceAll(row[1], `\|`, "|")]
		if !ok {
			t.Fatalf("no schema for %s", row[1])
		}
		args, found := check(lenient(t, schema), json.RawMessage(`{"x":`+row[2]+`}`))
		got := "refused"
		if found == nil {
			got = "`" + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(string(args.JSON()), `{"x":`), "}"), ",", ", ") + "`"
		}
		if got != row[3] {
			t.Errorf("%s for %s: %s, the page says %s", row[2], row[1], got, row[3])
		}
	}
}

// TestDocsMessages holds the table of messages in docs/arguments.md to those that TestMessages holds the contract to.
func TestDocsMessages(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/arguments.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Errors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| [^|`]+(?:`oneOf`)?[^|]*\\| `(got .*)` \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) < 9 || len(rows) != strings.Count(section, "\n| ")-1 {
		t.Fatalf("%d rows are understood", len(rows))
	}
	for _, row := range rows {
		if !slices.ContainsFunc(messages, func(m struct{ name, x, in, want string }) bool { return strings.HasSuffix(m.want, ": "+row[1]) }) {
			t.Errorf("no call gets the message %s", row[1])
		}
	}
}
