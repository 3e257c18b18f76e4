package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/decision"
)

// encode is an event as a line. The rules that answered are worked out here, off the path of the call. Arguments and
// results are never written, arguments by digest only.
func (l *Log) encode(e decision.Event) []byte {
	input, erased := written(e.Input)
	rules := []string{}
	for _, r := range responsible(e) {
		rules = append(rules, r.Position.String())
	}
	custom := map[string]any{"generation": e.Generation, "policy": e.Engine.Digest(), "rules": rules}
	if e.Call != "" {
		custom["call"] = e.Call
	}
	if e.Arguments != "" {
		custom["arguments"] = e.Arguments
	}
	var result any = e.Decision
	if e.Point == decision.List {
		result = Viewed(e.Visible)
	}
	event := map[string]any{
		"decision_id": e.ID, "path": "catalogd/" + string(e.Point), "timestamp": e.Time.UTC(), "input": input, "result": result,
		"metrics": map[string]int64{"timer_rego_query_eval_ns": e.Took.Nanoseconds()}, "custom": custom,
	}
	if e.Principal != "" {
		event["requested_by"] = e.Principal
	}
	if len(erased) > 0 {
		event["erased"] = erased
	}
	return l.line(l.masked(e, event))
}

// responsible are the rules behind an event; a list event has too many.
func responsible(e decision.Event) []decision.Rule {
	if e.Point == decision.List {
		return nil
	}
	return e.Engine.Responsible(context.Background(), e.Point, e.Input)
}

// Viewed is the result of a list event that lets the tools of these names be seen.
func Viewed(names []string) any { return viewed{names[:min(len(names), maxVisible)], len(names)} }

type viewed struct {
	Visible []string `json:"visible"`
	// Tools is how many there are: Visible has the first of them.
	Tools int `json:"tools"`
}

// maxVisible is how many names a list event has at most.
const maxVisible = 1000

// written is what is written of an input, as JSON data, and the pointers of what isn't.
func written(input any) (data any, erased []string) {
	switch in := input.(type) {
	case decision.ConnectInput:
		in.Environment = nil // the same each time, and long
		input, erased = in, []string{"/input/environment"}
	case decision.CallInput:
		in.Arguments = nil
		input, erased = in, []string{"/input/arguments"}
	case decision.ResultInput:
		in.Arguments, in.Result.Structured, in.Result.Text = nil, nil, nil
		input, erased = in, []string{"/input/arguments", "/input/result/structured", "/input/result/text"}
	}
	return plain(input), erased
}

// plain is a value as decoded JSON, with exact numbers.
func plain(v any) (data any) {
	b, err := json.Marshal(v)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&data)
	}
	if err != nil {
		panic(fmt.Sprintf("decisionlog: an event is plain data: %v", err))
	}
	return data
}

// masked takes out of an event what the policy's catalogd.log says. A policy that can't say so takes out the whole input and
// all reasons.
func (l *Log) masked(e decision.Event, event map[string]any) map[string]any {
	event["result"] = plain(event["result"])
	pointers, err := e.Engine.Mask(context.Background(), plain(event))
	if err != nil {
		l.tell("the policy's catalogd.log can't say what to mask; inputs and reasons are left out", "error", err)
		pointers = []string{"/input", "/result/reasons"}
		event["custom"].(map[string]any)["mask_error"] = err.Error()
	}
	var done []string
	for _, p := range pointers {
		if Erase(event, p) {
			done = append(done, p)
		}
	}
	if len(done) > 0 {
		event["masked"] = done
	}
	input, _ := event["input"].(map[string]any)
	principal, _ := input["principal"].(map[string]any)
	if _, named := principal["name"]; !named {
		delete(event, "requested_by") // says the name once more
	}
	return event
}

// Erase takes out of an event, as decoded JSON, what stands at a JSON pointer (RFC 6901); false where nothing does. Only what is
// asked and answered can be.
func Erase(event map[string]any, pointer string) bool {
	return erase(event, strings.Split(pointer[1:], "/"))
}

// erase takes out what stands at the steps of a JSON pointer (RFC 6901). An item of a list leaves null behind: the others keep
// their places, which further pointers name.
func erase(v any, steps []string) bool {
	step := strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[0])
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[step]
		if !ok || len(steps) > 1 {
			return ok && erase(child, steps[1:])
		}
		delete(v, step)
		return true
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != step {
			return false
		}
		if len(steps) > 1 {
			return erase(v[i], steps[1:])
		}
		v[i] = nil
		return true
	}
	return false
}
