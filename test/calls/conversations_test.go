package calls_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// conversed is a catalog with tokens for ann, bob and an admin, and one that opens another branch alone.
type conversed struct {
	*harness.Daemon
	cfg    catalogd.Config
	secret map[string]string
}

func converse(t *testing.T) *conversed {
	t.Helper()
	dir := harness.Starter(t)
	harness.Edit(t, dir, "policy/access/data.yaml", "hide: []", "hide: [{labels: {session/mode: quiet}, tags: [numbers], reason: quiet}]")
	c := &conversed{cfg: catalogd.Config{Dir: dir, Tokens: filepath.Join(t.TempDir(), "tokens"), State: filepath.Join(t.TempDir(), "state")}, secret: map[string]string{}}
	for _, who := range []token.Token{
		{Name: "ann", Branches: []string{"default", "research"}}, {Name: "bob", Branches: []string{"default", "research"}},
		{Name: "root", Branches: []string{token.AllBranches}, Admin: true}, {Name: "guest", Branches: []string{"research"}},
	} {
		c.secret[who.Name], who.Hash = token.New()
		if err := token.Add(c.cfg.Tokens, who); err != nil {
			t.Fatal(err)
		}
	}
	c.Daemon = harness.Serve(t, c.cfg)
	return c
}

// do sends a request of somebody; nobody has no token.
func (c *conversed) do(t *testing.T, who, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret := c.secret[who]; secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(raw)
}

// fork makes a branch of ann's.
func (c *conversed) fork(t *testing.T, body string) string {
	t.Helper()
	status, answer := c.do(t, "ann", http.MethodPost, "/branches", body)
	var made struct{ Name, URL, Expires string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusCreated ||
		made.URL != "/branches/"+made.Name+"/mcp" || made.Expires == "" {
		t.Fatalf("fork %s: %d %s (%v)", body, status, answer, err)
	}
	return made.Name
}

// tools are the names of the tools that a branch of ann's shows.
func (c *conversed) tools(t *testing.T, branch string) (names []string) {
	t.Helper()
	status, answer := c.do(t, "ann", http.MethodGet, "/branches/"+branch+"/tools", "")
	var offers struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(answer), &offers); err != nil || status != http.StatusOK {
		t.Fatalf("tools of %s: %d %s", branch, status, answer)
	}
	for _, tool := range offers.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// exchange is a request and what it is answered.
type exchange struct {
	who, method, path, body string
	status                  int
	says                    string
}

func (c *conversed) expect(t *testing.T, all []exchange) {
	t.Helper()
	for _, x := range all {
		status, answer := c.do(t, x.who, x.method, x.path, x.body)
		if status != x.status || !strings.Contains(answer, x.says) {
			t.Errorf("%s: %s %s %s: got %d %s, want %d with %q", x.who, x.method, x.path, x.body, status, answer, x.status, x.says)
		}
	}
}

// TestConversationBranches asks for everything that conversation branches can do over HTTP, as their owner, as
// somebody else, as an admin and without a token.
func TestConversationBranches(t *testing.T) {
	t.Parallel()
	c := converse(t)
	one := c.fork(t, `{"from":"default","hide":{"names":["slugify"]},"labels":{"session/note":"first"},"ttl":"2h"}`)
	two := c.fork(t, `{"from":"`+one+`","select":{"tags":["text", "notes"]},"labels":{"session/mode":"quiet"}}`)
	at := "/branches/" + one
	const noBranch, add = "no branch", `{"function":"convert_temperature","arguments":{"value":0,"from":"celsius"}}`
	if got := c.tools(t, one); slices.Contains(got, "slugify") || !slices.Contains(got, "convert_temperature") {
		t.Errorf("the first shows %v", got)
	}
	if got := c.tools(t, two); slices.Contains(got, "slugify") || slices.Contains(got, "convert_temperature") || !slices.Contains(got, "text_stats") {
		t.Errorf("the second shows %v", got)
	}

	// To everyone else the branch does not exist. An admin may list and delete it.
	for _, who := range []string{"bob", "guest", "root"} {
		c.expect(t, []exchange{
			{who, "GET", at, "", 404, noBranch},
			{who, "PATCH", at, `{"ttl":"1h"}`, 404, noBranch},
			{who, "GET", at + "/tools", "", 404, noBranch},
			{who, "GET", at + "/tools/text_stats", "", 404, noBranch},
			{who, "PUT", at + "/tools/slugify", "", 404, noBranch},
			{who, "DELETE", at + "/tools/text_stats", "", 404, noBranch},
			{who, "POST", at + "/calls", add, 404, noBranch},
			{who, "POST", at + "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 404, noBranch},
			{who, "POST", "/branches", `{"from":"` + one + `"}`, 404, noBranch},
		})
		if _, list := c.do(t, who, "GET", "/branches", ""); strings.Contains(list, one) {
			t.Errorf("%s sees the branch in %s", who, list)
		}
	}

	// What is hidden is answered like what is missing: by the branches that the caller may open, and its own.
	c.expect(t, []exchange{
		{"ann", "GET", "/branches/defualt", "", 404, `no branch \"defualt\"; did you mean default?`},
		{"ann", "GET", "/branches/zzz/tools", "", 404, "there are default, research, " + min(one, two) + ", " + max(one, two) + `"`},
		{"bob", "GET", "/branches/zzz/tools", "", 404, `there are default, research"`},
		{"guest", "GET", "/branches/defualt", "", 404, `no branch \"defualt\"; there is research"`},
		{"guest", "GET", "/branches/default", "", 404, `no branch \"default\"; there is research"`},
		{"guest", "POST", "/branches/default/mcp", `{}`, 404, `no branch \"default\"; there is research"`},
		{"guest", "POST", "/branches", `{"from":"` + one + `"}`, 404, `no branch \"` + one + `\"; there is research"`},
		{"bob", "GET", at, "", 404, `there are default, research"`},
	})
	c.expect(t, []exchange{
		{"nobody", "POST", "/branches", `{"from":"default"}`, 401, "token"},
		{"nobody", "GET", at, "", 401, "token"},
		{"bob", "DELETE", at, "", 404, noBranch},
		{"guest", "POST", "/branches", `{"from":"default"}`, 404, noBranch},
		{"bob", "GET", "/-/branches", "", 403, "--admin"},
		{"root", "GET", "/-/branches", "", 200, `"principal":"ann"`},

		{"ann", "GET", at, "", 200, `"from":"default"`},
		{"ann", "GET", at, "", 200, `"lost":[]`},
		{"ann", "GET", "/branches/default", "", 200, `"path":"/branches/default/mcp"`},
		{"ann", "GET", "/branches", "", 200, two},
		{"ann", "POST", at + "/calls", add, 200, "celsius"},
		{"ann", "POST", "/branches/" + two + "/calls", add, 200, "unknown_tool"},

		// What the files declare, only the files change.
		{"ann", "PATCH", "/branches/default", `{"hide":null}`, 409, "declared in the catalog"},
		{"ann", "DELETE", "/branches/default", "", 409, "declared in the catalog"},
		{"root", "DELETE", "/branches/default", "", 409, "declared in the catalog"},
		{"guest", "DELETE", "/branches/default", "", 404, noBranch},
		{"ann", "PUT", "/branches/default/tools/slugify", "", 409, "declared in the catalog"},

		// Bodies are read strictly.
		{"ann", "POST", "/branches", `{"from":"default","hidden":{}}`, 400, `unknown member \"hidden\"`},
		{"ann", "POST", "/branches", `{"From":"default"}`, 400, `unknown member \"From\"`},
		{"ann", "POST", "/branches", `{"from":"default","hide":{"name":["x"]}}`, 400, `unknown member \"name\"`},
		{"ann", "POST", "/branches", `{"from":"default","hide":null,"hide":{}}`, 400, "hide twice"},
		{"ann", "POST", "/branches", `{"from":"default","hide":["slugify"]}`, 400, "hide must be an object"},
		{"ann", "POST", "/branches", `{"from":"default"} {}`, 400, "not JSON"},
		{"ann", "POST", "/branches", `{"from":7}`, 400, "from has the wrong type"},
		{"ann", "POST", "/branches", `{}`, 422, "from is missing"},
		{"ann", "POST", "/branches", `{"from":"default","ttl":"soon"}`, 422, `ttl \"soon\"`},
		{"ann", "POST", "/branches", `{"from":"default","ttl":"200h"}`, 422, "ttl must be from 1s to 168h"},
		{"ann", "POST", "/branches", `{"from":"default","labels":{"team":"research"}}`, 422, "session/"},
		{"ann", "POST", "/branches", `{"from":"` + two + `","labels":{"session/mode":"loud"}}`, 409, "session/mode"},
		{"ann", "POST", "/branches", `{"from":"default","select":{"names":["text_stat"]}}`, 404, "text_stats"},
		{"ann", "PATCH", at, `{"labels":{"session/mode":"loud"}}`, 400, `unknown member \"labels\"`},

		// Tools one by one.
		{"ann", "GET", at + "/tools/text_stats", "", 200, `"name":"text_stats"`},
		{"ann", "GET", at + "/tools/text_stats?dialect=openai", "", 200, `"type":"function"`},
		{"ann", "GET", at + "/tools/slugify", "", 404, "unknown tool"},
		{"ann", "GET", at + "/tools/text_stat", "", 404, `"nearest":["text_stats"]`},
		{"ann", "GET", at + "/tools?tools=text_stats", "", 200, `"name":"text_stats"`},
		{"ann", "GET", at + "/tools?tools=", "", 200, `"tools":[]`},
		{"ann", "GET", at + "/tools?none=true", "", 200, `"tools":null`},
		{"ann", "PUT", at + "/tools/text_stats", "", 409, "text_stats"},
		{"ann", "PUT", at + "/tools/text_stats?update=true", "", 200, `"name":"text_stats"`},
		{"ann", "PUT", at + "/tools/slugify", "", 201, `"name":"slugify"`},
		{"ann", "GET", at, "", 200, `"added":["slugify","text_stats"]`},
		{"ann", "PUT", at + "/tools/sluggify", "", 404, "slugify"},
		{"ann", "DELETE", at + "/tools/text_stats", "", 204, ""},
		{"ann", "DELETE", at + "/tools/text_stats", "", 404, "unknown tool"},
		{"ann", "PUT", "/branches/" + two + "/tools/convert_temperature", "", 404, "unknown tool"},
	})
	if got := c.tools(t, one); slices.Contains(got, "text_stats") || !slices.Contains(got, "slugify") || !slices.IsSorted(got) {
		t.Errorf("the first shows %v, want slugify without text_stats, in order", got)
	}
	if got := c.tools(t, two); slices.Contains(got, "text_stats") {
		t.Errorf("the second shows %v, and its parent no text_stats any more", got)
	}
	if got := c.tools(t, "default"); !slices.Contains(got, "text_stats") {
		t.Errorf("the declared branch shows %v, want text_stats: a change in a conversation does not reach it", got)
	}
	c.expect(t, []exchange{
		{"ann", "PATCH", at, `{"hide":{"names":["convert_temperature"]}}`, 200, `"hide":{"names":["convert_temperature"]}`},
		{"ann", "GET", at + "/tools/convert_temperature", "", 404, "unknown tool"},
		{"ann", "PATCH", at, `{"hide":null}`, 200, `"removed":["text_stats"]`},
		{"ann", "GET", at + "/tools/convert_temperature", "", 200, "convert_temperature"},
		{"root", "DELETE", at, "", 204, ""},
		{"ann", "GET", at, "", 404, noBranch},
		{"ann", "GET", "/branches/" + two, "", 404, noBranch},
		{"ann", "DELETE", "/branches/" + two, "", 404, noBranch},
	})
}

// TestConversationNarrows checks that a fork narrows and renames tools, a fork of it further, neither shows in any
// other branch or undoes the other, and both survive a restart.
func TestConversationNarrows(t *testing.T) {
	t.Parallel()
	c := converse(t)
	one := c.fork(t, `{"from":"default","rename":{"slugify":"slug"},"narrow":{"slugify":{"title":"Slug","args":{"properties":{"separator":{"const":"_"}}}}}}`)
	two := c.fork(t, `{"from":"`+one+`","narrow":{"slug":{"name":"short_slug","args":{"properties":{"title":{"maxLength":5}}}}}}`)
	call := func(tool, args string) string { return `{"function":"` + tool + `","arguments":` + args + `}` }
	at := func(branch, last string) string { return "/branches/" + branch + last }
	narrow := func(text string) string { return `{"narrow":` + text + `}` }
	working := []exchange{
		{"ann", "POST", at(one, "/calls"), call("slug", `{"title":"Hello, World"}`), 200, `"text":"hello_world"`},
		{"ann", "POST", at(one, "/calls"), call("slug", `{"title":"Hello","separator":"-"}`), 200, "unexpected key"},
		{"ann", "POST", at(one, "/calls"), call("slugify", `{"title":"Hello"}`), 200, "unknown_tool"},
		{"ann", "POST", at(two, "/calls"), call("short_slug", `{"title":"a b"}`), 200, `"text":"a_b"`},
		{"ann", "POST", at(two, "/calls"), call("short_slug", `{"title":"Hello, World"}`), 200, "at most 5 characters"},
		{"ann", "POST", at(two, "/calls"), call("short_slug", `{"title":"a b","separator":"-"}`), 200, "unexpected key"},
		{"ann", "POST", at(two, "/calls"), call("slug", `{"title":"a b"}`), 200, "unknown_tool"},
		{"ann", "GET", at(one, "/tools/slug"), "", 200, `"title":"Slug"`},
		{"ann", "GET", at(one, "/tools/slugify"), "", 404, "unknown tool"},
		{"ann", "GET", at(two, ""), "", 200, `"narrow":{"slug":{"name":"short_slug"`},
		{"ann", "GET", at(two, ""), "", 200, `"lost":[]`},
		{"ann", "POST", "/branches/default/calls", call("slugify", `{"title":"a b","separator":"-"}`), 200, `"text":"a-b"`},
	}
	c.expect(t, working)
	if _, tool := c.do(t, "ann", "GET", at(one, "/tools/slug"), ""); strings.Contains(tool, "separator") {
		t.Errorf("the tool shows what is fixed: %s", tool)
	}
	c.expect(t, []exchange{
		// Nothing is undone or widened, by the fork or by its own fork.
		{"ann", "PATCH", at(two, ""), narrow(`{"slug":{"args":{"properties":{"separator":{"const":"-"}}}}}`), 422, "narrow.slug: /separator"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"args":{"properties":{"title":{"maxLength":500}}}}}`), 422, "narrow.slugify: /title"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"args":{"properties":{"title":{"format":"uri"}}}}}`), 422, "format"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"args":[]}}`), 400, "must be an object"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"effect":"read"}}`), 400, `unknown member \"effect\"`},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{}}`), 422, "nothing is said"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"name":"a b"}}`), 422, "not a name"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"name":"text_stats"}}`), 409, "two tools"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"name":"Text_Stats"}}`), 409, "two tools"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugify":{"name":"intent_get"}}`), 422, "built-in"},
		{"ann", "PATCH", at(one, ""), narrow(`{"intent_get":{"title":"x"}}`), 422, "built-in"},
		{"ann", "PATCH", at(one, ""), narrow(`{"slugfy":{"title":"x"}}`), 404, "slugify"},
		{"ann", "PATCH", at(one, ""), `{"rename":{"slugify":"a"},"narrow":{"slugify":{"name":"b"}}}`, 422, "leave out one"},
		{"ann", "PATCH", at(one, ""), `{"rename":{"slugify":""}}`, 422, "no name"},
		{"ann", "PATCH", at(one, ""), `{"rename":["slugify"]}`, 400, "rename has the wrong type"},
	})
	c.End()
	c.Daemon = harness.Serve(t, c.cfg)
	c.expect(t, working)
	c.expect(t, []exchange{
		{"ann", "DELETE", at(one, "/tools/slug"), "", 204, ""},
		{"ann", "GET", at(one, "/tools/slug"), "", 404, "unknown tool"},
		{"ann", "GET", at(two, ""), "", 200, `"lost":[{"tool":"short_slug"`},
		{"ann", "PUT", at(one, "/tools/slugify"), "", 201, `"name":"slug"`},
		{"ann", "PATCH", at(one, ""), `{"narrow":null}`, 200, `"lost":[]`},
		{"ann", "POST", at(one, "/calls"), call("slugify", `{"title":"a b","separator":"-"}`), 200, `"text":"a-b"`},
		// The parent shows no slug any more, so its fork has lost what it narrowed.
		{"ann", "GET", at(two, ""), "", 200, `"lost":[{"tool":"short_slug"`},
	})
}

// TestConversationBranchesRestart checks that conversation branches survive a restart, and that one ends where
// the branch that it was forked from does.
func TestConversationBranchesRestart(t *testing.T) {
	t.Parallel()
	c := converse(t)
	one := c.fork(t, `{"from":"default","hide":{"names":["slugify"]},"labels":{"session/mode":"quiet"}}`)
	two := c.fork(t, `{"from":"`+one+`"}`)
	before, _ := c.do(t, "ann", "GET", "/branches/"+two, "")
	shown := c.tools(t, two)
	c.End()
	c.Daemon = harness.Serve(t, c.cfg)
	after, answer := c.do(t, "ann", "GET", "/branches/"+two, "")
	if before != 200 || after != 200 || !strings.Contains(answer, `"session/mode":"quiet"`) {
		t.Errorf("after the restart: %d %s", after, answer)
	}
	if got := c.tools(t, two); !slices.Equal(got, shown) {
		t.Errorf("after the restart it shows %v, want %v", got, shown)
	}
	c.expect(t, []exchange{
		{"bob", "GET", "/branches/" + two, "", 404, "no branch"},
		{"ann", "DELETE", "/branches/" + one, "", 204, ""},
	})
	c.End()
	c.Daemon = harness.Serve(t, c.cfg)
	c.expect(t, []exchange{{"ann", "GET", "/branches/" + two, "", 404, "no branch"}})
}

// TestConversationClients checks over MCP, in both eras, that a change of a conversation branch reaches its
// clients, and no others.
func TestConversationClients(t *testing.T) {
	t.Parallel()
	dir := harness.Starter(t)
	c := &conversed{Daemon: harness.Serve(t, catalogd.Config{Dir: dir})}
	mine, other := c.fork(t, `{"from":"default"}`), c.fork(t, `{"from":"default"}`)
	eras := []string{harness.Modern, harness.Legacy}
	var clients []*harness.Client
	for _, branch := range []string{mine, other, "default"} {
		for _, era := range eras {
			clients = append(clients, harness.Connect(t, c.URL, branch, era))
		}
	}
	for _, client := range clients {
		if got := client.Listing(t); got["slugify"] == "" {
			t.Fatalf("%v lists %v, want slugify", client, got)
		}
	}
	if status, answer := c.do(t, "", "DELETE", "/branches/"+mine+"/tools/slugify", ""); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	for _, client := range clients[:len(eras)] {
		harness.Await(t, fmt.Sprintf("%v to be told", client), func() bool { return client.ListChanged.Load() > 0 })
		if got := client.Listing(t); got["slugify"] != "" {
			t.Errorf("%v still lists slugify", client)
		}
	}
	for _, client := range clients[len(eras):] {
		if n := client.ListChanged.Load(); n != 0 {
			t.Errorf("%v was told of %d changes of another branch", client, n)
		}
	}
}
