package progress_test

import (
	"context"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/internal/progress"
)

func TestStepText(t *testing.T) {
	ctx, above := progress.With(t.Context())
	inner, below := progress.With(ctx)
	if above.Step() != nil || progress.Current(ctx) == nil {
		t.Error("a meter has a step before the first, or a context none to count in")
	}
	for _, tt := range []struct {
		want string
		do   func(ctx context.Context) *progress.Step
	}{
		{"reading", func(ctx context.Context) *progress.Step { return progress.Begin(ctx, "reading", "files") }},
		{"reading: 2 of 3 files", func(ctx context.Context) *progress.Step {
			s := progress.Begin(ctx, "reading", "files")
			s.Of(3)
			s.Done()
			s.Done()
			return s
		}},
		{"reading: 3 of 3 files", func(ctx context.Context) *progress.Step { // never more than there are
			s := progress.Begin(ctx, "reading", "files")
			s.Set(5, 3)
			return s
		}},
		{"reading", func(ctx context.Context) *progress.Step {
			s := progress.Begin(ctx, "reading", "")
			s.Of(3)
			return s
		}},
		{"asking: 1 of 5 servers, waiting for b, c, d and 1 more", func(ctx context.Context) *progress.Step {
			s := progress.Begin(ctx, "asking", "servers")
			answered := s.Wait("a")
			for _, name := range []string{"b", "c", "d", "e"} {
				s.Wait(name)
			}
			answered()
			answered()
			return s
		}},
	} {
		made := tt.do(inner)
		for _, m := range []*progress.Meter{above, below} {
			if m.Step() != made || made.String() != tt.want {
				t.Errorf("got %q, want %q", m.Step(), tt.want)
			}
		}
	}
	above.Reset()
	if above.Step() != nil || below.Step() == nil {
		t.Error("Reset is of one meter")
	}
	progress.Begin(t.Context(), "unseen", "").Done()
}

func TestStepCountsConcurrently(t *testing.T) {
	ctx, m := progress.With(t.Context())
	s := progress.Begin(ctx, "counting", "parts")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				s.Of(1)
				_ = m.Step().String()
				s.Done()
			}
		})
	}
	all.Wait()
	if done, of := s.Counts(); done != 800 || of != 800 {
		t.Errorf("got %d of %d, want 800 of 800", done, of)
	}
}
