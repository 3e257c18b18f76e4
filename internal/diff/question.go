package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/registry"
)

// question is one input of a decision point.
type question struct {
	point decision.Point
	// data is the input as JSON, with the names that the policy uses.
	data map[string]any
	// input is the same in the form that the engine takes.
	input any
	key   string
	// real reports that the catalog declares the subject, and that its contract accepts the arguments.
	real bool
}

// asking makes a question of data; ok is false if data does not match the point.
func asking(point decision.Point, data map[string]any) (q question, ok bool) {
	b, err := json.Marshal(data)
	if err != nil {
		return q, false
	}
	input, err := inputOf(point, b)
	return question{point: point, data: data, input: input, key: string(point) + string(b)}, err == nil
}

func inputOf(point decision.Point, b []byte) (any, error) {
	switch point {
	case decision.Connect:
		return read[decision.ConnectInput](b)
	case decision.Discover:
		return read[decision.DiscoverInput](b)
	case decision.List:
		return read[decision.ListInput](b)
	case decision.Call:
		return read[decision.CallInput](b)
	case decision.Result:
		return read[decision.ResultInput](b)
	case decision.Release:
		return read[decision.ReleaseInput](b)
	case decision.Adopt:
		return read[decision.AdoptInput](b)
	}
	return nil, fmt.Errorf("the point %s is not asked", point)
}

func read[T any](b []byte) (any, error) {
	var in T
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields() // a hint may be for another point
	err := d.Decode(&in)
	return in, err
}

// ask evaluates the question with an engine. A policy that is too slow to answer is an error: it reveals
// nothing about what is granted.
func (q question) ask(ctx context.Context, e *decision.Engine) (answer, error) {
	var d decision.Decision
	var of trusted
	switch in := q.input.(type) {
	case decision.ConnectInput:
		of, d = e.Connect(ctx, in)
	case decision.DiscoverInput:
		d = e.Discover(ctx, in)
	case decision.ListInput:
		d = e.List(ctx, in)
	case decision.CallInput:
		d = e.Call(ctx, in)
	case decision.ResultInput:
		d = e.Result(ctx, in, func() decision.ToolResult { return in.Result })
	case decision.ReleaseInput:
		d = e.Release(ctx, in)
	case decision.AdoptInput:
		d = e.Adopt(ctx, in)
	}
	if d.Code == decision.PolicyTimeout {
		return answer{}, fmt.Errorf("the policy can't be compared, because it is too slow: %s", d)
	}
	return granted(d, of), ctx.Err()
}

// subject describes the principal and the subject of a question for people.
func (q question) subject() Example {
	x := Example{Point: q.point}
	named := func(field string) string {
		of, _ := q.data[field].(map[string]any)
		name, _ := of["name"].(string)
		return name
	}
	x.Branch, x.Tool = named("branch"), named("tool")
	for _, field := range []string{"resource", "prompt"} {
		if name := named(field); name != "" {
			x.Tool = field + " " + name
		}
	}
	switch q.point {
	case decision.Connect:
		target, _ := q.data["target"].(map[string]any)
		if x.Tool = named("subject"); !q.real {
			x.Tool = "" // the subject is made up and has no name
		}
		x.Target = targetText(target)
	case decision.Call, decision.Result, decision.Release:
		if args, ok := q.data["arguments"].(map[string]any); ok && len(args) > 0 {
			x.Arguments = json.RawMessage(jsonText(args))
		}
		if q.point != decision.Result {
			x.Time, _ = q.data["time"].(string)
		}
	}
	if who, ok := q.data["principal"].(map[string]any); ok {
		x.Principal, _ = who["name"].(string)
		for _, group := range list(who["groups"]) {
			x.Groups = append(x.Groups, word(group))
		}
	}
	return x
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func targetText(target map[string]any) string {
	if cmd, ok := target["command"].(map[string]any); ok {
		text := word(cmd["declared"])
		for _, arg := range list(cmd["args"]) {
			text += " " + word(arg)
		}
		if dir := word(cmd["dir"]); cmd["dir"] != nil && dir != "" {
			text += " in " + dir
		}
		return text
	}
	if u, ok := target["url"].(map[string]any); ok {
		return fmt.Sprintf("%s://%s:%s%s", word(u["scheme"]), word(u["host"]), word(u["port"]), word(u["path"]))
	}
	return word(target["kind"])
}

// put sets the value at a path; * is the only element of a list, or an existing key. If the data has a list,
// a value that is not one becomes its only element. It reports false if the path does not exist in the data.
func put(data any, path []string, value any) bool {
	m, ok := data.(map[string]any)
	if !ok || len(path) == 0 {
		return false
	}
	key := path[0]
	if key == "*" {
		all := keys(m)
		if len(all) == 0 {
			all = []string{"x"}
		}
		key = all[0]
	}
	if len(path) == 1 {
		if _, isList := m[key].([]any); isList {
			if _, whole := value.([]any); !whole {
				value = []any{value}
			}
		}
		m[key] = value
		return true
	}
	if path[1] == "*" {
		if l, isList := m[key].([]any); isList || m[key] == nil {
			if len(path) == 2 {
				m[key] = []any{value}
				return true
			}
			elem := map[string]any{}
			if len(l) > 0 {
				elem, _ = cloned(l[0]).(map[string]any)
			}
			m[key] = []any{elem}
			return elem != nil && put(elem, path[2:], value)
		}
	}
	if m[key] == nil {
		m[key] = map[string]any{}
	}
	return put(m[key], path[1:], value)
}

// sample returns arguments that a contract probably accepts: the required ones, and all of them.
func sample(t *registry.Tool) (out []map[string]any) {
	for _, x := range t.Examples {
		if v, err := decoded(x.Args); err == nil {
			if args, ok := v.(map[string]any); ok {
				out = append(out, args)
			}
		}
	}
	v, err := decoded(t.Args.Schema)
	schema, ok := v.(map[string]any)
	if err != nil || !ok {
		return append(out, map[string]any{})
	}
	for _, all := range []bool{false, true} {
		if args, ok := valueFor(schema, all, 0).(map[string]any); ok {
			out = append(out, args)
		}
	}
	return out
}

// valueFor returns a simple value for a schema.
func valueFor(schema map[string]any, all bool, depth int) any {
	for _, key := range []string{"const", "default"} {
		if v, ok := schema[key]; ok {
			return v
		}
	}
	for _, key := range []string{"enum", "examples"} {
		if l := list(schema[key]); len(l) > 0 {
			return l[0]
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		for _, alternative := range list(schema[key]) {
			if m, ok := alternative.(map[string]any); ok {
				return valueFor(m, all, depth+1)
			}
		}
	}
	kind := schema["type"]
	if l := list(kind); len(l) > 0 {
		kind = l[0]
	}
	switch kind {
	case "string":
		return "x"
	case "integer", "number":
		if v, ok := schema["minimum"]; ok {
			return v
		}
		return json.Number("1")
	case "boolean":
		return true
	case "array":
		if items, ok := schema["items"].(map[string]any); ok && depth < 5 {
			return []any{valueFor(items, all, depth+1)}
		}
		return []any{}
	case "null":
		return nil
	}
	out := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range keys(properties) {
		below, ok := properties[name].(map[string]any)
		if ok && depth < 5 && (all || slices.Contains(list(schema["required"]), any(name))) {
			out[name] = valueFor(below, all, depth+1)
		}
	}
	return out
}
