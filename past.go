package catalogd

import (
	"bytes"
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
	"github.com/catalogd/catalogd/internal/serve"
	"github.com/catalogd/catalogd/problem"
)

// PastDecision is a decision that a log has, beside the answer that the same policy gives to the same question now.
type PastDecision struct {
	ID    string         `json:"decision_id"`
	Point decision.Point `json:"point"`
	Time  time.Time      `json:"time"`
	// File and Line say where it stands in the log.
	File string `json:"file"`
	Line int    `json:"line"`
	// Generation and Policy are the digests under which it was made, Rules where the rules stand that answered.
	Generation string   `json:"generation"`
	Policy     string   `json:"policy"`
	Rules      []string `json:"rules"`
	// Input and Logged are what was asked and answered, as logged. Erased is never written, and Masked was left out by the policy.
	Input  json.RawMessage `json:"input,omitempty"`
	Logged json.RawMessage `json:"logged,omitempty"`
	Erased []string        `json:"erased,omitempty"`
	Masked []string        `json:"masked,omitempty"`
	// Tried are the catalogs that were asked for the policy, the last of which may have it.
	Tried []TriedPolicy `json:"tried"`
	// Recomputed is the answer now and Explanation its rules and facts; Visible stands for them in a list decision. All are
	// unset where it could not be recomputed, and Why says why.
	Recomputed  json.RawMessage       `json:"recomputed,omitempty"`
	Explanation *decision.Explanation `json:"explanation,omitempty"`
	Visible     []string              `json:"visible,omitempty"`
	Why         string                `json:"why,omitempty"`
	// Same says that the answer is the logged one, but for what Masked and NotCompared name.
	Same        bool     `json:"same"`
	NotCompared []string `json:"notCompared,omitempty"`
}

// TriedPolicy is one catalog, and the digest of its policy.
type TriedPolicy struct {
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Policy is empty where the catalog can't be read; Problem then says why.
	Policy  string `json:"policy,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ExplainDecision finds a decision in a log that is a file (also in what that was rotated to), and asks the same question
// once more: of the catalog at the directory or git revision at, if that is not empty, and of cfg.Dir, whichever has the
// policy. The log has no arguments; args are held against the digest that it has. The error says that the log or the
// decision is not there; what can't be recomputed is no error.
func ExplainDecision(ctx context.Context, cfg Config, at, file, id string, args json.RawMessage) (*PastDecision, error) {
	e, err := decisionlog.Find(file, id)
	if err != nil {
		return nil, err
	}
	if e.Point() == "" {
		return nil, fmt.Errorf("%s:%d: that is an event of the log itself (%s), and no decision", e.File, e.Line, e.Path)
	}
	p := &PastDecision{
		ID: e.ID, Point: e.Point(), Time: e.Time, File: e.File, Line: e.Line, Generation: e.Custom.Generation, Policy: e.Custom.Policy,
		Rules: append([]string{}, e.Custom.Rules...), Input: e.Input, Logged: e.Result, Erased: e.Erased, Masked: e.Masked,
	}
	s := sides{cfg: cfg}
	defer s.close()
	g, err := s.holding(ctx, p, at)
	if err != nil {
		return nil, err
	}
	if g == nil {
		p.Why = "the policy is not at hand any more; name the directory or revision that has it with --at"
		return p, nil
	}
	now, err := g.Recompute(ctx, serve.Past{
		Point: p.Point, Generation: p.Generation, Policy: p.Policy, Input: e.Input, Missing: slices.Concat(e.Erased, e.Masked),
		Digest: e.Custom.Arguments, Arguments: args,
	})
	if err != nil {
		p.Why = err.Error()
		return p, nil
	}
	return p, p.compare(now)
}

// holding is the generation of the first catalog that has the policy, nil where none has.
func (s *sides) holding(ctx context.Context, p *PastDecision, at string) (*serve.Generation, error) {
	names := []string{s.cfg.Dir}
	if at != "" {
		names = []string{at, s.cfg.Dir}
	}
	for _, name := range names {
		g, about, err := s.open(ctx, name)
		tried := TriedPolicy{Name: name, Commit: about.Commit}
		switch {
		case err != nil && name == at && about.Commit == "":
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

// compare holds the answer against the logged one.
func (p *PastDecision) compare(now *serve.Recomputed) error {
	p.Explanation, p.NotCompared = now.Explanation, now.Except
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
	before, err := compared(p.Logged, p.NotCompared, p.Masked)
	if err != nil {
		return fmt.Errorf("%s:%d: the logged answer: %w", p.File, p.Line, err)
	}
	after, err := compared(p.Recomputed, p.NotCompared, p.Masked)
	p.Same = err == nil && reflect.DeepEqual(before, after)
	return err
}

// compared decodes an answer without the parts that are not compared.
func compared(answer json.RawMessage, except ...[]string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	event := map[string]any{}
	var result any
	if err := d.Decode(&result); err != nil {
		return nil, err
	}
	event["result"] = result
	for _, pointers := range except {
		for _, pointer := range pointers {
			if strings.HasPrefix(pointer, "/result") {
				decisionlog.Erase(event, pointer)
			}
		}
	}
	return event["result"], nil
}

// String is the decision for people.
func (p *PastDecision) String() string {
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
		return lines(b.String())
	case p.Same:
		b.WriteString("recomputed: the same answer")
	default:
		fmt.Fprintf(&b, "recomputed: ANOTHER ANSWER: %s", p.Recomputed)
	}
	if len(p.NotCompared) > 0 {
		fmt.Fprintf(&b, " (not compared: %s)", strings.Join(p.NotCompared, ", "))
	}
	if p.Explanation != nil {
		fmt.Fprintf(&b, "\n%s", p.Explanation)
	}
	return lines(b.String())
}

// lines are those of text, with what a terminal would not show escaped.
func lines(text string) string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		all[i] = problem.Printable(line)
	}
	return strings.Join(all, "\n")
}
