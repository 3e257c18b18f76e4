package generation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// Brief is an explanation in five lines.
type Brief struct {
	// Answer is the outcome for the branch, the tool and the principal, and what it means.
	Answer string `json:"answer"`
	// Why names the decision and its reasons, with the positions of the rules or declarations behind it.
	Why string `json:"why"`
	// Tool is where the tool is declared, its effect and its binding.
	Tool string `json:"tool"`
	// Change is what would make the tool listed and callable or, where it is, what would take it away.
	Change string `json:"change"`
	// Next is a command line that shows more or is the next step. It has no options that say who is asked about
	// and where. Arguments are those for its --args: an example's, or the given ones if they are valid and none of
	// them is a secret; left out if there are none.
	Next      string          `json:"next"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// String returns the five lines.
func (b Brief) String() string {
	return fmt.Sprintf("%s\nwhy: %s\ntool: %s\nchange: %s\nnext: %s", b.Answer, b.Why, b.Tool, b.Change, b.Next)
}

// repeatable returns valid arguments in one line; nil if one of them is a secret.
func (x *explaining) repeatable(ctx context.Context, raw json.RawMessage) json.RawMessage {
	args, found, err := x.entry.Contract().Check(ctx, raw)
	if err != nil || len(found) > 0 || !bytes.Equal(args.JSON(), x.entry.Contract().Redact(args).JSON()) {
		return nil
	}
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return nil
	}
	return problem.PrintableJSON(line.Bytes())
}

// meaning says what an outcome means for the principal.
var meaning = map[string]string{
	"callable":                    "listed, and a call runs",
	"listed":                      "a call runs if its arguments are valid, and the call decision, which is asked with them, allows it",
	"hidden":                      "not listed, and a call is answered like one of an unknown tool",
	string(registry.Denied):       "listed, but this call is denied",
	string(Approval):              "listed, and a call waits for an approval",
	string(Refused):               "listed, but a call is refused before it is executed",
	string(registry.ResultDenied): "listed, but this result is withheld",
}

// Brief returns the explanation in five lines. It does not depend on the state of the generation.
func (x *Explanation) Brief() Brief {
	b := Brief{Why: x.because(), Tool: x.declaredAs(), Arguments: x.given}
	b.Next = fmt.Sprintf("catalogd explain %s %s -v", x.Branch, x.Tool)
	b.Answer = fmt.Sprintf("%s through branch %s", x.Tool, x.Branch)
	if x.Principal.Name != decision.Local().Name {
		b.Answer += " for " + x.Principal.Name
		if len(x.Principal.Groups) > 0 {
			b.Answer += fmt.Sprintf(" (groups: %s)", strings.Join(x.Principal.Groups, ", "))
		}
	}
	means, ok := meaning[x.Outcome]
	if !ok { // an error of the arguments
		means = "listed, but a call with these arguments does not run"
	}
	b.Answer += fmt.Sprintf(": %s: %s%s", x.Outcome, means, x.limits())
	x.advise(&b)
	for _, line := range []*string{&b.Answer, &b.Why, &b.Tool, &b.Change} {
		*line = shortened(*line)
	}
	return b
}

// longestLine is how many bytes of a line are shown.
const longestLine = 500

// shortened returns a text as one line for a terminal.
func shortened(text string) string {
	text = problem.Printable(strings.Join(strings.Fields(oneLine.Replace(text)), " "))
	if len(text) <= longestLine {
		return text
	}
	end := longestLine
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// declaredAs describes the tool's declaration.
func (x *Explanation) declaredAs() string {
	if x.AddedTo != "" {
		return fmt.Sprintf("Go function that the program has added to branch %s, effect %s", x.AddedTo, x.Effect)
	}
	if x.tool.Binding.Intent != "" {
		return fmt.Sprintf("built in, effect %s: a branch has it beside a tool with a side effect", x.Effect)
	}
	does := x.tool.Binding.Kind()
	switch b := x.tool.Binding; {
	case b.Exec != nil:
		does += " " + b.Exec.Command
	case b.HTTP != nil:
		does += " " + b.HTTP.Method + " " + b.HTTP.URL
	case b.MCP != nil:
		does += fmt.Sprintf(" %q of server %s", b.MCP.Tool, b.MCP.Server)
		if x.ServerAt.IsValid() {
			does += fmt.Sprintf(" (%s)", x.ServerAt)
		}
	case b.Func != "":
		does += " " + b.Func
	}
	return fmt.Sprintf("declared at %s, effect %s, %s", x.Declared, x.Effect, does)
}

// limits says how often a call may be made.
func (x *Explanation) limits() (text string) {
	for _, s := range x.Steps {
		if l := s.Decision.RateLimit; l.Calls > 0 {
			limit := fmt.Sprintf(", at most %d times in %s", l.Calls, l.Per)
			if !strings.Contains(text, limit) {
				text += limit
			}
		}
	}
	return text
}

// deciding returns the step whose denial or approval is the outcome; nil if it is none.
func (x *Explanation) deciding() *Step {
	first := func(point decision.Point) *Step {
		i := slices.IndexFunc(x.Steps, func(s Step) bool {
			return s.Decision.Point == point &&
				(!s.Decision.Allow || x.Outcome == string(Approval) && s.Decision.RequireApproval != nil)
		})
		if i < 0 {
			return nil
		}
		return &x.Steps[i]
	}
	switch x.Outcome {
	case "hidden":
		switch {
		case x.Lock != nil && x.Lock.Quarantined != "" && x.unavailable != "":
			return first(decision.Discover)
		case x.unavailable != "":
			return first(decision.Connect)
		case !x.byPolicy:
			return nil
		}
		if s := first(decision.List); s != nil {
			return s
		}
		return first(decision.Call)
	case string(registry.Denied), string(Approval):
		return first(decision.Call)
	case string(Refused):
		return first(decision.Release)
	case string(registry.ResultDenied):
		return first(decision.Result)
	}
	return nil
}

// because returns the reason with its positions.
func (x *Explanation) because() string {
	if len(x.Violations) > 0 && x.Outcome != "hidden" {
		why := x.Violations[0].String()
		if more := len(x.Violations) - 1; more > 0 {
			why += fmt.Sprintf(", and %d more", more)
		}
		return why
	}
	s := x.deciding()
	if s == nil {
		if x.Outcome == "callable" || x.Outcome == "listed" {
			return x.allowedBy()
		}
		return x.decider() + x.Why
	}
	why := fmt.Sprintf("%s: %s: %s%s", s.Decision.Point, s.Decision.Code, x.Why, written(s.Responsible()))
	if s.Branch != "" {
		why += fmt.Sprintf(", asked of branch %s", s.Branch)
	}
	return why
}

// decider names the branch of the lineage that does not show the tool.
func (x *Explanation) decider() string {
	if x.Outcome != "hidden" || len(x.Lineage) == 0 || x.unavailable != "" {
		return ""
	}
	return fmt.Sprintf("branch %s: ", x.Lineage[len(x.Lineage)-1].Branch)
}

// allowedBy names the rules that allow.
func (x *Explanation) allowedBy() string {
	var each []string
	for _, s := range x.Steps {
		by := strings.TrimSuffix(strings.TrimPrefix(written(s.Responsible()), " ("), ")")
		if s.Decision.Trust != "" {
			by = "trust entry " + s.Decision.Trust
			if s.Entry.IsValid() {
				by += fmt.Sprintf(" (%s)", s.Entry)
			}
		}
		text := fmt.Sprintf("%s by %s", s.Decision.Point, by)
		for _, r := range s.Rules {
			if r.Name == "rate_limit" && r.Package == "catalogd."+string(s.Decision.Point) {
				text += fmt.Sprintf(", limited by %s", r.Position)
			}
		}
		if s.Decision.Allow && by != "" && !slices.Contains(each, text) {
			each = append(each, text)
		}
	}
	return "allowed: " + strings.Join(each, ", ")
}

// written names the positions of rules in parentheses, the first two and how many more there are.
func written(rules []decision.Rule) string {
	var at []string
	for i, r := range rules {
		if i == 2 {
			at = append(at, fmt.Sprintf("and %d more", len(rules)-i))
			break
		}
		at = append(at, r.Position.String())
	}
	if at == nil {
		return ""
	}
	return " (" + strings.Join(at, ", ") + ")"
}
