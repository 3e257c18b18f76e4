// Package jq runs jq programs over JSON values: the jq binding, and a tool's pre and post. A program can read
// its input and nothing else: no environment, files, modules or second input. Integers keep every digit.
package jq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// ErrNoOutput reports that a program ended without an output.
var ErrNoOutput = errors.New("the jq program gave no output")

// Program is a compiled program. It is immutable and safe for concurrent use.
type Program struct {
	source string
	code   *gojq.Code
	growth uint64 // how much the heap may grow while it runs, in bytes
}

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

// Compile parses and compiles a program of at most 64 KiB. A parse error is a *SyntaxError.
func Compile(source string) (*Program, error) {
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
		return nil, fmt.Errorf("the jq program does not compile: %w", err)
	}
	return &Program{source: source, code: code, growth: maxGrowth}, nil
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

// Source returns the program's text.
func (p *Program) Source() string { return p.source }

// Run returns the program's first output for in, and ends soon after ctx does. Both are decoded JSON: nil,
// bool, string, []any, map[string]any, and as numbers json.Number, or int, float64 (always finite) and
// *big.Int, all of which encoding/json writes with their digits. in is not changed, and the output may share
// parts of it. ErrNoOutput is returned where the program ends without an output, a MemoryError where it needs
// too much memory; an output that nests deeper than 1,000 levels is an error.
func (p *Program) Run(ctx context.Context, in any) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer watchMemory(cancel, p.growth)()
	out, ok := p.code.RunWithContext(ctx, in).Next()
	if !ok {
		return nil, ErrNoOutput
	}
	err, failed := out.(error)
	if !failed {
		if deeper(out, maxDepth) {
			return nil, fmt.Errorf("the output of the jq program nests deeper than %d levels", maxDepth)
		}
		return finite(out), nil
	}
	if ctx.Err() != nil {
		if grown := (MemoryError{}); errors.As(context.Cause(ctx), &grown) {
			return nil, grown
		}
		return nil, ctx.Err()
	}
	var halt *gojq.HaltError
	if errors.As(err, &halt) && halt.Value() == nil {
		return nil, ErrNoOutput
	}
	return nil, err
}

// maxDepth caps the nesting of an output: encoders recurse into it, and a stack overflow ends the process.
// Inside a program there is no such cap: tojson of a value nested by millions of steps still overflows.
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

// finite replaces numbers that JSON can't represent, as jq does: NaN by null, an infinity by the largest
// number.
func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) {
			return nil
		}
		return min(max(v, -math.MaxFloat64), math.MaxFloat64)
	case []any:
		for i, e := range v {
			if !odd(e) {
				continue
			}
			out := make([]any, len(v))
			copy(out, v[:i])
			for j := i; j < len(v); j++ {
				out[j] = finite(v[j])
			}
			return out
		}
	case map[string]any:
		for _, e := range v {
			if !odd(e) {
				continue
			}
			out := make(map[string]any, len(v))
			for k, e := range v {
				out[k] = finite(e)
			}
			return out
		}
	}
	return v
}

// odd reports whether v contains a number that is not finite.
func odd(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.IsNaN(v) || math.IsInf(v, 0)
	case []any:
		for _, e := range v {
			if odd(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if odd(e) {
				return true
			}
		}
	}
	return false
}

// Marshal writes an output of Run as one line of compact JSON, keys sorted.
func Marshal(v any) ([]byte, error) { return gojq.Marshal(v) }
