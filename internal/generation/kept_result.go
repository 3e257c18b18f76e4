package generation

import (
	"context"
	"fmt"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// KeptResult returns the result in an intent's record, as the result decision lets a principal see it now;
// nil if the record has none. withheld is the reason why an existing result is not shown.
func (g *Generation) KeptResult(
	ctx context.Context,
	who decision.Principal,
	in intent.Intent,
) (result *registry.Result, withheld string) {
	path, ok := g.PathFor(in.Address(), who)
	if !ok {
		return nil, fmt.Sprintf("branch %q is not served any more", in.Address())
	}
	result, err := path.Kept(ctx, who, in)
	if err != nil {
		if err.Err != nil {
			path.Log.Error("the result of an intent is withheld", "intent", in.ID, "tool", in.Tool, "error", err.Err)
		}
		return nil, err.Msg
	}
	return result, ""
}
