package decision

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/catalogd/catalogd/internal/cache"
)

// The limits of redact_patterns: how many there may be in one decision, how long each may be in bytes, and
// how many instructions each may compile to. An RE2 takes time in proportion to that and to the length of the
// text.
const (
	maxPatterns       = 64
	maxPatternLength  = 1000
	maxPatternProgram = 10_000
)

// compiled caches patterns.
var compiled = cache.New[string, *regexp.Regexp](1 << 10)

// Pattern is an element of redact_patterns, compiled once.
func Pattern(text string) (*regexp.Regexp, error) {
	if p, ok := compiled.Get(text); ok {
		return p, nil
	}
	if len(text) > maxPatternLength {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxPatternLength)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxPatternProgram {
		return nil, fmt.Errorf("it is too large when its repetitions are written out")
	}
	p, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if p.MatchString("") {
		return nil, fmt.Errorf("it matches the empty text")
	}
	compiled.Put(text, p)
	return p, nil
}

// patterns reads a set of regular expressions.
func (r *reader) patterns(name string) []string {
	all := r.strings(name, setsOnly)
	if len(all) > maxPatterns {
		r.fault(name, BadDecisionType, "holds %d patterns, it can hold %d", len(all), maxPatterns)
		return nil
	}
	for _, p := range all {
		if _, err := Pattern(p); err != nil {
			shown := p
			if len(shown) > 100 {
				shown = shown[:100] + "..."
			}
			r.fault(name, BadDecisionType, "holds %q, which is not a usable regular expression (RE2): %v", shown, err)
		}
	}
	return all
}
