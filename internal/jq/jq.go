// Package jq runs jq programs over JSON values: the jq binding, and a tool's pre and post. A program can read
// its input, the clock and the time zone, and nothing else: no environment, files, modules or second input.
// Integers keep every digit.
//
// A program can take any amount of processor time, memory and stack, the last two even in one step, which
// nothing in the same process can stop. So a daemon compiles programs only to validate them (Check), and
// runs them through a Runner in child processes (internal/worker). InProcess is a Runner without a limit of
// memory.
package jq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// ErrNoOutput reports that a program ended without an output.
var ErrNoOutput = errors.New("the jq program gave no output")

// SyntaxError is a parse error with its position. Line and Col count from 1, within the program, in
// characters.
type SyntaxError struct {
	Line, Col int
	Err       error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d of the jq program: %v", e.Line, e.Col, e.Err)
}

// Unwrap returns the parser's error.
func (e *SyntaxError) Unwrap() error { return e.Err }

// maxSource caps a program, in bytes. gojq compiles nested expressions by recursion, about 2 KiB of stack a
// level, and a stack beyond Go's limit ends the process; recover can't catch that.
const maxSource = 64 << 10

// Check reports why a program can't be run: it is longer than 64 KiB or does not compile. A parse error is a
// *SyntaxError.
func Check(source string) error {
	_, err := compile(source)
	return err
}

// compile parses and compiles a program. The result is immutable and safe for concurrent use.
func compile(source string) (*gojq.Code, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the jq program has %d bytes, more than the %d that are compiled; make it shorter, or let a command do its work", len(source), maxSource)
	}
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("the jq program is empty; write . for its input as it is")
	}
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, locate(source, err)
	}
	if len(query.Imports) > 0 {
		return nil, errors.New("the jq program imports a module; there are none here, so write the functions into the program")
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("the jq program does not compile: %w%s", err, nearest(err))
	}
	return code, nil
}

func locate(source string, err error) error {
	var parse *gojq.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("the jq program does not parse: %w", err)
	}
	// Offset is the position after the unexpected token.
	before := source[:min(max(parse.Offset-len(parse.Token), 0), len(source))]
	line := 1 + strings.Count(before, "\n")
	col := 1 + utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:])
	return &SyntaxError{Line: line, Col: col, Err: err}
}

// run returns the first output of a program for decoded JSON (nil, bool, string, json.Number, []any and
// map[string]any), as a value that gojq.Marshal takes. in is not changed, and the output may share parts of
// it.
func run(ctx context.Context, code *gojq.Code, in any) (any, error) {
	out, ok := code.RunWithContext(ctx, in).Next()
	if !ok {
		return nil, ErrNoOutput
	}
	err, failed := out.(error)
	if !failed {
		if deeper(out, maxDepth) {
			return nil, fmt.Errorf("the output of the jq program nests deeper than %d levels", maxDepth)
		}
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var halt *gojq.HaltError
	if errors.As(err, &halt) && halt.Value() == nil {
		return nil, ErrNoOutput
	}
	return nil, withoutExcerpt(err)
}

// withoutExcerpt cuts off an error of the interpreter where it begins to quote a value of which it shows a part. Maskers
// find a secret in a message only as a whole.
func withoutExcerpt(err error) error {
	var own gojq.ValueError // of error and halt_error, which quote in full
	text := err.Error()
	at := strings.IndexAny(text, `"{[(`)
	if errors.As(err, &own) || at < 0 || !strings.Contains(text, " ...") {
		return err
	}
	return errors.New(strings.TrimSpace(text[:at]) + " (long values are not quoted)")
}

// maxDepth caps the nesting of an output: encoders recurse into it, and a stack overflow ends the process.
// Inside a program there is no such cap: tojson of a value nested by millions of steps overflows.
const maxDepth = 1000

// deeper reports whether v nests deeper than that many levels.
func deeper(v any, than int) bool {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if than == 0 || deeper(e, than-1) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if than == 0 || deeper(e, than-1) {
				return true
			}
		}
	}
	return false
}
