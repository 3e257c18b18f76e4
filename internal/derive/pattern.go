package derive

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/problem"
)

// regexp returns the pattern of =~ in a form that has the same meaning for JSON Schema's readers (ECMA-262)
// and CUE (RE2). It returns false if there is none, which the caller records as a loss, and if the pattern is
// invalid, which is a problem.
func (w *walker) regexp(x ast.Expr, at place) (string, bool) {
	v, ok := w.literalOf(x, at)
	if !ok || v.kind != token.STRING || v.bytes {
		return "", false
	}
	re := unquote(v.raw)
	if _, err := regexp.Compile(re); err != nil {
		hint := ""
		if strings.Contains(re, "(?=") || strings.Contains(re, "(?!") || strings.Contains(re, "(?<") {
			hint = "; RE2 has no look-around"
		}
		w.refuse(problem.BadRegex, Position(v.pos), at.path, "%v%s", err, hint)
		return "", false
	}
	out, err := portable(re)
	return out, err == nil
}

// matches walks =~"..." or !~"...".
func (w *walker) matches(x *ast.UnaryExpr, at place) *node {
	n := &node{types: []string{"string"}, pos: at.pos}
	re, ok := w.regexp(x.X, at)
	switch {
	case !ok && w.dependsOn(x.X):
		w.lose(contract.LossCrossField, at, Position(x.Pos()), "%s", written(x))
	case !ok:
		w.lose(contract.LossPattern, at, Position(x.Pos()), "%s%s", written(x), w.whyNot(x.X, at))
	}
	if !ok {
		n.lossy = true
		return n
	}
	if x.Op == token.MAT {
		n.patterns = []string{re}
	} else {
		n.not = []*node{{patterns: []string{re}}}
	}
	return n
}

// whyNot returns the part of a pattern that ECMA-262 reads differently.
func (w *walker) whyNot(x ast.Expr, at place) string {
	v, ok := w.literalOf(x, at)
	if !ok || v.kind != token.STRING {
		return ""
	}
	if _, err := portable(unquote(v.raw)); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// namesOnly returns the regular expression of a pattern that is a choice between names.
func (w *walker) namesOnly(x ast.Expr, at place) (string, bool) {
	var names []string
	for _, o := range flattened(x, token.OR) {
		v, ok := w.literalOf(o, at)
		if !ok || v.kind != token.STRING || v.bytes {
			return "", false
		}
		re, err := portable(regexp.QuoteMeta(unquote(v.raw)))
		if err != nil {
			return "", false
		}
		names = append(names, re)
	}
	return "^(?:" + strings.Join(names, "|") + ")$", true
}

// named declares the names of a pattern; the empty one is any name. [string] alone becomes
// additionalProperties.
func (n *node) named(pattern string, child *node) {
	if n.additional != nil {
		n.patternProperties = append([]property{{name: "", node: n.additional}}, n.patternProperties...)
		n.additional = nil
	}
	same := func(p property) bool { return p.name == pattern }
	switch i := slices.IndexFunc(n.patternProperties, same); {
	case i < 0:
		n.patternProperties = append(n.patternProperties, property{name: pattern, node: child})
	default: // both apply
		n.patternProperties[i].node = &node{also: []*node{n.patternProperties[i].node, child}}
	}
	if len(n.patternProperties) == 1 && n.patternProperties[0].name == "" {
		n.additional, n.patternProperties = n.patternProperties[0].node, nil
	}
}

// portable rewrites a valid RE2 pattern to one with the same meaning in ECMA-262 with its u flag, or returns
// the part that can't be rewritten. It expands `.` and \s, whose meanings differ, and copies the rest.
func portable(re string) (string, error) {
	var out strings.Builder
	assertion := false // RE2 allows ^, $ and \b to be repeated, ECMA-262 does not
	for i := 0; i < len(re); {
		part, n, err := portablePart(re[i:])
		if err != nil {
			return "", err
		}
		if assertion && strings.IndexByte("*+?{", re[i]) >= 0 {
			return "", fmt.Errorf("%.1s repeats a place instead of a character", re[i:])
		}
		out.WriteString(part)
		assertion = part == "^" || part == "$" || part == `\b` || part == `\B`
		i += n
	}
	return out.String(), nil
}

// portablePart rewrites the first element of re, and returns its length.
func portablePart(re string) (string, int, error) {
	switch c := re[0]; c {
	case '.':
		return `[^\n]`, 1, nil
	case '(':
		if strings.HasPrefix(re, "(?") && !strings.HasPrefix(re, "(?:") {
			return "", 0, fmt.Errorf("%.4s is not common to both", re)
		}
	case '[':
		return portableClass(re)
	case '{':
		n := strings.IndexByte(re, '}')
		if n < 0 || strings.Trim(re[1:n], "0123456789,") != "" || n == 1 || re[1] == ',' {
			return "", 0, fmt.Errorf(`a literal { must be written \{`)
		}
		return re[:n+1], n + 1, nil
	case '}', ']':
		return "", 0, fmt.Errorf(`a literal %c must be written \%c`, c, c)
	case '\\':
		return portableEscape(re, false)
	}
	return re[:1], 1, nil
}

func portableEscape(re string, class bool) (string, int, error) {
	switch c := re[1]; {
	case c == 's' && class:
		return `\t\n\f\r `, 2, nil
	case c == 's':
		return `[\t\n\f\r ]`, 2, nil
	case c == 'S' && !class:
		return `[^\t\n\f\r ]`, 2, nil
	case strings.IndexByte(`dDwWfnrtv^$\.*+?()[]{}|/`, c) >= 0:
		return re[:2], 2, nil
	case (c == 'b' || c == 'B' || c == '-') && (c == '-') == class:
		return re[:2], 2, nil
	case c == 'x' && len(re) >= 4 && re[2] != '{':
		return re[:4], 4, nil
	}
	return "", 0, fmt.Errorf("%.2s is not common to both", re)
}

func portableClass(re string) (string, int, error) {
	var out strings.Builder
	out.WriteByte('[')
	i := 1
	if i < len(re) && re[i] == '^' {
		out.WriteByte('^')
		i++
	}
	set := false // the last element was a class of characters, so a range can't begin with it
	for first := true; i < len(re); first = false {
		wasSet := set
		set = false
		switch c := re[i]; {
		case c == '-' && wasSet && i+1 < len(re) && re[i+1] != ']':
			return "", 0, fmt.Errorf(`a - behind a set must be written \-`)
		case c == ']' && first:
			return "", 0, fmt.Errorf(`a ] that begins a class must be written \]`)
		case c == ']':
			out.WriteByte(']')
			return out.String(), i + 1, nil
		case c == '[':
			return "", 0, fmt.Errorf(`a [ in a class must be written \[, and [:name:] is not common to both`)
		case c == '\\':
			part, n, err := portableEscape(re[i:], true)
			if err != nil {
				return "", 0, err
			}
			set = strings.IndexByte("dDwWs", re[i+1]) >= 0
			out.WriteString(part)
			i += n
		default:
			out.WriteByte(c)
			i++
		}
	}
	return "", 0, fmt.Errorf("a class without end")
}
