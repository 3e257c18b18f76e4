package contract

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Patterns of JSON Schema are regular expressions of ECMA-262, which has what RE2 lacks, and says some things
// differently. ecmaPattern says a pattern in RE2's words where that can, which matches in linear time; what
// looks ahead or behind, or refers back, is matched by backtracking, within a limit for each call.

// maxMatching is how long all the backtracking of one check may take. It is a limit on what one call may
// cost, and no part of the verdict: a check that reaches it has none.
const maxMatching = 500 * time.Millisecond

// maxBacktracking is how long a pattern that is matched by backtracking may be, in bytes.
const maxBacktracking = 8 << 10

// maxTranslated is how long a pattern may be once its properties of characters are written out, in bytes.
const maxTranslated = 64 << 10

// stopwatch is what backtracking may still cost the one check that uses the compiled contract.
type stopwatch struct {
	left time.Duration
	// out: a match was given up, so that the check's answer is none.
	out bool
}

// tooSlow is the error of a check that reached the limit; it is a context.DeadlineExceeded.
type tooSlow struct{}

func (tooSlow) Error() string {
	return fmt.Sprintf("matching the patterns of the schema takes longer than %s", maxMatching)
}

func (tooSlow) Is(target error) bool { return target == context.DeadlineExceeded }

func (w *stopwatch) reset() { w.left, w.out = maxMatching, false }

// engine compiles patterns for one validator. Without a stopwatch they are RE2's, as in contracts of CUE.
type engine struct {
	ecma  bool
	watch *stopwatch
	// slow: a pattern that was compiled is matched by backtracking.
	slow bool
}

func (e *engine) compile(pattern string) (jsonschema.Regexp, error) {
	if !e.ecma {
		return regexp.Compile(pattern)
	}
	fast, backtracking, err := ecmaPattern(pattern)
	if fast != nil || err != nil {
		return fastPattern{pattern, fast}, err
	}
	e.slow = true
	if e.watch == nil {
		e.watch = &stopwatch{}
		e.watch.reset()
	}
	return slowPattern{pattern, backtracking, e.watch}, nil
}

// ecmaPattern compiles a pattern for one of both engines.
func ecmaPattern(pattern string) (*regexp.Regexp, *regexp2.Regexp, error) {
	t := translate(pattern)
	if t.re2.Len() > maxTranslated {
		return nil, nil, fmt.Errorf("pattern %s is too large", clip(text(pattern)))
	}
	if !t.beyond {
		if re, err := regexp.Compile(t.re2.String()); err == nil {
			return re, nil, nil
		}
	}
	if len(pattern) > maxBacktracking {
		return nil, nil, fmt.Errorf("pattern %s is matched by backtracking, and longer than %d bytes",
			clip(text(pattern)), maxBacktracking)
	}
	re, err := regexp2.Compile(t.ecma.String(), regexp2.ECMAScript|regexp2.Unicode)
	if err != nil { // it may be of another language, such as Python's or .NET's
		re, err = regexp2.Compile(t.ecma.String(), regexp2.None)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pattern %s is no regular expression: %w", clip(text(pattern)), err)
	}
	return nil, re, nil
}

// fastPattern is one of RE2, known by what the schema says.
type fastPattern struct {
	source string
	*regexp.Regexp
}

func (p fastPattern) String() string { return p.source }

// slowPattern is one that backtracks. It belongs to one check at a time.
type slowPattern struct {
	source string
	re     *regexp2.Regexp
	watch  *stopwatch
}

func (p slowPattern) String() string { return p.source }

// MatchString reports a match where it gave up: what follows is not the check's answer, and where something
// is hidden by names, more is.
func (p slowPattern) MatchString(text string) bool {
	if p.watch.left <= 0 {
		p.watch.out = true
		return true
	}
	p.re.MatchTimeout = p.watch.left
	begin := time.Now()
	matched, err := p.re.MatchString(text)
	p.watch.left -= time.Since(begin)
	if err != nil {
		p.watch.out = true
		return true
	}
	return matched
}
