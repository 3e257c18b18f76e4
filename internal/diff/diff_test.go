package diff_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/generation"
)

// However long a value is, all of what differs in it is shown: what is cut can't hide a change behind it.
func TestWhatDiffersIsShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lorem ipsum ", 50)
	for _, test := range []struct{ name, old, new, oldShown, newShown string }{
		{"the end of a long value", long + "env:A", long + "env:B", "env:A", "env:B"},
		{"two places of one", "a" + long + "c", "b" + long + "d", "a" + long + "c", "b" + long + "d"},
		{"what is new", "", long + "end", "", long + "end"},
		{"what is gone", long + "end", "", long + "end", ""},
		{"blanks", "a  b", "a b", `"a  b"`, `"a b"`},
		{"more of the same", strings.Repeat("x", 200), strings.Repeat("x", 201), "(before: … " + strings.Repeat("x", 40) + ")", "… " + strings.Repeat("x", 41) + " ("},
	} {
		got := diff.FieldChange{Field: "binding", Old: test.old, New: test.new}.Summary()
		if !strings.Contains(got, test.oldShown) || !strings.Contains(got, test.newShown) || got == "" {
			t.Errorf("%s: got %s", test.name, got)
		}
	}
	summary := diff.FieldChange{Field: "binding", Old: long + "env:A" + long, New: long + "env:B" + long}.Summary()
	if len(summary) > 300 {
		t.Errorf("what did not change is shown at length: %s", summary)
	}
}

// What a catalog writes is neither markup nor a mention in a comment, and a comment is never longer than hosts take.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	hostile := "``x`` @everyone [a](http://example.com)\n# heading <img src=x>\x1b[31m"
	d := &diff.Difference{Gained: []diff.AccessChange{{Branch: "b", Tool: "t", Principal: "p", Effect: "read", From: generation.Hidden, To: generation.Depends, Why: hostile}}}
	text := d.Markdown()
	if strings.Contains(text, "\n# heading") || strings.Contains(text, "\x1b") || !strings.Contains(text, "``` ``x`` @everyone") {
		t.Errorf("not one code span:\n%s", text)
	}
	for range 5000 {
		d.ToolsAdded = append(d.ToolsAdded, diff.Declared{Name: strings.Repeat("n", 60)})
	}
	text = d.Markdown()
	if len(text) > 62_000 || !strings.Contains(text, "more changes are left out here") {
		t.Errorf("%d bytes, ending %q", len(text), text[len(text)-120:])
	}
}

func TestCSVIsNoFormula(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := []generation.AccessCell{{Branch: "b", Principal: "=cmd()", Tool: "t", Access: generation.Hidden, Why: `say "no", please`}}
	if err := diff.CSV(&b, all); err != nil {
		t.Fatal(err)
	}
	if want := "branch,principal,tool,access,why\r\nb,'=cmd(),t,hidden,\"say \"\"no\"\", please\"\r\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
