package mcpserver_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/servetest"
)

// lettered is a catalog with one tool for each name.
func lettered(id string, names ...string) servetest.Catalog {
	c := servetest.Catalog{ID: id, Branches: map[string][]string{"default": nil, "other": nil}}
	for _, name := range names {
		c.Tools = append(c.Tools, servetest.Tool(name, "", servetest.Text(name)))
	}
	return c
}

var nextCursor = regexp.MustCompile(`"nextCursor":("[A-Za-z0-9_-]+")`)

// A list in pages has each tool once, over every transport and in every revision, and a page that follows a reload
// goes on after the last name of the one before: no tool that stays is left out or comes twice.
func TestPagination(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			d := servetest.Start(t, lettered("g1", "b", "d", "f", "h", "j"), func(b *servetest.Backend) { b.Limits.Page = 2 })
			c, ctx := kind.connect(t, d, "default"), context.Background()
			page := func(cursor mcp.Cursor) (string, mcp.Cursor) {
				t.Helper()
				r := mcp.ListToolsRequest{}
				r.Params.Cursor = cursor
				l, err := c.ListToolsByPage(ctx, r)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, tool := range l.Tools {
					names = append(names, tool.Name)
				}
				return strings.Join(names, ""), l.NextCursor
			}
			first, afterD := page("")
			second, afterH := page(afterD)
			third, end := page(afterH)
			if got := first + " " + second + " " + third; got != "bd fh j" || afterD == "" || afterH == "" || end != "" {
				t.Errorf("got %q, %q, %q, %q, want bd fh j and two cursors", got, afterD, afterH, end)
			}
			for _, after := range []struct{ tools, want string }{
				{"bdfhj", "fh"}, {"bfhj", "fh"}, {"abcdefhj", "ef"}, {"bd", ""}, {"", ""}, {"xyz", "xy"},
			} {
				d.Served.Store(lettered("g-"+after.tools, strings.Split(after.tools, "")[:len(after.tools)]...).Generation(t, d.Logger))
				if got, _ := page(afterD); got != after.want {
					t.Errorf("the page after d of %q: got %q, want %q", after.tools, got, after.want)
				}
			}
		})
	}
}

// A cursor that was not given for this list of this branch is refused, and the answer says what to do.
func TestUnknownCursor(t *testing.T) {
	t.Parallel()
	d := servetest.Start(t, lettered("g1", "a", "b", "c"), func(b *servetest.Backend) { b.Limits.Page = 1 })
	given := func(branch string) string {
		t.Helper()
		r := d.Modern(t, "/branches/"+branch+"/mcp", "tools/list", "")
		found := nextCursor.FindStringSubmatch(r.Body)
		if r.Status != 200 || found == nil {
			t.Fatalf("%+v", r)
		}
		return found[1]
	}
	good, foreign := given("default"), given("other")
	text := strings.Trim(good, `"`)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	session := d.Session(t, "/branches/default/mcp")
	for _, cursor := range []string{
		"null", "7", `""`, `"x"`, `{}`, foreign, fmt.Sprintf("%q", text[:8]), fmt.Sprintf("%q", text+"="), fmt.Sprintf("%q", text+" "),
		fmt.Sprintf("%q", base64.RawURLEncoding.EncodeToString(raw[:8])), fmt.Sprintf("%q", strings.ToUpper(text)),
	} {
		for _, r := range []servetest.Response{
			d.Modern(t, "/branches/default/mcp", "tools/list", `"cursor":`+cursor),
			d.Do(t, "POST", "/branches/default/mcp", servetest.LegacyBody("tools/list", `"cursor":`+cursor), session...),
		} {
			if !strings.Contains(r.Body, "-32602") || !strings.Contains(r.Body, "from its start, without cursor") {
				t.Errorf("cursor %s: got %+v, want -32602", cursor, r)
			}
		}
	}
	if r := d.Modern(t, "/branches/default/mcp", "tools/list", `"cursor":`+good); r.Status != 200 || !strings.Contains(r.Body, `"name":"b"`) {
		t.Errorf("its own cursor: %+v", r)
	}
}
