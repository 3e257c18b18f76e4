// Package progress carries how far long work has come from the code that does it to those who show it.
//
// A context has a Meter (With). Work begins a Step, adds the number of its parts as it learns them, and
// counts the parts that are done: one atomic addition each. Who shows it reads the Meter whenever it likes.
// Everything is safe for concurrent use.
package progress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Meter has the current step of some work, and of the parts of it that have meters of their own.
type Meter struct {
	above   *Meter
	current atomic.Pointer[Step]
}

type meterKey struct{}

// With returns a context with a new meter. Its steps are those of the meter of ctx, too.
func With(ctx context.Context) (context.Context, *Meter) {
	m := &Meter{above: meterOf(ctx)}
	return context.WithValue(ctx, meterKey{}, m), m
}

func meterOf(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// Step returns the current step; nil before the first.
func (m *Meter) Step() *Step { return m.current.Load() }

// Reset forgets the current step.
func (m *Meter) Reset() { m.current.Store(nil) }

// Step is one step of the work.
type Step struct {
	// What says what is being done, such as "checking the tools".
	What  string
	Since time.Time

	unit     string
	done, of atomic.Int64
	mu       sync.Mutex
	waiting  []string
}

// Begin makes a new step the current one. Its parts are counted in units, such as "tools"; without a unit
// they are not. Without a meter in the context nobody sees it.
func Begin(ctx context.Context, what, unit string) *Step {
	s := &Step{What: what, Since: time.Now(), unit: unit}
	for m := meterOf(ctx); m != nil; m = m.above {
		m.current.Store(s)
	}
	return s
}

// Current returns the current step of the context; a step that nobody sees if there is none.
func Current(ctx context.Context) *Step {
	if m := meterOf(ctx); m != nil {
		if s := m.Step(); s != nil {
			return s
		}
	}
	return new(Step)
}

// Of adds n parts that are to be done.
func (s *Step) Of(n int) { s.of.Add(int64(n)) }

// Done adds one part that is done.
func (s *Step) Done() { s.done.Add(1) }

// Set replaces both numbers, where somebody else counts.
func (s *Step) Set(done, of int64) {
	s.of.Store(of)
	s.done.Store(done)
}

// Wait adds one part that is done when the returned function is called; until then its name is shown.
func (s *Step) Wait(name string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.Add(1)
	s.waiting = append(s.waiting, name)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.waiting, name)
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.done.Add(1)
	})
}

// Counts returns how many of how many parts are done; 0 of 0 if they are not counted.
func (s *Step) Counts() (done, of int64) {
	done, of = s.done.Load(), s.of.Load()
	return min(done, of), of
}

// maxNames is how many names a text has of those that are waited for.
const maxNames = 3

// String returns the step in one line, such as "checking the tools: 120 of 5000 tools".
func (s *Step) String() string {
	text := s.What
	if done, of := s.Counts(); of > 0 && s.unit != "" {
		text += fmt.Sprintf(": %d of %d %s", done, of, s.unit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return text
	}
	text += ", waiting for " + strings.Join(s.waiting[:min(maxNames, len(s.waiting))], ", ")
	if more := len(s.waiting) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
