package decision

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/internal/cache"
)

// maxText is the longest text, in bytes, that a built-in may return.
const maxText = 16 << 20

var errTooLarge = fmt.Errorf("it would make more than %d MiB, or take too long", maxText>>20)

// sizeChecks are checks of the operands and results of built-ins whose cost the size of their operands does
// not bound, or which turn text into numbers. They apply to evaluations of this package only.
var sizeChecks = map[string]struct{ before, after func(...*ast.Term) error }{
	"to_number":         {before: shortText, after: shortNumbers},
	"units.parse":       {before: shortText, after: shortNumbers},
	"units.parse_bytes": {before: shortText, after: shortNumbers},
	"json.unmarshal":    {after: shortNumbers},
	"yaml.unmarshal":    {after: shortNumbers},
	"product":           {after: shortNumbers},

	"concat": {before: func(args ...*ast.Term) error {
		n, all := 0, 0
		eachIn(args[1], func(t *ast.Term) { n, all = n+1, all+lengthOf(t) })
		return atMost(all + n*lengthOf(args[0]))
	}},
	"replace": {before: func(args ...*ast.Term) error {
		x, old := stringOf(args[0]), stringOf(args[1])
		if err := checkReplace(len(x), len(old)); err != nil {
			return err
		}
		return atMost(len(x) + strings.Count(x, old)*lengthOf(args[2]))
	}},
	"strings.replace_n": {before: func(args ...*ast.Term) error {
		old, longest := 0, 0
		if patterns, ok := args[0].Value.(ast.Object); ok {
			patterns.Foreach(func(k, t *ast.Term) { old, longest = max(old, lengthOf(k)), max(longest, lengthOf(t)) })
		}
		if err := checkReplace(lengthOf(args[1]), old); err != nil {
			return err
		}
		return atMost((lengthOf(args[1]) + 1) * longest)
	}},
	"regex.match":                      {before: func(args ...*ast.Term) error { return checkMatch(args[0], lengthOf(args[1])) }},
	"regex.is_valid":                   {before: func(args ...*ast.Term) error { return checkMatch(args[0], 1) }},
	"regex.find_n":                     {before: func(args ...*ast.Term) error { return checkMatchAll(args[0], args[1]) }},
	"regex.split":                      {before: func(args ...*ast.Term) error { return checkMatchAll(args[0], args[1]) }},
	"regex.find_all_string_submatch_n": {before: func(args ...*ast.Term) error { return checkMatchAll(args[0], args[1]) }},
	"regex.replace": {before: func(args ...*ast.Term) error {
		return errors.Join(checkMatchAll(args[1], args[0]), atMost((lengthOf(args[0])+1)*lengthOf(args[2])))
	}},
	"sprintf": {before: sprintfSize},
}

func init() {
	for name, bound := range sizeChecks {
		stock := topdown.GetBuiltin(name)
		ast.BuiltinMap[name].CanSkipBctx = false // the evaluation is in that
		topdown.RegisterBuiltinFunc(name, func(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
			if _, ours := bctx.Cancel.(*evaluation); !ours {
				return stock(bctx, args, iter)
			}
			if bound.before != nil {
				if err := bound.before(args...); err != nil {
					return err
				}
			}
			return stock(bctx, args, func(made *ast.Term) error {
				if bound.after != nil {
					if err := bound.after(made); err != nil {
						return err
					}
				}
				return iter(made)
			})
		})
	}
}

// checkReplace bounds the time of strings.Replacer, which grows with the square of the text that it replaces
// and with the product of both lengths.
func checkReplace(in, old int) error {
	if old > 10_000 || in*old > 1<<30 {
		return errTooLarge
	}
	return nil
}

// checkMatch bounds the time of a match, which grows with the product of the size of the compiled pattern and
// the length of the text.
func checkMatch(pattern *ast.Term, steps int) error {
	if size := patternSize(stringOf(pattern)); size > 10_000 || steps > maxMatching/max(1, size) {
		return errTooLarge
	}
	return nil
}

// checkMatchAll bounds the time of finding all matches: it grows with each rest of the text.
func checkMatchAll(pattern, text *ast.Term) error {
	n := lengthOf(text)
	return checkMatch(pattern, n*max(1, n/16))
}

const maxMatching = 1 << 27

// patternSizes caches how many instructions patterns have.
var patternSizes = cache.New[string, int](256)

func patternSize(pattern string) int {
	if len(pattern) > 10_000 {
		return len(pattern)
	}
	return patternSizes.Do(pattern, func() int {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return 0 // no pattern: the built-in says so
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			return 0
		}
		return len(prog.Inst)
	})
}

func atMost(size int) error {
	if size > maxText {
		return errTooLarge
	}
	return nil
}

func stringOf(t *ast.Term) string { s, _ := t.Value.(ast.String); return string(s) }
func lengthOf(t *ast.Term) int    { return len(stringOf(t)) }

func eachIn(t *ast.Term, f func(*ast.Term)) {
	if of, ok := t.Value.(interface{ Foreach(func(*ast.Term)) }); ok {
		of.Foreach(f)
	}
}

func shortText(args ...*ast.Term) error {
	if lengthOf(args[0]) > shape.MaxDigits {
		return shape.ErrTooLong
	}
	return nil
}

func shortNumbers(made ...*ast.Term) error {
	found := false
	ast.WalkTerms(made[0], func(t *ast.Term) bool {
		n, ok := t.Value.(ast.Number)
		found = found || ok && shape.TooLong(string(n))
		return found
	})
	if found {
		return shape.ErrTooLong
	}
	return nil
}

// sprintfSize bounds the result of sprintf from above: each verb may take the longest operand, and be padded
// to the width in the format or, with *, in an operand.
func sprintfSize(args ...*ast.Term) error {
	format, longest, verbs, padded := stringOf(args[0]), 0, 0, 0
	eachIn(args[1], func(t *ast.Term) {
		if s, ok := t.Value.(ast.String); ok {
			longest = max(longest, 4*len(s)) // as %x and %q write it
		} else {
			longest = max(longest, 4*len(t.String()))
		}
	})
	number := 0
	for _, c := range format {
		switch {
		case c >= '0' && c <= '9':
			number = min(number*10+int(c-'0'), maxText)
			continue
		case c == '%':
			verbs++
		case c == '*':
			number = 1_000_000 // no padding is longer
		}
		padded, number = min(padded+number, 2*maxText), 0
	}
	return atMost(len(format) + verbs*longest + padded)
}
