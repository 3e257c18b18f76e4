package fair

import "context"

// contextKey is the key of a Key in a context.
type contextKey struct{}

// With returns a context that says for whom its work is done. It chooses no outcome, only whose turn comes first.
func With(ctx context.Context, k Key) context.Context { return context.WithValue(ctx, contextKey{}, k) }

// From returns for whom the work of a context is done, without the tool; the zero Key where nothing says so.
func From(ctx context.Context) Key {
	k, _ := ctx.Value(contextKey{}).(Key)
	k.Tool = ""
	return k
}
