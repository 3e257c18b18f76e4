package functions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestConversationFunctions adds Go functions to a conversation branch: what is refused, who sees them over MCP and
// HTTP, and that a restart leaves their names.
func TestConversationFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.EmptyStarter(t, dir)
	harness.WriteFile(t, filepath.Join(dir, "catalog/tools.cue"), declared)
	nothing := func(context.Context) error { return nil }
	ready := must(registry.Func("get_weather", getWeather, registry.Read, registry.Setup(nothing)))
	shout := func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.ToUpper(string(in))), nil
	}
	cfg := catalogd.Config{
		Dir: dir, State: filepath.Join(t.TempDir(), "state"), Intents: catalogd.Intents{Dir: filepath.Join(t.TempDir(), "intents"), Durability: "process"},
		Functions:  []*registry.Function{ready, must(registry.Func("place_order", new(orders).place, registry.Write))},
		Processors: []registry.Processor{{Tools: []string{"read_*"}, After: shout}},
	}
	d := harness.Serve(t, cfg)
	mine, err := d.Fork("default", catalogd.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type page struct {
		Title string `json:"title"`
	}
	read := func(says string) *registry.Function {
		return must(registry.Func("read_page", func(_ context.Context, in page) (string, error) { return says + in.Title, nil }, registry.Read))
	}
	standIn, err := registry.StandIn(read("").Descriptor())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, says string
		f          *registry.Function
	}{
		{"nil", "check the error of registry.Func", nil},
		{"a stand-in", "stands in", standIn},
		{"a write function", `binding: func: "place_order"`, cfg.Functions[1]},
		{"one with a setup that nothing runs", "put it into Config.Functions", must(registry.Func("other", getWeather, registry.Read, registry.Setup(nothing)))},
		{"one with the name of a declared tool", "catalog/tools.cue:3", must(registry.Func("weather", getWeather, registry.Read))},
	} {
		if err := mine.AddFunc(c.f); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.says)
		}
	}
	if err := errors.Join(mine.AddFunc(read("b: ")), mine.AddFunc(ready)); err != nil {
		t.Fatal(err)
	}
	if err := mine.AddFunc(read("c: ")); !errors.Is(err, registry.ErrDuplicate) {
		t.Errorf("added twice: %v, want ErrDuplicate", err)
	}
	if err := mine.ReplaceFunc(read("d: ")); err != nil {
		t.Error(err)
	}
	for _, era := range []string{harness.Modern, harness.Legacy} {
		c := harness.Connect(t, d.URL, mine.Name(), era)
		if got := c.Answer(t.Context(), "read_page", map[string]any{"title": "moss"}); got != "D: MOSS" {
			t.Errorf("%s: got %q, through the processor", c, got)
		}
		tools, err := harness.Connect(t, d.URL, "default", era).ListTools(t.Context(), mcp.ListToolsRequest{})
		if err != nil || slices.ContainsFunc(tools.Tools, func(t mcp.Tool) bool { return t.Name == "read_page" }) {
			t.Errorf("%s: the declared branch lists it, or %v", era, err)
		}
	}
	res, err := http.Get(d.URL + "/branches/" + mine.Name())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || !strings.Contains(string(body), `"functions":["get_weather","read_page"]`) {
		t.Errorf("the branch says %s, %v", body, err)
	}

	d.End()
	d = harness.Serve(t, cfg)
	mine, err = d.Conversation(mine.Name(), decision.Local())
	if err != nil {
		t.Fatal(err)
	}
	lost, err := mine.Lost()
	if err != nil || len(lost) != 2 || lost[1].Tool != "read_page" || !strings.Contains(lost[1].Reason, "since it was started") || mine.Has("read_page") {
		t.Errorf("after a restart it lost %v, %v", lost, err)
	}
	if err := errors.Join(mine.AddFunc(read("e: ")), mine.Remove("get_weather")); err != nil {
		t.Error(err)
	}
	if lost, err := mine.Lost(); err != nil || len(lost) != 0 || !mine.Has("read_page") {
		t.Errorf("added again: it lost %v, %v", lost, err)
	}
	typo := strings.Replace(mine.Name(), "session-", "sesion-", 1)
	if _, err := d.Branch(typo).Tools(); err == nil || !strings.Contains(err.Error(), "did you mean "+mine.Name()+"?") {
		t.Errorf("a branch of nearly its name: %v, want that it is named", err)
	}
	if _, err := d.Branch(typo).As(decision.Principal{Name: "bob"}).Tools(); err == nil || strings.Contains(err.Error(), mine.Name()) {
		t.Errorf("another principal gets %v", err)
	}
	if _, err := d.Conversation("default", decision.Local()); err == nil || !strings.Contains(err.Error(), "declared in the catalog") {
		t.Errorf("a declared branch as a conversation: %v", err)
	}
	if err := mine.Delete(); err != nil {
		t.Error(err)
	}
	if err := mine.AddFunc(read("f: ")); err == nil || !strings.Contains(err.Error(), "there is no branch") {
		t.Errorf("added to a branch that has ended: %v", err)
	}
}
