package contract

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// Patterns as people write them, and strings of which some match and some don't.
var (
	ecmaPatterns = []string{
		`^[a-z]+$`, `^(?=.*[A-Z])(?=.*\d).{8,}$`, `^(?!admin$)\w+$`, `(?<=a)b`, `(?<!a)b`, `^(a+)b\1$`, `^(?<q>['"]).*\k<q>$`, `^\u0041\u{42}+$`,
		`^[\u4e00-\u9fa5]+$`, `^[^\u0000-\u001f]*$`, `^\p{L}+$`, `^\p{Script=Greek}+$`, `^\p{Lu}\p{Letter}*$`, `^\P{L}$`, `^[\p{L}\p{N}_-]+$`, `^\p{Alphabetic}+$`,
		`^\p{ASCII}*$`, `^\s$`, `^\S$`, `^[\s\d]+$`, `^[\S]$`, `^[^\s]+$`, `^.$`, `^..$`, `^[\s\-.]+$`, `^[\w.\-]+@[\w\-]+\.\w+$`, `^\d{4}-\d{2}$`, `a{0}`, `^a{2,1500}$`,
		`^\/x\/$`, `^\cJ$`, `^\x41$`, `^\0$`, `^[\b]$`, `\bword\b`, `^$`, `a|b`, `^[[a]$`, `^[^]$`, `^(?:a|ab)(?:c|bcd)(?:d*)$`, `^\D\W$`, `^\v\f\t$`, `^[^"\\]*$`,
		`^\u{1F600}$`, `^\uD83D\uDE00$`, `(?=a)`, `^(?:[^<]|<(?!script))*$`, `^\$\{.*\}$`, `^[\]a]+$`, `^[a\]]+$`, `^\^\.\*\+\?\(\)\[\]\|$`, `^[&-]+$`, `x$`,
	}
	ecmaSubjects = []string{
		"", "a", "abc", "ABC", "A", "B", "AB", "Password1", "password", "admin", "administrator", "ab", "cb", "b", "aabaa", "aba", "aaba", `"x"`, `'x'`, `"x'`, "ABBB", "中文", "中文a",
		"\n", "\r", "\u2028", "\u00a0", "\ufeff", "\v", "\f", "\t", " ", "é", "É", "Éa", "α", "αβγ", "αa", "١", "1", "-", "_", "a-1", "1 2", "a.b@c-d.ef", "2026-12", "aa", strings.Repeat("a", 1200),
		"/x/", "\x00", "\b", "a word here", "swordfish", "[", "abcd", "a1!", "-!", "\v\f\t", `say "x"`, "😀", "😀a", "<b>", "<script", "${x}", "]a", "^.*+?()[]|", "&-", "x\n", "x", "bb", "bab",
	}
)

// TestPatterns holds both engines to JavaScript's.
func TestPatterns(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to compare with")
	}
	in, err := json.Marshal(map[string]any{"patterns": ecmaPatterns, "subjects": ecmaSubjects})
	if err != nil {
		t.Fatal(err)
	}
	script := `const {patterns, subjects} = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(patterns.map(p => { let re; try { re = new RegExp(p, "u") } catch { re = new RegExp(p) } return subjects.map(s => re.test(s)) })))`
	cmd := exec.CommandContext(t.Context(), node, "-e", script)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v", out, err)
	}
	var want [][]bool
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	slow := 0
	for i, pattern := range ecmaPatterns {
		e := engine{ecma: true}
		re, err := e.compile(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if e.slow {
			slow++
		}
		for j, subject := range ecmaSubjects {
			if got := re.MatchString(subject); got != want[i][j] {
				t.Errorf("%s (slow: %t) on %q: got %t, want %t", pattern, e.slow, subject, got, want[i][j])
			}
		}
	}
	t.Logf("%d patterns, %d of them backtrack, %d strings", len(ecmaPatterns), slow, len(ecmaSubjects))
	if slow > 12 {
		t.Errorf("got %d patterns that backtrack, want those alone that RE2 can't say", slow)
	}
}
