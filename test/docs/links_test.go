package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/test/internal/harness"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestLinks: links between the pages, and from them to other files, lead to a file and a heading that exist.
// docs/README.md leads to every page, and README.md to it.
func TestLinks(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	mapped, links, linked := []string{"docs/README.md"}, 0, false
	for _, page := range pages {
		for _, found := range link.FindAllStringSubmatch(prose(harness.ReadFile(t, page)), -1) {
			name, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(name, "://") {
				continue
			}
			links++
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			linked = linked || page == "README.md" && target == "docs/README.md"
			if page == "docs/README.md" {
				mapped = append(mapped, target)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, found[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(harness.ReadFile(t, target)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
	if !linked {
		t.Error("README.md does not lead to docs/README.md")
	}
	if links < 200 {
		t.Errorf("%d links were found, want at least 200: the search is wrong", links)
	}
	for _, page := range pages {
		if strings.HasPrefix(page, "docs/") && !slices.Contains(mapped, page) {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
	}
}

// prose returns a page without its fenced blocks and code spans.
func prose(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`").ReplaceAllString(page, "")
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(page string) (all []string) {
	page = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		name := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		name = regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(name, "")
		all = append(all, name)
	}
	return all
}
