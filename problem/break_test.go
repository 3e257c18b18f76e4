package problem_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/problem"
)

// TestPrintable: what a file holds can't move a terminal's cursor, begin a line of its own, or turn the text around.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain \u00e9\u20ac": "plain \u00e9\u20ac", "": "", "\x1b[31mred": `\x1b[31mred`, "a\nb\r\tc": `a\nb\r\tc`,
		"x\u202ey": `x\u202ey`, "\u2028": `\u2028`, "\x9b31m": `\x9b31m`, "\u009b": `\u009b`, "\ufffd": "\ufffd", "\x00": `\x00`,
		"zero\u200bwidth": `zero\u200bwidth`, "tag\U000e0041": `tag\U000e0041`, "\U000e0101": `\U000e0101`, "\U0001f468\u200d\U0001f33e": "\U0001f468\u200d\U0001f33e",
		"x\ufe00y": `x\ufe00y`, "\u3164": `\u3164`, "\u2065": `\u2065`, "\u26a0\ufe0f": "\u26a0\ufe0f",
	} {
		if got := problem.Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestHidden: each kind of character that isn't shown has a name, and what is shown has none.
func TestHidden(t *testing.T) {
	t.Parallel()
	for r, want := range map[rune]string{
		'\u0000': "the control character U+0000", '\u007f': "the control character U+007F",
		'\u009b': "the control character U+009B", '\u202e': "the direction mark U+202E",
		'\u200b': "the invisible character U+200B", '\u00ad': "the invisible character U+00AD",
		'\u2028': "the invisible character U+2028", '\u034f': "the invisible character U+034F",
		'\u115f': "the invisible character U+115F", '\u3164': "the invisible character U+3164",
		'\uffa0': "the invisible character U+FFA0", '\u2065': "the invisible character U+2065",
		'\ufe00': "the variation selector U+FE00", '\U000e0100': "the variation selector U+E0100",
		'\U000e0041': "the tag character U+E0041", '\U000e0fff': "the invisible character U+E0FFF",
		'\n': "", '\t': "", '\r': "", ' ': "", '~': "", 'é': "", '한': "", '\ufe0e': "", '\ufe0f': "", '\U0001f33e': "",
	} {
		if got := problem.Hidden(r); got != want {
			t.Errorf("%U: got %q, want %q", r, got, want)
		}
	}
}

// What is hidden in JSON is shown, and the value stays the same.
func TestPrintableJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{\n  \"é\": [1.0, \"\\u001b\"]\n}\n": "{\n  \"é\": [1.0, \"\\u001b\"]\n}\n",
		"[\"x\u202ey\u009b\ufeff\"]":          `["x\u202ey\u009b\ufeff"]`,
		"[\"\U000e0041\\\\\U000e0101€\"]":     `["\udb40\udc41\\\udb40\udd01€"]`,
	} {
		got := problem.PrintableJSON([]byte(in))
		if string(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(in), &before) != nil || json.Unmarshal(got, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q means %v and then %v", in, before, after)
		}
	}
}

func TestHostileProblemIsOneShortLine(t *testing.T) {
	t.Parallel()
	var l problem.List
	huge := strings.Repeat("n", 1<<20)
	l.Errorf(problem.BadName, problem.Position{File: "a.cue", Line: 1, Col: 1}, "tools.\x1b[2J"+huge, "%s\n\x1b]0;x\x07%s", "x", huge)
	line := l[0].String()
	if len(line) > 16<<10 || strings.ContainsAny(line, "\n\x1b\x07") {
		t.Errorf("%d bytes: %.80q", len(line), line)
	}
}
