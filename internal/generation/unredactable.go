package generation

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// unredactable warns of tools whose every result would be withheld, because the policy redacts it by a
// pointer for which that is impossible: the tool returns text, or its result contract requires the value. It
// also records failures of the result decision.
func (g *Generation) unredactable(ctx context.Context) (problems problem.List) {
	reported := map[string]bool{}
	for _, branch := range g.Branches() {
		view := g.paths[branch].View
		for _, e := range view.Entries() {
			if reported[e.Declared().Name] {
				continue
			}
			d, known := g.engine.ConstantResult(ctx, decision.ResultInput{
				Branch: invoke.PolicyBranch(view.Branch()), Tool: invoke.PolicyTool(e), Principal: decision.Local(),
			})
			g.failures.note(ctx, g.log, d, aboutTool(e.Declared().Name, branch))
			if !known || !d.Allow {
				continue
			}
			for _, pointer := range d.Redact {
				if why := withholds(ctx, e, pointer); why != "" {
					reported[e.Declared().Name] = true
					problems.Warnf(problem.ResultWithheld, e.Declared().Pos, "tools."+e.Declared().Name,
						"the policy takes %s out of every result of %q in branch %q: %s", pointer, e.Declared().Name, branch, why)
					break
				}
			}
		}
	}
	return problems
}

// withholds returns the reason why every successful result of the tool is withheld if the pointer is
// redacted; empty if one may be returned.
func withholds(ctx context.Context, e *registry.Entry, pointer string) string {
	declared, binding := e.Result(), e.Declared().Binding
	if declared == nil || e.Declared().ResultCheck == registry.IgnoreResult {
		text := binding.Exec != nil && binding.Exec.Stdout == "text" || binding.HTTP != nil && binding.HTTP.Output == "text"
		if text && e.Post() == nil {
			return "the tool answers text, and text that is not JSON is withheld"
		}
		return ""
	}
	if e.Declared().Output() == nil || pointer == "" || strings.Contains(pointer, "*") {
		return ""
	}
	// Neither the redaction text nor an absent value conforms to the declared result.
	steps := strings.Split(pointer[1:], "/")
	for i, s := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	without := map[string]any{}
	with := map[string]any{steps[len(steps)-1]: contract.Redacted}
	for i := len(steps) - 2; i >= 0; i-- {
		without, with = map[string]any{steps[i]: without}, map[string]any{steps[i]: with}
	}
	for _, left := range []any{without, with} {
		raw, err := json.Marshal(left)
		if err != nil {
			return ""
		}
		_, violations, err := declared.Check(ctx, raw)
		if err != nil || !refuses(violations, pointer) {
			return ""
		}
	}
	return "the tool declares that it is there, and " + contract.Redacted + " is not what it declares, so every result is withheld"
}

func refuses(violations []contract.Violation, pointer string) bool {
	for _, v := range violations {
		if v.Pointer == pointer {
			return true
		}
	}
	return false
}
