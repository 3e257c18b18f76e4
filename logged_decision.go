package catalogd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/decisionlog"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
)

// LoggedDecision is a decision from a decision log, beside the answer that the same policy gives to the same
// question now.
type LoggedDecision struct {
	ID    string         `json:"decision_id"`
	Point decision.Point `json:"point"`
	Time  time.Time      `json:"time"`
	// File and Line are its position in the log.
	File string `json:"file"`
	Line int    `json:"line"`
	// Generation and Policy are the digests under which it was made, Rules the positions of the rules that
	// answered.
	Generation string   `json:"generation"`
	Policy     string   `json:"policy"`
	Rules      []string `json:"rules"`
	// Input and Logged are the question and the answer as logged. Erased names what is never logged, Masked
	// what the policy left out.
	Input  json.RawMessage `json:"input,omitempty"`
	Logged json.RawMessage `json:"logged,omitempty"`
	Erased []string        `json:"erased,omitempty"`
	Masked []string        `json:"masked,omitempty"`
	// Tried are the catalogs that were searched for the policy. Only the last may have it.
	Tried []TriedPolicy `json:"tried"`
	// Recomputed is the answer now and Explanation its rules and facts; a list decision has Visible instead
	// of Explanation. All are unset where it can't be recomputed; Why then says why.
	Recomputed  json.RawMessage       `json:"recomputed,omitempty"`
	Explanation *decision.Explanation `json:"explanation,omitempty"`
	Visible     []string              `json:"visible,omitempty"`
	Why         string                `json:"why,omitempty"`
	// Same says that both answers are equal, apart from what Masked names.
	Same bool `json:"same"`
}

// TriedPolicy is a catalog that was searched, and the digest of its policy.
type TriedPolicy struct {
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Policy is empty where the catalog can't be read; Problem then says why.
	Policy  string `json:"policy,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ExplainDecision finds a decision in a log file, or in the files that it was rotated to, and asks the same
// question again: of the catalog in the directory or git revision at, where that is not empty, and of the one
// in cfg.Dir, whichever has the policy. The log has no arguments; args are checked against the digest that it
// has. An error says that the log or the decision does not exist. A decision that can't be recomputed is no
// error.
func ExplainDecision(
	ctx context.Context, cfg Config, at, file, id string, args json.RawMessage,
) (*LoggedDecision, error) {
	e, err := decisionlog.Find(file, id)
	if err != nil {
		return nil, err
	}
	if e.Point() == "" {
		return nil, fmt.Errorf("%s:%d: that is an event of the log itself (%s), and no decision",
			e.File, e.Line, e.Path)
	}
	if e.Point() == decision.Attempted {
		return nil, fmt.Errorf("%s:%d: that is an attempt that was refused before a policy was asked (%s), "+
			"and no decision", e.File, e.Line, e.Result)
	}
	if e.Point() == decision.Transitioned {
		return nil, fmt.Errorf("%s:%d: that is a state of an intent (%s), and no decision",
			e.File, e.Line, e.Result)
	}
	p := &LoggedDecision{
		ID: e.ID, Point: e.Point(), Time: e.Time, File: e.File, Line: e.Line,
		Generation: e.Custom.Generation, Policy: e.Custom.Policy, Rules: append([]string{}, e.Custom.Rules...),
		Input: e.Input, Logged: e.Result, Erased: e.Erased, Masked: e.Masked,
	}
	r := revisions{cfg: cfg}
	defer r.close()
	g, err := r.withPolicy(ctx, p, at)
	if err != nil {
		return nil, err
	}
	if g == nil {
		p.Why = "the policy is not at hand any more; name the directory or revision that has it with --at"
		return p, nil
	}
	// A result that is erased as a whole was not looked at by the policy.
	erased := slices.DeleteFunc(slices.Clone(e.Erased), func(pointer string) bool { return pointer == "/input/result" })
	now, err := g.Recompute(ctx, generation.Past{
		Point: p.Point, Generation: p.Generation, Policy: p.Policy, Input: e.Input,
		Missing: slices.Concat(erased, e.Masked), Digest: e.Custom.Arguments, Arguments: args,
	})
	if err != nil {
		p.Why = err.Error()
		return p, nil
	}
	return p, p.compare(now)
}

// withPolicy returns the generation of the first catalog that has the decision's policy; nil where none has.
func (r *revisions) withPolicy(ctx context.Context, p *LoggedDecision, at string) (*generation.Generation, error) {
	names := []string{r.cfg.Dir}
	if at != "" {
		names = []string{at, r.cfg.Dir}
	}
	for _, name := range names {
		g, side, err := r.open(ctx, name)
		tried := TriedPolicy{Name: name, Commit: side.Commit}
		switch {
		case err != nil && name == at && side.Commit == "":
			return nil, err // no such revision: a mistake on the command line
		case err != nil:
			tried.Problem, _, _ = strings.Cut(err.Error(), "\n")
		default:
			tried.Policy = g.Policy()
		}
		p.Tried = append(p.Tried, tried)
		if tried.Policy == p.Policy {
			return g, nil
		}
	}
	return nil, nil
}

// compare sets the answer of now, and whether it is the logged one.
func (p *LoggedDecision) compare(now *generation.Recomputed) error {
	p.Explanation = now.Explanation
	var answer any
	if now.Explanation != nil {
		answer = now.Explanation.Decision
	} else {
		p.Visible = append([]string{}, now.Visible...)
		answer = decisionlog.Viewed(now.Visible)
	}
	var err error
	if p.Recomputed, err = json.Marshal(answer); err != nil {
		return err
	}
	before, err := compared(p.Logged, p.Masked)
	if err != nil {
		return fmt.Errorf("%s:%d: the logged answer: %w", p.File, p.Line, err)
	}
	after, err := compared(p.Recomputed, p.Masked)
	p.Same = err == nil && reflect.DeepEqual(before, after)
	return err
}

// compared decodes an answer and erases the pointers that are not compared.
func compared(answer json.RawMessage, except []string) (any, error) {
	result, err := strictjson.DecodeMaps(answer, strictjson.Options{}, nil)
	if err != nil {
		return nil, err
	}
	event := map[string]any{"result": result}
	for _, pointer := range except {
		if strings.HasPrefix(pointer, "/result") {
			decisionlog.Erase(event, pointer)
		}
	}
	return event["result"], nil
}

// String returns the decision as text for people.
func (p *LoggedDecision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s on %s (%s:%d)\n", p.ID, p.Point, p.Time.Format(time.RFC3339), p.File, p.Line)
	fmt.Fprintf(&b, "generation %s\npolicy %s\n", p.Generation, p.Policy)
	fmt.Fprintf(&b, "logged: %s\n", p.Logged)
	for _, rule := range p.Rules {
		fmt.Fprintf(&b, "  by %s\n", rule)
	}
	if len(p.Masked) > 0 {
		fmt.Fprintf(&b, "masked by the policy: %s\n", strings.Join(p.Masked, ", "))
	}
	for _, t := range p.Tried {
		fmt.Fprintf(&b, "%s has the policy %s\n", t.Name, cmp.Or(t.Policy, "(none: "+t.Problem+")"))
	}
	switch {
	case p.Why != "":
		fmt.Fprintf(&b, "not recomputed: %s", p.Why)
		return printable(b.String())
	case p.Same:
		b.WriteString("recomputed: the same answer")
	default:
		fmt.Fprintf(&b, "recomputed: ANOTHER ANSWER: %s", p.Recomputed)
	}
	if p.Explanation != nil {
		fmt.Fprintf(&b, "\n%s", p.Explanation)
	}
	return printable(b.String())
}

// printable escapes what a terminal would not show of each line of text.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = problem.Printable(line)
	}
	return strings.Join(lines, "\n")
}
