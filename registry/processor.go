package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// Process is a Go function over the arguments or the result of a tool's calls, both as JSON. It is called
// concurrently. Its errors may be marked as those of a Function (Fail, InternalError).
type Process func(ctx context.Context, tool string, in json.RawMessage) (json.RawMessage, error)

// Processor is what a program does before and after the calls of tools, whatever their binding:
//
//	arguments -> contract -> the jq program pre, contract -> Before of each Processor, contract -> call decision
//	  -> the tool -> After of each Processor, the last one first -> the jq program post -> result contract -> result decision
//
// So what Before returns is checked, decided on and recorded as if the caller had sent it. The input of After is the
// structured content of a result, or its text as a JSON string; an error of the tool passes it by. An error of Before or
// After ends the call with the code processor_failed.
type Processor struct {
	// Tools are patterns of names (MatchName); empty means every tool.
	Tools []string
	// Before and After may be nil.
	Before, After Process
}

var (
	errTooMuch = errors.New("its output is too large")
	errNoJSON  = errors.New("its output is not JSON")
)

// BindProcessors returns what the processors do for a tool, in the order in which they run.
func BindProcessors(processors []Processor, tool string) (before, after []Transform) {
	for _, p := range processors {
		if len(p.Tools) > 0 && !slices.ContainsFunc(p.Tools, func(pattern string) bool { return MatchName(pattern, tool) }) {
			continue
		}
		if p.Before != nil {
			before = append(before, p.Before.transform(tool, true))
		}
		if p.After != nil {
			after = slices.Insert(after, 0, p.After.transform(tool, false))
		}
	}
	return before, after
}

// transform returns the function for one tool. Its error is an *Error of code ProcessorFailed.
func (p Process) transform(tool string, before bool) Transform {
	return func(ctx context.Context, in json.RawMessage, limit int) (json.RawMessage, error) {
		out, err := p(ctx, tool, slices.Clone(in))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, processorFailed(err, before)
		case len(out) > limit:
			return nil, processorFailed(Fail("output_too_large", errTooMuch), before)
		case !json.Valid(out):
			return nil, processorFailed(InternalError(errNoJSON), before)
		}
		return slices.Clone(out), nil
	}
}

// processorFailed is the error of a call whose processor failed. What After says of a result is for the log, because the
// result decision has not allowed the caller to see it.
func processorFailed(err error, before bool) *Error {
	m := marksOf(err)
	e := &Error{Code: ProcessorFailed, Unsent: before}
	switch {
	case !before:
		e.Msg, e.Err = "a processor of the program failed on the tool's result; the operator's log says why. The tool has run", err
	case m.internal:
		e.Msg, e.Err = "a processor of the program failed on the arguments; the operator's log says why. Nothing was run", err
	default:
		e.Msg = "a processor of the program refused the arguments: " + m.text(err) + ". Nothing was run"
	}
	return e
}
