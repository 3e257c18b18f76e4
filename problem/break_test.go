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
	} {
		if got := problem.Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
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
