package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/open-policy-agent/opa/v1/util"

	"github.com/catalogd/catalogd/decision/lint"
)

// TrustEntries returns a copy of data.trust.entries.
func (e *Engine) TrustEntries() map[string]any {
	trust, ok := e.policy.Data.Value["trust"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	entries, ok := trust["entries"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return maps.Clone(entries)
}

// Hypothetical is a policy with other data. It makes decisions, but no Trust.
type Hypothetical struct{ engine *Engine }

// WithTrust returns the policy with these entries in place of data.trust.entries. It has only the point
// Connect.
func (e *Engine) WithTrust(entries map[string]any) (Hypothetical, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return Hypothetical{}, fmt.Errorf("the trust entries are not plain data: %w", err)
	}
	var plain map[string]any
	if err := util.UnmarshalJSON(text, &plain); err != nil {
		return Hypothetical{}, err
	}
	if e.points[Connect] == nil {
		return Hypothetical{}, errors.New("the policy has no package catalogd.connect")
	}
	trust, ok := e.policy.Data.Value["trust"].(map[string]any)
	if !ok {
		trust = map[string]any{}
	}
	trust = maps.Clone(trust)
	trust["entries"] = plain
	return e.withData("trust", trust, Connect), nil
}

// withData returns the policy with a value in place of data.<area>. It has only the points named.
func (e *Engine) withData(area string, value any, points ...Point) Hypothetical {
	other := &Engine{
		digest: e.digest, deadline: e.build, build: e.build, logger: e.logger, points: map[Point]*compiledPoint{},
	}
	for _, point := range points {
		if p := e.points[point]; p != nil {
			other.points[point] = &compiledPoint{ // with a cache of its own
				spec: p.spec, compiler: p.compiler, query: p.query, cache: newAnswerCache(p.spec, p.reads),
				claims: p.claims, reads: p.reads, at: p.at, outputs: p.outputs, fast: p.fast,
			}
		}
	}
	data := maps.Clone(e.policy.Data.Value)
	data[area] = value
	other.policy = e.policy.WithData(data)
	other.store = storeOf(other.policy.Data)
	return Hypothetical{other}
}

// Connect makes the connect decision. The error says that the policy did not decide in time.
func (s Hypothetical) Connect(ctx context.Context, in ConnectInput) (Decision, error) {
	_, d := s.engine.Connect(ctx, in)
	if d.Code == PolicyTimeout {
		return d, fmt.Errorf("%s %q: %s", in.Subject.Kind, in.Subject.Name, d)
	}
	return d, nil
}

// List makes the list decision and, where that allows, the call decision that is the same for all calls, if there
// is one: the first that denies or fails.
func (s Hypothetical) List(ctx context.Context, in ListInput) Decision {
	d := s.engine.List(ctx, in)
	if !d.Allow {
		return d
	}
	call, ok := s.engine.ConstantCall(ctx, CallInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal})
	if ok && call.Allow || !ok && call.Code == "" { // it depends on the call
		return d
	}
	return call
}

// Data is the policy's data. It is shared and not to be changed.
func (e *Engine) Data() map[string]any { return e.policy.Data.Value }

// With returns the policy of e with changes made to it, which must come from lint.Changes. It has only the
// points named. The error says that the changed policy does not compile.
func (e *Engine) With(asked []Point, changes ...lint.Change) (changed *Engine, err error) {
	defer func() {
		if recover() != nil {
			changed, err = nil, errors.New(compilerPanicked)
		}
	}()
	cfg := Config{Deadline: e.deadline, Build: e.build, Logger: e.logger}
	changed, problems := newEngine(cfg, e.policy.With(changes...), e.digest, asked)
	if changed == nil {
		return nil, fmt.Errorf("the policy does not compile: %s", problems.Sorted()[0].Message)
	}
	return changed, nil
}
