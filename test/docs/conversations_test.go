package docs

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/registry"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestDocsConversations does what docs/conversations.md shows, with the starter catalog.
func TestDocsConversations(t *testing.T) {
	usePrograms(t)
	dir := harness.Starter(t)
	served := harness.Serve(t, catalogd.Config{Dir: dir})
	r := reader{t: t, dir: t.TempDir()}
	ran := 0
	for _, b := range harness.Blocks(t, "docs/conversations.md") {
		at := "docs/conversations.md:" + strings.SplitN(b.Text, "\n", 2)[0]
		switch b.Kind {
		case "console":
			ran++
			r.console(at, strings.ReplaceAll(b.Text, "http://"+defaultAddr, served.URL))
		case "go":
			// There it is indented, in a function.
			if source := strings.ReplaceAll(harness.ReadFile(t, "test/docs/conversations_test.go"), "\n\t", "\n"); !strings.Contains(source, b.Text) {
				t.Errorf("%s: this is not in test/docs/conversations_test.go:\n%s", at, b.Text)
			}
		case "rego":
			first, rest, _ := strings.Cut(b.Text, "\n")
			harness.WriteFile(t, filepath.Join(dir, strings.TrimPrefix(first, "# ")), rest)
			if o := served.Reload(t.Context()); o.Result != "adopted" && o.Result != "unchanged" {
				t.Errorf("%s: the policy is %s: %v", at, o.Result, o.Problems)
			}
		default:
			t.Errorf("%s: no test runs blocks of kind %q", at, b.Kind)
		}
	}
	if ran != 6 {
		t.Errorf("%d transcripts ran, want 6", ran)
	}
	forksInGo(t, served.Catalog)
}

// forksInGo has the Go of the page, under its policy, and uses what it makes.
func forksInGo(t *testing.T, catalog *catalogd.Catalog) {
	t.Helper()
	quiet, err := catalog.Fork("default", catalogd.ForkOptions{
		Hide:   &registry.Selector{Names: []string{"slugify"}},
		Labels: map[string]string{"session/mode": "quiet"},
		TTL:    2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if quiet.Has("slugify") || quiet.Has("write_note") || !quiet.Has("text_stats") {
		t.Error("the fork shows slugify, or the tool that writes in spite of the policy, or no text_stats")
	}
	if err := quiet.Add("text_stats"); !errors.Is(err, registry.ErrDuplicate) {
		t.Errorf("added twice: %v, want ErrDuplicate", err)
	}
	if err := quiet.Add("write_note"); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("added what the policy denies: %v, want ErrUnknown", err)
	}
	if err := errors.Join(quiet.Add("slugify"), quiet.Replace("slugify"), quiet.Remove("text_stats")); err != nil {
		t.Error(err)
	}
	order := []string{"lamp", "chair", "rug"}
	lookUp, err := registry.Func("look_up_order", func(_ context.Context, in struct {
		Item int `json:"item" jsonschema:"The item of the order." minimum:"1" maximum:"3"`
	}) (string, error) {
		return order[in.Item-1], nil
	}, registry.Read)
	if err == nil {
		err = quiet.AddFunc(lookUp)
	}
	if err != nil {
		t.Fatal(err)
	}
	if call, err := quiet.Call(t.Context(), "look_up_order", []byte(`{"item":2}`)); err != nil || call.Text() != "chair" {
		t.Errorf("the function answers %q, %v, want chair", call.Text(), err)
	}
	if catalog.Branch("default").Has("look_up_order") {
		t.Error("the declared branch shows the function")
	}
	below, err := catalog.Fork(quiet.Name(), catalogd.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := below.Tools()
	if err != nil || slices.ContainsFunc(tools, func(t registry.Tool) bool { return t.Name == "text_stats" }) || !below.Has("slugify") {
		t.Errorf("the fork of the fork shows %d tools (%v), want slugify and no text_stats", len(tools), err)
	}
	if err := quiet.Change(catalogd.ForkOptions{Select: &registry.Selector{Names: []string{"current_time"}}}); err != nil || below.Has("convert_temperature") {
		t.Errorf("%v, or the fork of the fork shows what its parent does not any more", err)
	}
	if lost, err := below.Lost(); err != nil || len(lost) == 0 {
		t.Errorf("it has lost %v (%v), want what its parent took away", lost, err)
	}
	if err := quiet.Delete(); err != nil || below.Has("slugify") {
		t.Errorf("%v, or the fork outlives its parent", err)
	}
}
