package contract

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// Patterns of JSON Schema are regular expressions of ECMA-262, which has features that RE2 lacks, and differs
// in syntax. ecmaPattern translates a pattern to RE2, which matches in linear time, if that is possible;
// patterns with lookaround or back-references are matched by backtracking, within a time limit for each call.

// maxMatching caps the total time that one check may spend on backtracking. It limits the cost of a call and
// is not part of the verdict: a check that reaches it has no verdict.
const maxMatching = 500 * time.Millisecond

// maxBacktracking caps the length of a pattern that is matched by backtracking, in bytes.
const maxBacktracking = 8 << 10

// maxTranslated caps the length of a pattern after its character properties are expanded, in bytes.
const maxTranslated = 64 << 10

// stopwatch holds the time left for backtracking in the check that is using the compiled contract.
type stopwatch struct {
	left time.Duration
	// out: a match was abandoned, so the check has no verdict.
	out bool
}

// tooSlow is the error of a check that reached the limit; it is a context.DeadlineExceeded.
type tooSlow struct{}

func (tooSlow) Error() string {
	return fmt.Sprintf("matching the patterns of the schema takes longer than %s", maxMatching)
}

func (tooSlow) Is(target error) bool { return target == context.DeadlineExceeded }

func (w *stopwatch) reset() { w.left, w.out = maxMatching, false }

// engine compiles patterns for one validator. Without a stopwatch it uses RE2 syntax, as in contracts of CUE.
type engine struct {
	ecma  bool
	watch *stopwatch
	// slow: at least one compiled pattern is matched by backtracking.
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

// ecmaPattern compiles a pattern for one of the two engines.
func ecmaPattern(pattern string) (*regexp.Regexp, *regexp2.Regexp, error) {
	t := translate(pattern)
	if t.re2.Len() > maxTranslated {
		return nil, nil, fmt.Errorf("pattern %s is too large", quote.Clip(text(pattern)))
	}
	if !t.beyond {
		if re, err := regexp.Compile(t.re2.String()); err == nil {
			return re, nil, nil
		}
	}
	if len(pattern) > maxBacktracking {
		return nil, nil, fmt.Errorf("pattern %s is matched by backtracking, and longer than %d bytes",
			quote.Clip(text(pattern)), maxBacktracking)
	}
	re, err := regexp2.Compile(t.ecma.String(), regexp2.ECMAScript|regexp2.Unicode)
	if err != nil { // it may be in another syntax, such as Python's or .NET's
		re, err = regexp2.Compile(t.ecma.String(), regexp2.None)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pattern %s is not a regular expression: %w", quote.Clip(text(pattern)), err)
	}
	return nil, re, nil
}

// fastPattern is a pattern of RE2 whose String is the text in the schema.
type fastPattern struct {
	source string
	*regexp.Regexp
}

func (p fastPattern) String() string { return p.source }

// slowPattern is a pattern that backtracks. Only one check may use it at a time.
type slowPattern struct {
	source string
	re     *regexp2.Regexp
	watch  *stopwatch
}

func (p slowPattern) String() string { return p.source }

// MatchString reports a match if it abandoned matching: the check has no verdict then, and where names decide
// what is redacted, more is redacted.
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
