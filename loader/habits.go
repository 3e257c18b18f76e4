package loader

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/internal/derive"
	"github.com/catalogd/catalogd/problem"
)

// habit is a form of another language, with what CUE writes in its place. It is looked for only in a file that
// is not CUE.
type habit struct {
	form *regexp.Regexp // of a masked line
	// advice gets the submatches in the line as it is written; "" means that it is not that habit.
	advice func(m []string) string
}

func says(words string) func([]string) string { return func([]string) string { return words } }

const (
	commentAdvice = "a comment begins with //, and # begins a definition, as in #Unit: ..."
	typeForm      = `[A-Za-z_#][\w.]*(?:\[\])?|\[[^\]]*\]`
)

var habits = []habit{
	{regexp.MustCompile(`^\s*(#.*)$`), func(m []string) string {
		if definition.MatchString(m[1]) {
			return ""
		}
		return commentAdvice
	}},
	{regexp.MustCompile(`\s(#)(?:\s|$)`), says(commentAdvice)},
	{regexp.MustCompile(`(/\*|\*/)`), says("CUE has no /* */; begin each line of a comment with //")},
	{regexp.MustCompile(`^\s*(package\s*(?::|["']).*)$`), says("a package clause is a name alone: write `package catalog`")},
	{regexp.MustCompile(`^\s*(import\b.*)$`), func(m []string) string {
		switch name := importName.FindStringSubmatch(m[1]); {
		case strings.Contains(m[1], " from "):
			return "an import names a package alone, and its names are used as strings.MinRunes: write import \"strings\""
		case name != nil:
			return fmt.Sprintf("an import stands in quotes: write import %q", name[1])
		}
		return ""
	}},
	{regexp.MustCompile(`(<<)\s*:`), says("CUE has no <<: and no anchors; give the shared part a name, #Name: {...}, and write #Name & {...}")},
	{regexp.MustCompile(`:\s*([|>][-+]?)\s*$`), says(`a text of several lines stands between """ and """, each on a line of its own`)},
	{regexp.MustCompile(`(;)`), says("CUE has no ; between declarations; take it away")},
	{regexp.MustCompile("(`)"), says(`a text stands between " and ", one of several lines between """ and """, and one with backslashes between #" and "#`)},
	{regexp.MustCompile(`([\x{201c}\x{201d}\x{2018}\x{2019}])`), says(`these are typographic quotes; write "`)},
	{regexp.MustCompile(`^\s*(\.\.\.\s*#?[A-Za-z_][\w.]*)\s*,?\s*$`), func(m []string) string {
		name := strings.TrimLeft(m[1], ". ")
		return fmt.Sprintf("a struct takes over another by &: write %s & {...}, without the ...", name)
	}},
	{regexp.MustCompile(`^\s*([!?])([A-Za-z_]\w*)\s*:`), func(m []string) string {
		return fmt.Sprintf("the mark stands behind the name: write %s%s: ...", m[2], m[1])
	}},
	{regexp.MustCompile(`^\s*([\w-]+)[?!]?\s*:\s*(` + typeForm + `)\s*([?!])\s*,?\s*$`), func(m []string) string {
		return fmt.Sprintf("the mark stands behind the name: write %s%s: %s", m[1], m[3], cueType(m[2]))
	}},
	{regexp.MustCompile(`(?:^|[{,])\s*([\w-]+|"[^"]*")[?!]?\s*:\s*(` + typeForm + `)\s*=\s*([^=~\s{\[][^,}]*)`), func(m []string) string {
		return fmt.Sprintf("a default stands before the type, with *: write %s: *%s | %s", m[1], strings.TrimSpace(m[3]), cueType(m[2]))
	}},
	{regexp.MustCompile(`\b([A-Za-z_]\w*\[\])`), func(m []string) string {
		return fmt.Sprintf("a list is written %s", cueType(m[1]))
	}},
	{regexp.MustCompile(`\b((?:Array|List|list|array|Set|Optional|Dict|Map|Record)\s*<[^>]*>)`), func(m []string) string {
		kind, of, _ := strings.Cut(strings.TrimSuffix(m[1], ">"), "<")
		switch strings.TrimSpace(kind) {
		case "Optional":
			return fmt.Sprintf("what may be left out has a ? behind its name: write name?: %s", cueType(of))
		case "Dict", "Map", "Record":
			_, value, _ := strings.Cut(of, ",")
			return fmt.Sprintf("a struct with any names is written {[string]: %s}", cueType(strings.TrimSpace(value)))
		}
		return fmt.Sprintf("a list is written [...%s]", cueType(of))
	}},
	{regexp.MustCompile(`(?:^|[\s{,:])([A-Za-z_]\w*(?:[-.][A-Za-z_]\w*)+|\d\w*[A-Za-z_]\w*)[?!]?\s*:`), func(m []string) string {
		return fmt.Sprintf("a name with - or ., or one that begins with a digit, stands in quotes: write %q: ...", m[1])
	}},
	{regexp.MustCompile(`^\s*([\w-]+|"[^"]*")([?!]?\s*=\s*)([^=~\s].*?),?\s*$`), func(m []string) string {
		if m[2] == "=" && strings.Contains(m[3], ":") { // an alias, X=name: ...
			return ""
		}
		return fmt.Sprintf("a field has a : and no =: write %s: %s", m[1], shown(m[3]))
	}},
	{regexp.MustCompile(`^\s*([\w-]+)\s*:\s*(required|optional)\s+(` + typeForm + `)\s*,?\s*$`), func(m []string) string {
		return fmt.Sprintf("a mark stands behind the name: write %s%s: %s", m[1], map[string]string{"required": "!", "optional": "?"}[m[2]], cueType(m[3]))
	}},
	{regexp.MustCompile(`^\s*(?:[\w-]+[?!]?\s*:\s*)*?([\w-]+|"[^"]*")[?!]?\s*:\s*([A-Za-z][\w'.-]*(?:,?\s+[\w'.,!?()-]+)+)\s*$`), func(m []string) string {
		if strings.Contains(m[2], " for ") && strings.Contains(m[2], " in ") {
			return ""
		}
		return fmt.Sprintf(`a text stands in quotes: write %s: "..."`, m[1])
	}},
}

var (
	definition = regexp.MustCompile(`^#[A-Za-z_$][\w$]*[?!]?\s*(?::|&|\{|$|\()`)
	importName = regexp.MustCompile(`^import\s+([A-Za-z_][\w./]*)\s*$`)
)

// cueType writes a type of another language as CUE does.
func cueType(name string) string {
	if item, ok := strings.CutSuffix(name, "[]"); ok {
		return "[..." + cueType(item) + "]"
	}
	name = strings.TrimSpace(name)
	if cue, ok := foreignTypes[strings.ToLower(name)]; ok {
		cue, _, _ = strings.Cut(cue, " (")
		return cue
	}
	if slices.Contains(typeNames, strings.ToLower(name)) {
		return strings.ToLower(name)
	}
	return name
}

// habit looks for the form of another language in a line.
func (l *lines) habit(line int) (col int, advice string, ok bool) {
	for _, h := range habits {
		m := h.form.FindStringSubmatchIndex(l.masked[line-1])
		if m == nil {
			continue
		}
		groups := make([]string, len(m)/2)
		for g := range groups {
			if m[2*g] >= 0 {
				groups[g] = elided(l.masked[line-1][m[2*g]:m[2*g+1]])
			}
		}
		if advice := h.advice(groups); advice != "" {
			return m[2] + 1, advice, true
		}
	}
	return 0, "", false
}

var (
	yamlItems = regexp.MustCompile(`(?m)^\s*-\s+\S`)
	yamlItem  = regexp.MustCompile(`^\s*-\s+\S`)
	yamlKey   = regexp.MustCompile(`:\s*$`)
)

// misread reports what CUE takes for something else than was meant: a list of YAML, which is a subtraction,
// and && and || of values, which are conditions. It reports whether there is any.
func (s *source) misread(f *ast.File) bool {
	before := len(s.problems)
	key := false // the last line that is not blank ends in a colon
	for i, line := range s.lines(yamlItems) {
		if key && yamlItem.MatchString(line) {
			s.problems.Errorf(problem.CUESyntax, problem.Position{File: s.place, Line: i + 1, Col: strings.Index(line, "-") + 1}, "",
				`this is a list of YAML; CUE writes ["one", "two"]`)
		}
		if strings.TrimSpace(line) != "" {
			key = yamlKey.MatchString(line)
		}
	}
	ast.Walk(f, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if ok && (b.Op == token.LAND || b.Op == token.LOR) && (isNoCondition(b.X) || isNoCondition(b.Y)) {
			what := "what fits both values is written with one &"
			if b.Op == token.LOR {
				what = "a choice of values is written with one |"
			}
			s.problems.Errorf(problem.CUESyntax, positionOr(derive.Position(b.OpPos), s.place), "", "%s is for conditions; %s", b.Op, what)
			return false
		}
		return true
	}, nil)
	return len(s.problems) > before
}

// lines returns the masked lines of the file if it has what is looked for.
func (s *source) lines(form *regexp.Regexp) []string {
	if !form.Match(s.data) {
		return nil
	}
	return newLines(s.data).masked
}

// isNoCondition reports whether an operand of && or || can't be true or false.
func isNoCondition(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.StructLit, *ast.ListLit, *ast.Interpolation:
		return true
	case *ast.BasicLit:
		return x.Kind != token.TRUE && x.Kind != token.FALSE
	case *ast.Ident:
		return x.Node == nil && slices.Contains(typeNames[:8], x.Name) || strings.HasPrefix(x.Name, "#")
	}
	return false
}
