package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// DecisionResult is how one expected decision of a table came out.
type DecisionResult struct {
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
	Pass bool             `json:"pass"`
	// Message says what differs, or why nothing could be asked.
	Message string `json:"message,omitempty"`
	// Decision is what was answered.
	Decision *decision.Decision `json:"decision,omitempty"`
}

// fixtureTime is input.time where a table does not say it, so that a test does not depend on the day.
var fixtureTime = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// TestDecisions asks what the tables ask, as far as the names match. A table says of an input what matters to it: a tool, a
// branch, or the server or tool of a connect that is named is taken from the catalog, the principal is the local one, the
// time a Monday noon, and all else empty.
func (g *Generation) TestDecisions(ctx context.Context, fixtures []loader.Fixture, names *regexp.Regexp) []DecisionResult {
	results := []DecisionResult{}
	for _, f := range fixtures {
		if !names.MatchString(f.Name) {
			continue
		}
		r := DecisionResult{Name: f.Name, Pos: f.Pos}
		d, err := g.askFixture(ctx, f)
		if err == nil {
			r.Decision = &d
			if err = expected(d, f.Expect); err != nil {
				err = fmt.Errorf("%w%s", err, g.unknownNames(f.Input))
			}
		}
		if err != nil {
			r.Message = err.Error()
		}
		r.Pass = err == nil
		results = append(results, r)
	}
	return results
}

// askFixture fills in the input and asks.
func (g *Generation) askFixture(ctx context.Context, f loader.Fixture) (decision.Decision, error) {
	input, err := decodeExact(f.Input)
	if err != nil {
		return decision.Decision{}, err
	}
	said, ok := input.(map[string]any)
	if !ok {
		return decision.Decision{}, errors.New("input is an object")
	}
	local := map[string]any{"principal": asData(decision.Local())}
	switch decision.Point(f.Point) {
	case decision.Connect:
		in, err := filled[decision.ConnectInput](g, said, nil)
		if err != nil {
			return decision.Decision{}, err
		}
		_, d := g.engine.Connect(ctx, in)
		return d, nil
	case decision.Discover:
		in, err := filled[decision.DiscoverInput](g, said, map[string]any{"details": []any{}, "findings": []any{}})
		if err != nil {
			return decision.Decision{}, err
		}
		return g.engine.Discover(ctx, in), nil
	case decision.List:
		in, err := filled[decision.ListInput](g, said, local)
		if err != nil {
			return decision.Decision{}, err
		}
		return g.engine.List(ctx, in), nil
	case decision.Call:
		local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
		in, err := filled[decision.CallInput](g, said, local)
		if err != nil {
			return decision.Decision{}, err
		}
		return g.engine.Call(ctx, in), nil
	case decision.Result:
		local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
		in, err := filled[decision.ResultInput](g, said, local)
		if err != nil {
			return decision.Decision{}, err
		}
		return g.engine.Result(ctx, in, func() decision.ToolResult { return in.Result }), nil
	case decision.Adopt:
		in, err := filled[decision.AdoptInput](g, said, nil)
		if err != nil {
			return decision.Decision{}, err
		}
		return g.engine.Adopt(ctx, in), nil
	}
	return decision.Decision{}, fmt.Errorf("there is no decision point %q", f.Point)
}

// filled is an input of which a table says some: over that of the catalog, over what is given.
func filled[T any](g *Generation, said, given map[string]any) (in T, err error) {
	all := map[string]any{}
	merge(all, given)
	if name := named(said, "tool"); name != "" {
		if e, ok := g.registry.Lookup(name); ok {
			merge(all, map[string]any{"tool": asData(invoke.PolicyTool(e))})
		}
	}
	if name := named(said, "branch"); name != "" {
		if path, ok := g.paths[name]; ok {
			merge(all, map[string]any{"branch": asData(invoke.PolicyBranch(path.View.Branch()))})
		}
	}
	if name := named(said, "subject"); name != "" {
		for _, r := range g.reaches {
			if kind, _ := said["subject"].(map[string]any)["kind"].(string); r.Name == name && (kind == "" || kind == r.Kind) {
				merge(all, asData(r.asked).(map[string]any))
			}
		}
	}
	merge(all, said)
	b, err := json.Marshal(all)
	if err != nil {
		return in, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("the input does not fit the point: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return in, nil
}

func named(said map[string]any, field string) string {
	of, _ := said[field].(map[string]any)
	name, _ := of["name"].(string)
	return name
}

// unknownNames says which tool and branch of a table's input the catalog does not have. A table may ask about such, but
// where its decision is another than expected, the name is the likeliest reason.
func (g *Generation) unknownNames(input json.RawMessage) (note string) {
	data, err := decodeExact(input)
	said, ok := data.(map[string]any)
	if err != nil || !ok {
		return ""
	}
	if name := named(said, "tool"); name != "" {
		if _, ok := g.registry.Lookup(name); !ok {
			note += "; " + g.unknown(name).Error()
		}
	}
	if name := named(said, "branch"); name != "" && g.paths[name] == nil {
		note += "; " + g.UnknownBranch(name).Error()
	}
	return note
}

// merge puts what is said over what stands there; objects are merged, all else is replaced.
func merge(into, said map[string]any) {
	for name, v := range said {
		below, object := v.(map[string]any)
		before, was := into[name].(map[string]any)
		if object && was && name != "arguments" && name != "labels" {
			merged := maps.Clone(before)
			merge(merged, below)
			v = merged
		}
		into[name] = v
	}
}

func asData(v any) (data any) {
	b, err := json.Marshal(v)
	if err == nil {
		data, err = decodeExact(b)
	}
	if err != nil {
		panic(fmt.Sprintf("serve: an input is plain data: %v", err))
	}
	return data
}

// expected holds a decision to what a table expects: each field that it names, as `catalogd explain --format json` shows
// them. A reason is expected as a part of one.
func expected(d decision.Decision, expect json.RawMessage) error {
	said, err := decodeExact(expect)
	if err != nil {
		return err
	}
	want, _ := said.(map[string]any)
	if _, ok := want["allow"].(bool); !ok {
		return errors.New("expect says nothing of allow: true or false")
	}
	got := asData(d).(map[string]any)
	inWords(got, func(v any) string { n, _ := v.(json.Number).Int64(); return time.Duration(n).String() })
	inWords(want, func(v any) string {
		text, _ := v.(string)
		length, err := time.ParseDuration(text)
		if err != nil {
			return text
		}
		return length.String()
	})
	var differs []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		if name == "reasons" {
			parts, ok := w.([]any)
			if !ok {
				return errors.New("expect.reasons is a list of texts")
			}
			for _, part := range parts {
				text, _ := part.(string)
				if !slices.ContainsFunc(d.Reasons, func(r string) bool { return strings.Contains(r, text) }) {
					differs = append(differs, fmt.Sprintf("no reason says %q", text))
				}
			}
			continue
		}
		have, there := got[name]
		if !there && !slices.Contains(decisionFields, name) {
			return fmt.Errorf("a decision has no %q; it has %s", name, strings.Join(decisionFields, ", "))
		}
		if !there && empty(w) {
			continue
		}
		if !sameValue(have, w) {
			differs = append(differs, fmt.Sprintf("%s is %s, expected %s", name, jsonText(have), jsonText(w)))
		}
	}
	if len(differs) == 0 {
		return nil
	}
	message := strings.Join(differs, "; ")
	if len(d.Reasons) > 0 {
		message += " (" + strings.Join(d.Reasons, "; ") + ")"
	}
	return errors.New(message)
}

// inWords writes the lengths of time in a decision as Go does: 5s, 1m0s.
func inWords(d map[string]any, say func(any) string) {
	if v, ok := d["timeout"]; ok {
		d["timeout"] = say(v)
	}
	if limit, ok := d["rate_limit"].(map[string]any); ok && limit["per"] != nil {
		limit["per"] = say(limit["per"])
	}
}

// decisionFields are what a decision can be expected to have.
var decisionFields = func() (names []string) {
	t := reflect.TypeFor[decision.Decision]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// empty reports whether a value is what a field that is left out stands for.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func jsonText(v any) string {
	if v == nil {
		return "not set"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("serve: an expectation is plain data: %v", err))
	}
	return string(b)
}
