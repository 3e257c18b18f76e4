package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
)

// getPrompt answers prompts/get.
func (p *passthroughRequest) getPrompt(ctx context.Context, shown *passthrough.Shown) reply {
	item, ok := shown.Prompt(*p.m.name)
	if !ok {
		return p.unknown("prompt", *p.m.name)
	}
	r := upstream.Request{Method: mcp.MethodPromptsGet, Name: item.Remote, Arguments: p.m.arguments}
	return p.turn(ctx, item, *p.m.name, "", "get", r, "messages", false)
}

// unknown returns the answer for a prompt or template that the branch isn't shown.
func (p *passthroughRequest) unknown(what, name string) reply {
	p.recordRefused(decision.UnknownItem, p.m)
	return p.refuse(refuse(mcp.INVALID_PARAMS, "%s", generation.UnknownItem(what, name)))
}

// noCompletion is the answer if the server doesn't support completion.
const noCompletion = `{"completion":{"values":[]}}`

// complete answers completion/complete, for an argument of a prompt or a variable of a template.
func (p *passthroughRequest) complete(ctx context.Context, shown *passthrough.Shown) reply {
	r := upstream.Request{Method: mcp.MethodCompletionComplete, Ref: &upstream.Ref{Type: p.m.ref.Type}, Argument: p.m.argument, Context: p.m.context}
	var item *passthrough.Item
	if p.m.ref.Type == "ref/prompt" {
		prompt, ok := shown.Prompt(p.m.ref.Name)
		if !ok {
			return p.unknown("prompt", p.m.ref.Name)
		}
		item, r.Ref.Name = prompt, prompt.Remote
	} else {
		template, ok := shown.Template(p.m.ref.URI)
		if !ok {
			return p.unknown("template", p.m.ref.URI)
		}
		item, r.Ref.URI = template, template.URI
	}
	if !shown.Offer(item.Server).Complete {
		return p.result([]byte(noCompletion), "completion", false)
	}
	got, refusal := p.ask(ctx, item, "", "complete", r)
	if refusal != nil {
		return p.refuse(refusal)
	}
	return p.result(got.answer, "completion", false)
}
