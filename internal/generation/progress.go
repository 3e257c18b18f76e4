package generation

import (
	"context"
)

type progressKey struct{}

// WithProgress returns a context under which a build reports each step to step.
func WithProgress(ctx context.Context, step func(what string)) context.Context {
	return context.WithValue(ctx, progressKey{}, step)
}

// Progress reports the step of a build, if its context is from WithProgress.
func Progress(ctx context.Context, what string) {
	if step, ok := ctx.Value(progressKey{}).(func(string)); ok {
		step(what)
	}
}
