package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

// judge makes the result decision and redacts the result accordingly. If a redaction can't be applied, the
// result is withheld. The errors say that the tool has run.
func (p *Path) judge(ctx context.Context, call *registry.Call, req Request, entry *registry.Entry, args contract.Args, result *registry.Result) (*registry.Result, *registry.Error) {
	in := decision.ResultInput{
		Tool:      PolicyTool(entry),
		Principal: req.Principal,
		Arguments: args.JSON(),
		Time:      call.Start.UTC(),
	}
	ctx, span := tracing.Start(ctx, "decide result", tracing.Internal)
	defer span.End()
	hide := Secrets(entry, args)
	answer := p.Each(decision.Result, call.ID+"-result", func(b decision.Branch, id string) decision.Decision {
		in.Branch, in.Result = b, decision.ToolResult{}
		asked, seen := time.Now(), false
		answer := p.Judge(ctx, in, func() decision.ToolResult {
			in.Result, seen = policyResult(result), true
			return in.Result
		})
		took := time.Since(asked)
		if Withdrawn(ctx, answer) {
			return answer
		}
		for i, reason := range answer.Reasons {
			answer.Reasons[i] = hide.Replace(reason)
		}
		p.decided(entry, call, decision.Event{ID: id, Point: decision.Result, Input: in, Unseen: !seen, Decision: answer, Time: asked, Took: took})
		return answer
	})
	span.Set("catalogd.decision", string(answer.Code))
	if Withdrawn(ctx, answer) {
		return nil, Undecided(ctx, "its result was decided on", "The tool has run")
	}
	withheld := func(reasons ...string) *registry.Error {
		call.Decision, call.Reasons = string(decision.Result)+": "+string(answer.Code), reasons
		return &registry.Error{
			Code: registry.ResultDenied,
			Msg:  fmt.Sprintf("the policy withholds the result of %q: %s. The tool has run", call.Tool, strings.Join(reasons, "; ")),
		}
	}
	if answer.Code == decision.PolicyTimeout {
		call.Decision, call.Reasons = string(decision.Result)+": "+string(answer.Code), answer.Reasons
		return nil, &registry.Error{Code: registry.Timeout, Decision: string(answer.Code), Msg: undecided(call.Tool, "the result", answer) + ". The tool has run, and its result is withheld"}
	}
	if !answer.Allow {
		reasons := answer.Reasons
		if answer.Code != decision.Denied {
			reasons = append([]string{string(answer.Code)}, reasons...)
		}
		refused := withheld(reasons...)
		refused.Decision = string(answer.Code)
		return nil, refused
	}
	if len(answer.Redact)+len(answer.RedactPatterns) > 0 {
		patterns := make([]*regexp.Regexp, len(answer.RedactPatterns))
		for i, text := range answer.RedactPatterns {
			var err error
			if patterns[i], err = decision.Pattern(text); err != nil {
				return nil, withheld(fmt.Sprintf("its pattern %q is not a usable regular expression", text))
			}
		}
		out := strings.Join(slices.Concat(answer.Redact, answer.RedactPatterns), ", ")
		redacted, ok := redact(result, answer.Redact, patterns)
		if !ok {
			return nil, withheld("it redacts " + strings.Join(answer.Redact, ", ") + ", and the result has no structure from which to remove that")
		}
		if declared := entry.Result(); redacted != result && declared != nil && entry.Declared().Output() != nil && !result.IsError {
			_, violations, err := declared.Check(ctx, redacted.Structured)
			if err != nil || violations != nil {
				return nil, withheld("without " + out + " it does not match the tool's declared result; declare these as optional")
			}
		}
		result = redacted
	}
	if n := size(result); answer.MaxBytes > 0 && n > answer.MaxBytes {
		return nil, &registry.Error{
			Code: registry.OutputTooLarge,
			Msg:  fmt.Sprintf("the result of %q has %d bytes, and the policy allows %d; ask for less. The tool has run", call.Tool, n, answer.MaxBytes),
		}
	}
	return result, nil
}

// policyResult returns the form of a result that policies see.
func policyResult(result *registry.Result) decision.ToolResult {
	seen := decision.ToolResult{IsError: result.IsError, Bytes: size(result), Structured: result.Structured, Text: []string{}, Types: []string{}}
	for _, raw := range result.Content {
		var block struct{ Type, Text string }
		if err := json.Unmarshal(raw, &block); err != nil {
			continue // bindings make no such block, and clients can't read it
		}
		seen.Types = append(seen.Types, block.Type)
		if block.Type == "text" {
			seen.Text = append(seen.Text, block.Text)
		}
	}
	slices.Sort(seen.Types)
	seen.Types = slices.Compact(seen.Types)
	return seen
}

// textOf returns the text of a text block.
func textOf(raw json.RawMessage) (string, bool) {
	var block struct{ Type, Text string }
	return block.Text, json.Unmarshal(raw, &block) == nil && block.Type == "text"
}

func size(result *registry.Result) int {
	n := len(result.Structured) + len(result.Meta)
	for _, block := range result.Content {
		n += len(block)
	}
	for name, raw := range result.Fields {
		n += len(name) + len(raw)
	}
	return n
}
