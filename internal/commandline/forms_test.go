package commandline

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// written is a row of testdata/forms.txt.
type written struct {
	want  string
	words []string
}

func forms(t *testing.T) (all []written) {
	t.Helper()
	text, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for _, row := range strings.Split(string(text), "\n") {
		if row != "" && !strings.HasPrefix(row, "#") {
			words := strings.Fields(strings.ReplaceAll(row, "DIGEST", digest))
			all = append(all, written{words[0], words[1:]})
		}
	}
	return all
}

// TestForms holds the verdict on each command line of testdata/forms.txt to what was written down from the
// documentation.
func TestForms(t *testing.T) {
	t.Parallel()
	all := forms(t)
	for _, f := range all {
		name, args := f.words[0], f.words[1:]
		v := Recognise(name, "/opt/bin/tool", args)
		if got := class(v); got != f.want {
			t.Errorf("%q is %s, want %s (runs code: %q, unpinned: %q)", f.words, got, f.want, v.RunsCode, v.Unpinned)
		}
		// The file that a name leads to counts as much as the name.
		if got := class(Recognise("tool", name, args)); got != f.want {
			t.Errorf("%q by its path is %s, want %s", f.words, got, f.want)
		}
	}
	if len(all) < 150 {
		t.Errorf("%d forms, want 150 at least", len(all))
	}
}

func class(v Verdict) string {
	switch {
	case v.RunsCode != "" && v.Unpinned != "":
		return "both"
	case v.RunsCode != "":
		return "code"
	case v.Unpinned != "":
		return "unpinned"
	}
	return "ok"
}

// TestNothingVariableInFront: what is pinned is not any more with an element that a call fills in, or that no
// grammar has, at any place in front of the package, or in the place of any element there.
func TestNothingVariableInFront(t *testing.T) {
	t.Parallel()
	pin := regexp.MustCompile(`(@|==|@v)[0-9]+\.[0-9]|@sha256:`)
	lines := 0
	for _, f := range forms(t) {
		at := slices.IndexFunc(f.words, pin.MatchString)
		if _, runner := runners[f.words[0]]; !runner || f.want != "ok" || at < 0 {
			continue
		}
		lines++
		for i := 1; i <= at; i++ {
			for _, element := range []string{"{x}", "--x={x}", "--an-option-of-tomorrow", "-Z", "--an-option-of-tomorrow=1"} {
				for _, line := range [][]string{
					slices.Insert(slices.Clone(f.words), i, element),
					slices.Replace(slices.Clone(f.words), i, i+1, element),
				} {
					if got := class(Recognise(line[0], line[0], line[1:])); got == "ok" {
						t.Errorf("%q is %s", line, got)
					}
				}
			}
		}
	}
	if lines < 50 {
		t.Errorf("%d lines, want 50 at least", lines)
	}
}
