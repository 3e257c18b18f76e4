package registry

import (
	"errors"
	"strings"
)

// MetaErrorKind is the key in a result's _meta that has the kind of a Go function's error.
const MetaErrorKind = "catalogd/errorKind"

// maxErrorText is the maximum size of an error's text for a model in bytes.
const maxErrorText = 4 << 10

// marked is an error of a Go function with what it says of itself. Marks of wrapped errors add up; the outermost
// of each wins.
type marked struct {
	error
	kind     string
	internal bool
	outcome  Outcome
}

func (m *marked) Unwrap() error { return m.error }

// Fail gives the error of a Go function a kind: a word that a model or a program can act on, such as not_found. An
// error without one has the kind error. The text of the error reaches the model; don't put into it what the
// caller may not see (Internal).
func Fail(kind string, err error) error { return &marked{error: err, kind: kind} }

// InternalError marks the error of a Go function as one whose text only the operator's log gets.
func InternalError(err error) error { return &marked{error: err, internal: true} }

// NotDone marks the error of a write function that has done nothing: neither it nor what it calls was changed. Its
// outcome is unsent, so that it may be retried.
func NotDone(err error) error { return &marked{error: err, outcome: OutcomeUnsent} }

// MaybeDone marks the error of a write function that doesn't know whether it had its effect. Its outcome is
// unclear, so that only a person, or the declaration idempotent: true, has it repeated. Errors of the network
// (net.Error), of the end of a stream (io.EOF) and of a context count as that unless they are marked NotDone; any
// other error is the function's own word that it failed.
func MaybeDone(err error) error { return &marked{error: err, outcome: OutcomeUnclear} }

// marksOf collects the marks of an error and of what it wraps.
func marksOf(err error) (all marked) {
	var visit func(error)
	visit = func(err error) {
		switch e := err.(type) {
		case *marked:
			if all.kind == "" {
				all.kind = e.kind
			}
			if all.outcome == "" {
				all.outcome = e.outcome
			}
			all.internal = all.internal || e.internal
		case *Error: // of another tool that the function has called
			if all.kind == "" {
				all.kind = string(e.Code)
			}
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if next := e.Unwrap(); next != nil {
				visit(next)
			}
		case interface{ Unwrap() []error }:
			for _, next := range e.Unwrap() {
				visit(next)
			}
		}
	}
	visit(err)
	if all.kind == "" {
		all.kind = "error"
	}
	return all
}

// text returns what the model reads of an error: its kind, if it has one of its own, and its message.
func (m marked) text(err error) string {
	text := err.Error()
	var other *Error
	if errors.As(err, &other) { // without the detail for the operator
		text = other.Msg
	}
	if m.kind != "error" {
		text = m.kind + ": " + text
	}
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return text
}
