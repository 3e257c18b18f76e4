package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// Runner runs programs. It is safe for concurrent use.
type Runner interface {
	// Run returns the first output of a program of at most limit bytes: those of its JSON, or those of the
	// string that the output is. in and the output are one JSON value; the output is compact, with sorted
	// keys. The error is that of ctx once it has ended, and else ErrNoOutput, a TooLargeError, a
	// StoppedError, an UnavailableError where the fault is not the program's, or the program's own, of about
	// 4 KiB at most. A program that does not compile is an error of its own, too.
	Run(ctx context.Context, source string, in json.RawMessage, limit int) (json.RawMessage, error)
	// Warm prepares the first Run in the background.
	Warm()
}

// TooLargeError reports that an output had more bytes than Limit.
type TooLargeError struct{ Limit int }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the output of the jq program is larger than %d bytes", e.Limit)
}

// StoppedError reports that a program was stopped because it exceeded a limit, such as "256 MiB of memory".
type StoppedError struct{ Limit string }

func (e StoppedError) Error() string {
	return fmt.Sprintf("the jq program was stopped, because it needs more than %s", e.Limit)
}

// UnavailableError reports that nothing could run the program to its end.
type UnavailableError struct{ Err error }

func (e UnavailableError) Error() string { return fmt.Sprintf("the jq program was not run: %v", e.Err) }

// Unwrap returns the cause.
func (e UnavailableError) Unwrap() error { return e.Err }

// InProcess is a Runner in this process. It limits neither the memory of programs nor their time, beyond the
// context, and a program can end the process. It keeps compiled programs. Its zero value is ready for use.
type InProcess struct {
	mu       sync.Mutex
	programs map[string]*gojq.Code // by source
	size     int                   // of programs, as cost counts it
}

// maxKept caps the compiled programs that are kept, in bytes as cost counts them; a compiled program takes
// several times that.
const maxKept = 1 << 20

// cost is what a program counts towards maxKept.
func cost(source string) int { return len(source) + 1<<10 }

// Warm does nothing.
func (r *InProcess) Warm() {}

// Run implements Runner.
func (r *InProcess) Run(ctx context.Context, source string, in json.RawMessage, limit int) (
	json.RawMessage, error,
) {
	code, err := r.compiled(source)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("the input of the jq program is not JSON: %w", err)
	}
	out, err := run(ctx, code, value)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, ErrNoOutput):
		return nil, shortened(err)
	case err != nil:
		return nil, err
	}
	text, isString := out.(string)
	if isString && len(text) > limit {
		return nil, TooLargeError{limit}
	}
	encoded, err := gojq.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("the output of the jq program is not JSON: %w", err)
	}
	if !isString && len(encoded) > limit {
		return nil, TooLargeError{limit}
	}
	return encoded, nil
}

// compiled returns a compiled program, a kept one if possible.
func (r *InProcess) compiled(source string) (*gojq.Code, error) {
	r.mu.Lock()
	code := r.programs[source]
	r.mu.Unlock()
	if code != nil {
		return code, nil
	}
	code, err := compile(source)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.programs[source] != nil {
		return code, nil
	}
	for other := range r.programs { // any, as none is dear to compile again
		if r.size+cost(source) <= maxKept {
			break
		}
		delete(r.programs, other)
		r.size -= cost(other)
	}
	if r.programs == nil {
		r.programs = map[string]*gojq.Code{}
	}
	r.programs[source] = code
	r.size += cost(source)
	return code, nil
}

// shortened cuts what an error says to 4 KiB, with a note, because a program chooses its length.
func shortened(err error) error {
	const most = 4 << 10
	text := err.Error()
	if len(text) <= most {
		return err
	}
	return fmt.Errorf("%s\n[cut: %d bytes in all]", strings.ToValidUTF8(text[:most], ""), len(text))
}
