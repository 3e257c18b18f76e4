package generation

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

// DecisionResult is the outcome of one expected decision of a table.
type DecisionResult struct {
	Name string           `json:"name"`
	Pos  problem.Position `json:"pos"`
	Pass bool             `json:"pass"`
	// Message says what differs, or why the decision could not be evaluated.
	Message string `json:"message,omitempty"`
	// Decision is the actual decision.
	Decision *decision.Decision `json:"decision,omitempty"`
}

// fixtureTime is the default of input.time in a table, so that a test does not depend on the date.
var fixtureTime = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// TestDecisions evaluates the decisions of the tables whose names match. A table states only the parts of an
// input that matter to it. A tool, a branch, or the server or tool of a connect that it names is completed
// from the catalog; the principal is the local one, the time a Monday noon, and everything else empty.
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

// askFixture completes the input and evaluates the decision.
func (g *Generation) askFixture(ctx context.Context, f loader.Fixture) (decision.Decision, error) {
	input, err := decodeExact(f.Input)
	if err != nil {
		return decision.Decision{}, err
	}
	fields, ok := input.(map[string]any)
	if !ok {
		return decision.Decision{}, errors.New("input is an object")
	}
	engine := g.engine.WithBuildDeadline()
	local := map[string]any{"principal": asData(decision.Local())}
	switch decision.Point(f.Point) {
	case decision.Connect:
		in, err := filled[decision.ConnectInput](g, fields, nil)
		if err != nil {
			return decision.Decision{}, err
		}
		_, d := engine.Connect(ctx, in)
		return d, nil
	case decision.Discover:
		in, err := filled[decision.DiscoverInput](g, fields, map[string]any{"details": []any{}, "findings": []any{}})
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.Discover(ctx, in), nil
	case decision.List:
		in, err := filled[decision.ListInput](g, fields, local)
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.List(ctx, in), nil
	case decision.Call:
		local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
		in, err := filled[decision.CallInput](g, fields, local)
		if err == nil {
			err = g.taken(in.Tool.Name, in.Arguments)
		}
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.Call(ctx, in), nil
	case decision.Result:
		local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
		in, err := filled[decision.ResultInput](g, fields, local)
		if err == nil {
			err = g.taken(in.Tool.Name, in.Arguments)
		}
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.Result(ctx, in, func() decision.ToolResult { return in.Result }), nil
	case decision.Release:
		in, err := filled[decision.ReleaseInput](g, fields, releasing(local))
		if err == nil {
			err = g.taken(in.Tool.Name, in.Arguments)
		}
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.Release(ctx, in), nil
	case decision.Adopt:
		in, err := filled[decision.AdoptInput](g, fields, nil)
		if err != nil {
			return decision.Decision{}, err
		}
		return engine.Adopt(ctx, in), nil
	}
	return decision.Decision{}, fmt.Errorf("there is no decision point %q", f.Point)
}

// releasing returns the defaults of an intent in a table: the first attempt of one that was staged at
// fixtureTime.
func releasing(local map[string]any) map[string]any {
	local["time"], local["arguments"] = fixtureTime.Format(time.RFC3339), map[string]any{}
	local["intent"] = asData(decision.NewIntent(fixtureTime))
	return local
}

// filled completes the input of a table: what it states, over what the catalog has, over the defaults given.
func filled[T any](g *Generation, fields, given map[string]any) (in T, err error) {
	all := map[string]any{}
	merge(all, given)
	if name := named(fields, "tool"); name != "" {
		if e, ok := g.registry.Lookup(name); ok {
			merge(all, map[string]any{"tool": asData(invoke.PolicyTool(e))})
		}
	}
	if name := named(fields, "branch"); name != "" {
		if path, ok := g.paths[name]; ok {
			merge(all, map[string]any{"branch": asData(invoke.PolicyBranch(path.View.Branch()))})
		}
	}
	if name := named(fields, "subject"); name != "" {
		for _, r := range g.reaches {
			if kind, _ := fields["subject"].(map[string]any)["kind"].(string); r.Name == name && (kind == "" || kind == r.Kind) {
				merge(all, asData(r.asked).(map[string]any))
			}
		}
	}
	merge(all, fields)
	if who, ok := all["principal"].(map[string]any); ok && who["name"] != decision.Local().Name {
		of, _ := fields["principal"].(map[string]any)
		who["local"] = of["local"] == true // not the operator, unless the table says so
	}
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

// taken returns an error if no call of the tool can have these arguments. Required arguments may be missing.
func (g *Generation) taken(tool string, arguments json.RawMessage) error {
	e, ok := g.registry.Lookup(tool)
	if !ok {
		return nil
	}
	if faults := takes(e).Faults(arguments); len(faults) > 0 {
		return fmt.Errorf("no call of %s has these arguments: %s", tool, strings.Join(faults, "; "))
	}
	return nil
}

func named(fields map[string]any, field string) string {
	of, _ := fields[field].(map[string]any)
	name, _ := of["name"].(string)
	return name
}

// unknownNames says which tool and branch of a table's input the catalog lacks. A table may use such names,
// but if its decision differs, they are the likeliest reason.
func (g *Generation) unknownNames(input json.RawMessage) (note string) {
	data, err := decodeExact(input)
	fields, ok := data.(map[string]any)
	if err != nil || !ok {
		return ""
	}
	if name := named(fields, "tool"); name != "" {
		if _, ok := g.registry.Lookup(name); !ok {
			note += "; " + g.unknown(name).Error()
		}
	}
	if name := named(fields, "branch"); name != "" && g.paths[name] == nil {
		note += "; " + g.UnknownBranch(name).Error()
	}
	return note
}

// merge merges fields into into: objects are merged, except for arguments and labels, and all else is replaced.
func merge(into, fields map[string]any) {
	for name, v := range fields {
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
		panic(fmt.Sprintf("generation: an input is plain data: %v", err))
	}
	return data
}

// expected compares a decision to what a table expects: each field that it names, as `catalogd explain
// --format json` shows them. A reason matches if it contains the expected text.
func expected(d decision.Decision, expect json.RawMessage) error {
	fields, err := decodeExact(expect)
	if err != nil {
		return err
	}
	want, _ := fields.(map[string]any)
	if _, ok := want["allow"].(bool); !ok {
		return errors.New("expect says nothing of allow: true or false")
	}
	got := asData(d).(map[string]any)
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

// inWords applies say to the durations in a decision, so that they are spelled as Go does: 5s, 1m0s.
func inWords(d map[string]any, say func(any) string) {
	if v, ok := d["timeout"]; ok {
		d["timeout"] = say(v)
	}
	if limit, ok := d["rate_limit"].(map[string]any); ok && limit["per"] != nil {
		limit["per"] = say(limit["per"])
	}
	if approval, ok := d["require_approval"].(map[string]any); ok && approval["expires"] != nil {
		approval["expires"] = say(approval["expires"])
	}
}

// decisionFields are the names of the fields of a decision.
var decisionFields = func() (names []string) {
	t := reflect.TypeFor[decision.Decision]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}()

// empty reports whether a value is the zero value of an omitted field.
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
		panic(fmt.Sprintf("generation: an expectation is plain data: %v", err))
	}
	return string(b)
}
