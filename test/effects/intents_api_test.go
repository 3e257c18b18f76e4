package effects

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// api is a catalog whose tools with a side effect people decide on, served to the bearers of tokens.
type api struct {
	catalog *catalogd.Catalog
	url     string
	secrets map[string]string
}

const apiTools = `package catalog

tools: {
	place_order: {description: "Place an order.", args: order_id!: string, effect: "write", binding: jq: program: "\"placed \" + .order_id"}
	send_mail: {description: "Send a mail.", args: to!: string, effect: "write", timeout: "3s", binding: exec: {command: "sleep", argv: ["60"]}}
}
branches: default: {}
`

const apiAccess = `branches:
  default:
    tools: ["*"]
    approve:
      place_order: {groups: [sales], reason: orders can't be cancelled}
`

func serveAPI(t *testing.T) *api {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"catalog/tools.cue": apiTools, "policy/access/data.yaml": apiAccess,
		"policy/trust/data.yaml": "entries:\n  sleeping: {command: [sleep, \"60\"]}\n",
	}
	if err := fs.WalkDir(catalogd.Starter(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || files[name] != "" || strings.HasPrefix(name, "catalog/") || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		data, err := fs.ReadFile(catalogd.Starter(), name)
		files[name] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := &api{secrets: map[string]string{}}
	tokens := filepath.Join(t.TempDir(), "tokens")
	for _, one := range []token.Token{
		{Name: "ann", Branches: []string{"default"}}, {Name: "bob", Branches: []string{"default"}, Groups: []string{"sales"}},
		{Name: "root", Branches: []string{"*"}, Admin: true},
	} {
		d.secrets[one.Name], one.Hash = token.New()
		if err := token.Add(tokens, one); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	d.catalog, err = catalogd.New(t.Context(), catalogd.Config{
		Dir: dir, Tokens: tokens, Log: slog.New(slog.DiscardHandler),
		Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents"), Durability: "process"},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.catalog.Handler())
	d.url = server.URL
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.catalog.Run(ctx) }()
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		d.catalog.Close()
	})
	return d
}

// call calls a tool over MCP as the bearer of a token, and returns the id of its intent.
func (d *api) call(t *testing.T, who, tool, args string) (id string) {
	t.Helper()
	const version = "2026-07-28"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args, version)
	req, err := http.NewRequest(http.MethodPost, d.url+"/branches/default/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(name, value)
	}
	status, answer := d.do(t, who, req)
	if status != http.StatusOK {
		t.Fatalf("calling %s: %d %s", tool, status, answer)
	}
	var result struct {
		Result struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
	}
	var made struct{ ID string }
	if err := json.Unmarshal(answer, &result); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result.Result.Meta["catalogd/call"], &made); err != nil || made.ID == "" {
		t.Fatalf("%v in %s", err, answer)
	}
	return made.ID
}

func (d *api) do(t *testing.T, who string, req *http.Request) (status int, body []byte) {
	t.Helper()
	req.Header.Set("Authorization", "Bearer "+d.secrets[who])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// The ids of the page's examples, in the order in which the calls are made.
var pageIDs = []string{"4f1c2a9be07d4c35a1f06b7c8d9e0f12", "9d0e31c47b264a5f8c2d6e7f90a1b2c3"}

var (
	apiTimes   = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)"`)
	apiDigests = regexp.MustCompile(`"sha256:[0-9a-f]+"`)
	apiOwners  = regexp.MustCompile(`"owner": "[0-9A-Z]{26}"`)
)

// TestDocsIntentsAPI sends the requests of docs/intents-api.md, in their order, to a daemon with the tokens of the page, and
// holds their answers to the page. Each http block is a request, with the bearer's name in place of the secret, and the json
// block that follows it is what is answered, after its status.
func TestDocsIntentsAPI(t *testing.T) {
	t.Parallel()
	d := serveAPI(t)
	ids := []string{d.call(t, "ann", "place_order", `{"order_id":"A-17"}`), d.call(t, "ann", "send_mail", `{"to":"joe"}`)}
	all := harness.Blocks(t, "docs/intents-api.md")
	ran := 0
	pause := func(how string) {
		req, err := http.NewRequest(http.MethodPost, d.url+"/-/intents/"+how, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := d.do(t, "root", req); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	pause("pause") // so that what was approved is still released when the approval is answered
	for i, b := range all {
		if b.Kind != "http" {
			continue
		}
		ran++
		text := b.Text
		for n, id := range pageIDs {
			text = strings.ReplaceAll(text, id, ids[n])
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Replace(text, "\n", " HTTP/1.1\nHost: x\n", 1) + "\n")))
		if err != nil {
			t.Fatalf("line %d: %v", b.Line, err)
		}
		if req.URL.Query().Has("wait") {
			pause("resume")
		}
		_, body, _ := strings.Cut(text, "\n\n")
		body = strings.TrimSpace(body)
		sent, err := http.NewRequest(req.Method, d.url+req.RequestURI, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			sent.Header.Set("Content-Type", "application/json")
		}
		who := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer $")
		status, answer := d.do(t, strings.ToLower(who), sent)
		if i+1 == len(all) || all[i+1].Kind != "json" {
			t.Fatalf("line %d: no answer follows", b.Line)
		}
		want := all[i+1].Text
		wantStatus, want, _ := strings.Cut(strings.TrimPrefix(want, "// "), "\n")
		said := string(answer)
		for n, id := range ids {
			said = strings.ReplaceAll(said, id, pageIDs[n])
		}
		if wantStatus != fmt.Sprint(status) || withoutVariance(t, said) != withoutVariance(t, want) {
			t.Errorf("line %d: %s %s = %d\n%s\nthe page says %s\n%s", b.Line, req.Method, req.RequestURI, status, indented(t, said), wantStatus, want)
		}
	}
	if ran < 8 {
		t.Errorf("%d requests", ran)
	}
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

// withoutVariance is JSON without what differs from run to run.
func withoutVariance(t *testing.T, text string) string {
	t.Helper()
	text = apiOwners.ReplaceAllString(indented(t, text), `"owner": "OWNER"`)
	return apiDigests.ReplaceAllString(apiTimes.ReplaceAllString(text, `"TIME"`), `"DIGEST"`)
}

// TestDocsIntentsFields holds the tables of docs/intents-api.md to the states and to the fields that are answered.
func TestDocsIntentsFields(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("docs/intents-api.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	var states []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section(t, page, "## States"), -1) {
		states = append(states, row[1])
	}
	var want []string
	for _, s := range catalogd.IntentStates() {
		want = append(want, string(s))
	}
	if !slices.Equal(states, want) {
		t.Errorf("the page has the states %q, want %q", states, want)
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(section(t, page, "## Fields"), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			told[strings.Trim(name, "`")] = true
		}
	}
	answered := map[string]bool{}
	for _, v := range []any{httpapi.ShownIntent{}, httpapi.ListedIntent{}} {
		tags(reflect.TypeOf(v), answered)
	}
	if diff := cmp.Diff(answered, told); diff != "" {
		t.Errorf("fields of the page and those that are answered (-):\n%s", diff)
	}
}

// tags are the names of a struct's fields in JSON.
func tags(of reflect.Type, names map[string]bool) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			tags(f.Type, names)
		case name != "-":
			names[name] = true
		}
	}
}

func section(t *testing.T, page, title string) string {
	t.Helper()
	_, text, ok := strings.Cut(page, "\n"+title+"\n")
	if !ok {
		t.Fatalf("no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// From Go, intents are listed and decided on as by the commands: by the operator, or whom a program vouches for.
func TestIntentStore(t *testing.T) {
	t.Parallel()
	d := serveAPI(t)
	id := d.call(t, "ann", "place_order", `{"order_id":"B-2"}`)
	store := d.catalog.Intents()
	page, before, err := store.List(t.Context(), catalogd.IntentFilter{States: []catalogd.IntentState{"awaiting_approval"}})
	if err != nil || len(page) != 1 || page[0].ID != id || before != 0 {
		t.Fatal(page, before, err)
	}
	if _, err := store.Approve(t.Context(), id, ""); err == nil || !strings.Contains(err.Error(), "it takes somebody of group sales") {
		t.Errorf("the operator approves what is for sales: %v", err)
	}
	if _, err := store.Approve(t.Context(), id, "a\nb"); err == nil {
		t.Error("two lines are taken as a reason")
	}
	sales := store.As(decision.Principal{Name: "carl", Groups: []string{"sales"}})
	if _, err := sales.Retry(t.Context(), id, ""); err == nil {
		t.Error("who is no admin retries")
	}
	if _, err := sales.Approve(t.Context(), id, "fine"); err != nil {
		t.Fatal(err)
	}
	in, err := sales.Await(t.Context(), id, time.Minute)
	if err != nil || in.State != "succeeded" || in.Approval.By != "carl" {
		t.Fatalf("%+v, %v", in, err)
	}
	if result, withheld := sales.Result(t.Context(), in); withheld != "" || !strings.Contains(string(result.Content[0]), "placed B-2") {
		t.Errorf("%+v, %s", result, withheld)
	}
	other := store.As(decision.Principal{Name: "eve"})
	if _, err := other.Get(t.Context(), id); err == nil || other.May(in) != nil && len(other.May(in)) > 0 {
		t.Errorf("eve sees it: %v", err)
	}
}
