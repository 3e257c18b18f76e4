package loader

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// CUE's parser reports where it could go no further, which is often not where the mistake is, and several
// errors for one mistake. Here each mistake becomes one problem, at its place, with what to write.

// maxMistakes caps the problems of one file that is not CUE.
const maxMistakes = 20

// syntaxErrors adds the problems of a file that is not CUE.
func (s *source) syntaxErrors(err error) {
	all := errors.Errors(err)
	slices.SortStableFunc(all, func(a, b errors.Error) int {
		return cmp.Compare(a.Position().Offset(), b.Position().Offset())
	})
	lines := newLines(s.data)
	seen, habits := map[int]bool{}, map[int]bool{} // lines with a problem, and with the form of another language
	report := func(line, col int, message string) {
		if !seen[line] && len(seen) < maxMistakes {
			seen[line] = true
			s.problems.Errorf(problem.CUESyntax, problem.Position{File: s.place, Line: line, Col: col}, "", "%s", message)
		}
	}
	// near reports whether a line, or one of the two above it, which can have caused its error, has a habit.
	near := func(line int) bool {
		for n := line; n > max(0, line-3); n-- {
			if habits[n] {
				return true
			}
		}
		return false
	}
	for n := range lines.raw {
		if col, advice, ok := lines.habit(n + 1); ok {
			habits[n+1] = true
			report(n+1, col, advice)
		}
	}
	open, isOpen := lines.unbalanced()
	for i, e := range all {
		pos := derive.Position(e.Position())
		message := text(e)
		if pos.Line < 1 || pos.Line > len(lines.raw) {
			s.problems.Errorf(problem.CUESyntax, positionOr(pos, s.place), "", "%s", message)
			continue
		}
		if near(pos.Line) {
			continue
		}
		if isOpen && !lines.unterminated && (open.line < pos.Line || open.line == pos.Line && open.col <= pos.Col) {
			report(open.line, open.col, open.message)
			continue
		}
		if (i > 0 || len(habits) > 0) && strings.Contains(message, "EOF") {
			continue // the end of the file is only where the parser gave up
		}
		report(pos.Line, pos.Col, lines.explain(pos.Line, pos.Col, message))
	}
}

// lines are the lines of a file: as they are, and with the contents of texts and comments replaced, so that
// what is looked for in the syntax is not found in them. The columns are the same.
type lines struct {
	raw, masked []string
	// unterminated: a text is not closed.
	unterminated bool
}

func newLines(data []byte) *lines {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	l := &lines{raw: strings.Split(string(data), "\n")}
	masked, unterminated := mask(data)
	l.masked, l.unterminated = strings.Split(string(masked), "\n"), unterminated
	for i := range l.raw {
		l.raw[i] = strings.TrimSuffix(l.raw[i], "\r")
		l.masked[i] = l.masked[i][:len(l.raw[i])]
	}
	return l
}

var opening = regexp.MustCompile(`^#*("""|'''|"|')`)

// mask replaces what is inside of texts by x, and comments by blanks.
func mask(data []byte) (masked []byte, unterminated bool) {
	out := bytes.Clone(data)
	fill := func(from, to int, with byte) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = with
			}
		}
	}
	for i := 0; i < len(data); {
		rest := data[i:]
		if bytes.HasPrefix(rest, []byte("//")) {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			fill(i, i+end, ' ')
			i += end
			continue
		}
		m := opening.Find(rest)
		if m == nil {
			i++
			continue
		}
		quote := bytes.TrimLeft(m, "#")
		hashes := m[:len(m)-len(quote)]
		end, ok := closing(rest[len(m):], quote, hashes)
		unterminated = unterminated || !ok
		fill(i+len(m), i+len(m)+end, 'x')
		i += len(m) + end
		if ok {
			i += len(m)
		}
	}
	return out, unterminated
}

// closing returns the length of a text before its closing quotes; ok is false if it has none.
func closing(data, quote, hashes []byte) (n int, ok bool) {
	end := append(bytes.Clone(quote), hashes...)
	escape := append([]byte(`\`), hashes...)
	for i := 0; i < len(data); {
		switch {
		case bytes.HasPrefix(data[i:], end):
			return i, true
		case data[i] == '\n' && len(quote) == 1:
			return i, false
		case bytes.HasPrefix(data[i:], escape):
			i += len(escape)
			if i < len(data) && data[i] == '(' {
				i += interpolated(data[i:])
			} else {
				i++
			}
		default:
			i++
		}
	}
	return len(data), false
}

// interpolated returns the length of an interpolation, from its parenthesis to the one that closes it.
func interpolated(data []byte) int {
	depth := 0
	for i, b := range data {
		switch b {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\n':
			return i
		}
	}
	return len(data)
}

// bracket is one that is missing or too many, in words.
type bracket struct {
	line, col int
	message   string
}

var closers = map[byte]byte{'{': '}', '[': ']', '(': ')'}

// unbalanced finds the bracket that is not closed or closes nothing. Which one of several it is, only the
// indentation tells.
func (l *lines) unbalanced() (b bracket, ok bool) {
	type opened struct {
		char              byte
		line, col, indent int
	}
	var stack []opened
	var suspect *bracket // closed by a line that is indented less than the one that opened it
	var early string     // closed by a line that is indented further
	unclosed := func(o opened, before int) bracket {
		where := fmt.Sprintf("before line %d", before)
		if before == 0 {
			where = "at the end of the file"
		}
		return bracket{o.line, o.col, fmt.Sprintf("the %c of this line is not closed: a %c is missing, probably %s", o.char, closers[o.char], where)}
	}
	for n, line := range l.masked {
		blank := len(line) - len(strings.TrimLeft(line, " \t"))
		for i := range len(line) {
			switch c := line[i]; c {
			case '{', '[', '(':
				stack = append(stack, opened{c, n + 1, i + 1, blank})
			case '}', ']', ')':
				if len(stack) == 0 {
					return bracket{n + 1, i + 1, fmt.Sprintf("there is one %c too many: nothing is open here that it would close%s", c, early)}, true
				}
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if closers[top.char] != c {
					return unclosed(top, n+1), true
				}
				if i == blank && blank < top.indent && suspect == nil {
					b := unclosed(top, n+1)
					suspect = &b
				}
				if i == blank && blank > top.indent && early == "" {
					early = fmt.Sprintf("; the %c of line %d is already closed in line %d", top.char, top.line, n+1)
				}
			}
		}
	}
	switch {
	case len(stack) == 0:
		return b, false
	case suspect != nil:
		return *suspect, true
	}
	return unclosed(stack[len(stack)-1], 0), true
}

// explain says in words what the parser expected, and what to write.
func (l *lines) explain(line, col int, message string) string {
	whole := elided(l.masked[line-1])
	at := min(col-1, len(l.masked[line-1]))
	before, after := elided(strings.TrimRight(l.masked[line-1][:at], " \t")), l.masked[line-1][at:]
	word := lastWord.FindString(before)
	switch {
	case strings.HasPrefix(strings.TrimSpace(whole), "import "):
		return "imports stand above all declarations, directly below the package clause; move this one there"
	case strings.HasPrefix(message, "expected label or ':'") && word != "":
		return fmt.Sprintf("a : is missing behind %s: write `%s`", word, shown(colons(whole)))
	case message == "missing ',' in struct literal" && strings.HasPrefix(after, "{") && word != "":
		if strings.HasPrefix(word, "#") {
			return fmt.Sprintf("an & is missing behind %s: write `%s & %s`", word, shown(before), shown(elided(after)))
		}
		return fmt.Sprintf("a : is missing behind %s: write `%s: %s`", word, shown(before), shown(elided(after)))
	case message == "missing ',' in struct literal", message == "missing ',' in list literal":
		return fmt.Sprintf("a comma or a new line is missing here: write `%s, %s`", shown(before), shown(elided(after)))
	case message == "string literal not terminated":
		if strings.HasPrefix(strings.TrimLeft(after, "#"), `"""`) || strings.HasPrefix(strings.TrimLeft(after, "#"), `'''`) {
			return `the """ that opens this text has none that closes it, which stands on a line of its own`
		}
		return `the text has no closing quote in its line; a text of several lines stands between """ and """, each on a line of its own`
	case message == "unknown escape sequence":
		return "a \\ in a text begins an escape, as \\n does, and this one does not exist; write \\\\ for a backslash, or the text between #\" and \"#"
	case strings.HasPrefix(message, "expected newline after multiline quote"):
		return `behind """ the text begins on the next line; write a text of one line between " and "`
	case strings.HasPrefix(message, "non-matching whitespace"):
		return `each line of this text must begin with the blanks and tabs that stand before its closing """`
	case strings.HasPrefix(message, "illegal character U+00A0"):
		return "there is a no-break space here (U+00A0), which looks like a blank; write a blank"
	case strings.HasPrefix(message, "expected operand") && strings.HasSuffix(before, ":"):
		return fmt.Sprintf("a value is expected here, found %s; a text stands in quotes", foundWords(message))
	case strings.HasPrefix(message, "expected operand"):
		return fmt.Sprintf("a value is expected here, found %s", foundWords(message))
	}
	for token, words := range map[string]string{"'IDENT'": "a name", "'STRING'": "a text in quotes", "'EOF'": "the end of the file"} {
		message = strings.Replace(message, "expected "+token, "expected "+words, 1)
	}
	if expected, _, ok := strings.Cut(message, ", found "); ok {
		return expected + ", found " + foundWords(message)
	}
	return message
}

var lastWord = regexp.MustCompile(`[\w$#".-]+[?!]?$`)

// foundWords returns in words what the parser found.
func foundWords(message string) string {
	_, what, _ := strings.Cut(message, ", found ")
	for _, token := range []string{"'IDENT' ", "'STRING' ", "'INT' ", "'FLOAT' "} {
		what = strings.TrimPrefix(what, token)
	}
	if strings.HasPrefix(what, `"`) {
		return "a text"
	}
	switch what {
	case "newline":
		return "the end of the line"
	case "'EOF'":
		return "the end of the file"
	case "'ILLEGAL'":
		return "a character that CUE does not have"
	}
	return what
}

var labelled = regexp.MustCompile(`^(\s*)((?:[\w$#"-]+[?!]?\s+)+)(\{.*|[\w$#"-]+[?!]?\s*[:{].*)$`)

// colons puts a colon between the names at the beginning of a line, as in `tools git_log: {`.
func colons(line string) string {
	m := labelled.FindStringSubmatch(line)
	if m == nil {
		words := strings.SplitN(strings.TrimSpace(line), " ", 2)
		return strings.Join(words, ": ")
	}
	rest := regexp.MustCompile(`^([\w$#"-]+[?!]?)\s*\{`).ReplaceAllString(m[3], "$1: {")
	return m[1] + strings.Join(strings.Fields(m[2]), ": ") + ": " + rest
}

var contents = regexp.MustCompile(`("""|"|')x+("""|"|'|$)`)

// elided replaces the contents of texts in a part of a masked line. A message must not quote them, because a
// file that is not CUE can't be searched for secrets reliably.
func elided(masked string) string { return contents.ReplaceAllString(masked, "$1...$2") }

// shown is a part of a line as a message quotes it.
func shown(part string) string {
	part = strings.TrimSpace(part)
	if r := []rune(part); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return part
}
