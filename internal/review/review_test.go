package review_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/review"
	"github.com/catalogd/catalogd/internal/serve"
)

// What a catalog writes is neither markup nor a mention in a comment, and a comment is never longer than hosts take.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	hostile := "``x`` @everyone [a](http://example.com)\n# heading <img src=x>\x1b[31m"
	d := &review.Difference{Gained: []review.AccessChange{{Branch: "b", Tool: "t", Principal: "p", Effect: "read", From: serve.Hidden, To: serve.Refused, Why: hostile}}}
	text := d.Markdown()
	if strings.Contains(text, "\n# heading") || strings.Contains(text, "\x1b") || !strings.Contains(text, "``` ``x`` @everyone") {
		t.Errorf("not one code span:\n%s", text)
	}
	for range 5000 {
		d.ToolsAdded = append(d.ToolsAdded, review.Declared{Name: strings.Repeat("n", 60)})
	}
	text = d.Markdown()
	if len(text) > 62_000 || !strings.Contains(text, "more changes are left out here") {
		t.Errorf("%d bytes, ending %q", len(text), text[len(text)-120:])
	}
}

func TestCSVIsNoFormula(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := []serve.Standing{{Branch: "b", Principal: "=cmd()", Tool: "t", Access: serve.Refused, Why: `say "no", please`}}
	if err := review.CSV(&b, all); err != nil {
		t.Fatal(err)
	}
	if want := "branch,principal,tool,access,why\r\nb,'=cmd(),t,denied,\"say \"\"no\"\", please\"\r\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
