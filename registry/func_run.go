package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/gotype"
)

// Run is what a Go function may know of the call that it is run for.
type Run struct {
	// Call is the id of the call, or of the intent of a write tool; it joins logs.
	Call string
	// Branch is the branch of the call, and Principal the name of the caller.
	Branch, Principal string
	// IdempotencyKey names the effect of a write tool: it is the same for each attempt of one intent, and never
	// empty. Pass it on to whatever has the effect, so that a repetition is known there. It is empty for a read
	// tool. Attempt counts the attempts from 1.
	IdempotencyKey string
	Attempt        int
}

type runKey struct{}

// RunOf returns the Run of the context that a Go function was called with; the zero Run for any other context.
func RunOf(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	return r
}

// unreadable is the error of a value that the type of the input refuses, such as in an UnmarshalText.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// funcInvoker runs a Function.
type funcInvoker struct{ f *Function }

// maxFuncOutput is the maximum size of a function's output in bytes, as of the other bindings.
const maxFuncOutput = 1 << 20

type funcOutcome struct {
	out any
	err error
}

// Invoke runs the function on a goroutine of its own, so that the end of ctx ends the call even if the function
// ignores it.
func (i funcInvoker) Invoke(ctx context.Context, in Invocation) (*Result, error) {
	if i.f.standIn {
		return nil, &Error{Code: BindingFailed, Unsent: true, Err: ErrStandIn, Msg: fmt.Sprintf(
			"the tool is the Go function %q of the program that embeds the catalog, which is not this one; nothing was run", i.f.name)}
	}
	of, attempted := in.Attempt.Of()
	if i.f.effect == Write && !attempted {
		return nil, &Error{
			Code: EffectorRequired, Unsent: true,
			Msg: fmt.Sprintf("function %q has a side effect; only the effector may run it. Nothing was run", i.f.name),
		}
	}
	if ctx.Err() != nil {
		return nil, funcEnded(ctx, true)
	}
	run := Run{
		Call: in.To.Call, Branch: in.To.Branch, Principal: in.To.Principal, IdempotencyKey: of.Key, Attempt: of.Number,
	}
	done := make(chan funcOutcome, 1)
	end := i.f.begin()
	go func() {
		defer end()
		// Where the function returns, the channel is full already.
		defer func() {
			why := errors.New("the function ended its goroutine (runtime.Goexit) and returned nothing")
			if p := recover(); p != nil {
				why = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			select {
			case done <- funcOutcome{err: &panicked{why}}:
			default:
			}
		}()
		out, err := i.f.run(context.WithValue(ctx, runKey{}, run), in.Args.JSON())
		done <- funcOutcome{out, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return failed(ctx, o.err, attempted)
		}
		return output(o.out, attempted)
	case <-ctx.Done():
		select {
		case o := <-done: // it has answered, too
			if o.err == nil {
				return output(o.out, attempted)
			}
			return failed(ctx, o.err, attempted)
		default:
		}
		return nil, ctx.Err()
	}
}

// Plan returns the function and its arguments.
func (i funcInvoker) Plan(args contract.Args) (Plan, error) {
	return Plan{Kind: "func", Tool: i.f.name, Args: args.JSON()}, nil
}

// panicked is a panic of a function, or another end of its goroutine.
type panicked struct{ error }

// funcEnded is the error of a call whose context has ended: of one that did nothing, or else the context's own,
// which leaves the outcome unknown.
func funcEnded(ctx context.Context, nothing bool) error {
	switch {
	case !nothing:
		return ctx.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Error{
			Code: Timeout, Unsent: true, Err: ctx.Err(),
			Msg: "the time of the call was up before the function did anything; nothing was run",
		}
	}
	return &Error{
		Code: Cancelled, Unsent: true, Err: ctx.Err(),
		Msg: "the call was cancelled before the function did anything; nothing was run",
	}
}

// failed is what the error of a function becomes: a result that the model can read, or an error that the
// operator's log has.
func failed(ctx context.Context, err error, attempted bool) (*Result, error) {
	var refused *unreadable
	var broke *panicked
	switch {
	case errors.As(err, &refused):
		v := contract.Violation{Got: "a value that the tool does not take", Expected: "another one: " + refused.Error()}
		var at *gotype.Mismatch
		if errors.As(err, &at) {
			v.Pointer, v.Expected = at.Pointer, "another one: "+at.Err.Error()
		}
		return nil, &Error{Code: InvalidArguments, Msg: v.String(), Violations: []contract.Violation{v}, Unsent: true}
	case errors.As(err, &broke):
		return nil, &Error{Code: Internal, Msg: "internal error; the operator's log says more", Err: err}
	}
	m := marksOf(err)
	outcome := m.outcome
	if outcome == "" && lost(err) {
		outcome = OutcomeUnclear
	}
	if ctx.Err() != nil {
		return nil, funcEnded(ctx, outcome == OutcomeUnsent)
	}
	text := m.text(err)
	switch {
	case m.internal:
		e := &Error{
			Code: BindingFailed, Msg: "the tool failed; the operator's log says why", Err: err,
			Unsent: outcome == OutcomeUnsent,
		}
		if outcome == "" {
			e.Answered = OutcomeFailed
		}
		return nil, e
	case attempted && outcome == OutcomeUnsent:
		return nil, &Error{Code: BindingFailed, Msg: text + ". Nothing was run", Unsent: true}
	}
	meta, err := json.Marshal(map[string]string{MetaErrorKind: m.kind})
	if err != nil {
		return nil, err
	}
	return &Result{
		Content: []json.RawMessage{Text(text)}, IsError: true, Meta: meta, Unclear: outcome == OutcomeUnclear,
	}, nil
}

// lost reports whether an error leaves open what happened: one of the network, an end of input, or a deadline or
// cancellation of the function's own.
func lost(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// output makes a result of what a function returned.
func output(out any, attempted bool) (*Result, error) {
	switch out := out.(type) {
	case *Result:
		if out == nil {
			return nil, noOutput("the function returned a nil result", nil, attempted)
		}
		return built(*out, attempted)
	case Result:
		return built(out, attempted)
	case string:
		if len(out) > maxFuncOutput {
			return nil, tooLarge(attempted)
		}
		return &Result{Content: []json.RawMessage{Text(out)}}, nil
	}
	raw, err := gotype.Encode(out)
	switch {
	case err != nil:
		return nil, noOutput("the function's output has no JSON", err, attempted)
	case len(raw) > maxFuncOutput:
		return nil, tooLarge(attempted)
	}
	r := &Result{Content: []json.RawMessage{Text(string(raw))}}
	if raw[0] == '{' {
		r.Structured = raw
	}
	return r, nil
}

// built returns a Result that a function has made itself, with its JSON on one line. What is no JSON would break the
// message that it becomes part of.
func built(r Result, attempted bool) (*Result, error) {
	var size int
	var err error
	line := func(what string, raw json.RawMessage, object bool) json.RawMessage {
		var b bytes.Buffer
		switch why := json.Compact(&b, raw); {
		case err != nil:
		case why != nil || !utf8.Valid(raw):
			err = noOutput(what+" of the function's result is no JSON", why, attempted)
		case object && b.Bytes()[0] != '{':
			err = noOutput(what+" of the function's result is no JSON object", nil, attempted)
		}
		size += b.Len()
		return b.Bytes()
	}
	r.Content = slices.Clone(r.Content)
	for i, block := range r.Content {
		r.Content[i] = line(fmt.Sprintf("content block %d", i), block, true)
	}
	if r.Structured != nil {
		r.Structured = line("the structured content", r.Structured, false)
	}
	if r.Meta != nil {
		r.Meta = line("the _meta", r.Meta, true)
	}
	switch {
	case err != nil:
		return nil, err
	case size > maxFuncOutput:
		return nil, tooLarge(attempted)
	}
	return &r, nil
}

// noOutput is the error of a function that has run and whose output can't be returned.
func noOutput(msg string, err error, attempted bool) *Error {
	e := &Error{Code: ResultInvalid, Msg: msg + "; the operator's log says more. The tool has run", Err: err}
	if attempted {
		e.Answered = OutcomeSucceeded
	}
	return e
}

func tooLarge(attempted bool) *Error {
	e := &Error{
		Code: OutputTooLarge, Msg: fmt.Sprintf("the function's output is larger than %d bytes; ask for less", maxFuncOutput),
	}
	if attempted {
		e.Answered, e.Msg = OutcomeSucceeded, strings.TrimSuffix(e.Msg, "; ask for less")+". The tool has run"
	}
	return e
}
