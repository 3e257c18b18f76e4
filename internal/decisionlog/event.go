package decisionlog

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// encode appends an event as a line. The rules behind the answer are determined here, off the path of the
// call. Results are never written; arguments are written as a digest unless the policy asks for them.
func (l *Log) encode(dst []byte, e decision.Event) []byte {
	l.seq++
	asked, arguments := e.Engine.Logs()
	if !asked {
		return append(l.append(dst, e, loggedArguments{}), '\n')
	}
	var args loggedArguments
	if arguments {
		args = argumentsOf(e)
	}
	return append(append(dst, l.masked(e, l.append(nil, e, args))...), '\n')
}

// append appends the JSON of an event, its members in the order of their names.
func (l *Log) append(dst []byte, e decision.Event, args loggedArguments) []byte {
	dst = append(dst, `{"custom":{`...)
	if e.Arguments != "" {
		dst = append(decision.AppendString(append(dst, `"arguments":`...), e.Arguments), ',')
	}
	if e.Call != "" {
		dst = append(decision.AppendString(append(dst, `"call":`...), e.Call), ',')
	}
	dst = decision.AppendString(append(dst, `"generation":`...), e.Generation)
	dst = decision.AppendString(append(dst, `,"policy":`...), e.Engine.Digest())
	dst = appendList(append(dst, `,"rules":`...), responsible(e), func(dst []byte, r decision.Rule) []byte {
		return append(dst, l.position(r.Position)...)
	})
	dst = strconv.AppendUint(append(dst, `,"seq":`...), l.seq, 10)
	dst = decision.AppendString(append(dst, `},"decision_id":`...), e.ID)
	if erased := args.erased(e); len(erased) > 0 {
		dst = appendList(append(dst, `,"erased":`...), erased, decision.AppendString)
	}
	dst, err := e.AppendInput(append(dst, `,"input":`...))
	if err != nil {
		panic(fmt.Sprintf("decisionlog: an input without arguments is plain data: %v", err))
	}
	if args.json != nil {
		dst = append(append(append(dst[:len(dst)-1], `,"arguments":`...), args.json...), '}')
	}
	dst = append(append(dst, `,"labels":`...), l.labels...)
	dst = strconv.AppendInt(append(dst, `,"metrics":{"timer_rego_query_eval_ns":`...), e.Took.Nanoseconds(), 10)
	dst = decision.AppendString(append(dst, `},"path":`...), "catalogd/"+string(e.Point))
	if e.Principal != "" {
		dst = decision.AppendString(append(dst, `,"requested_by":`...), e.Principal)
	}
	dst = appendResult(append(dst, `,"result":`...), e)
	dst = e.Time.UTC().AppendFormat(append(dst, `,"timestamp":"`...), time.RFC3339Nano)
	return append(dst, `"}`...)
}

func appendList[T any](dst []byte, list []T, add func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, elem := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = add(dst, elem)
	}
	return append(dst, ']')
}

// appendResult appends the answer. Most are allow without obligations or deny with reasons, which need no
// reflection.
func appendResult(dst []byte, e decision.Event) []byte {
	if e.Point == decision.List {
		return append(dst, encoded(Viewed(e.Visible))...)
	}
	d, rest := e.Decision, e.Decision
	rest.Point, rest.Allow, rest.Code, rest.Reasons = "", false, "", nil
	if !reflect.ValueOf(rest).IsZero() {
		return append(dst, encoded(d)...)
	}
	dst = decision.AppendString(append(dst, `{"point":`...), string(d.Point))
	dst = strconv.AppendBool(append(dst, `,"allow":`...), d.Allow)
	dst = decision.AppendString(append(dst, `,"code":`...), string(d.Code))
	if len(d.Reasons) > 0 {
		dst = appendList(append(dst, `,"reasons":`...), d.Reasons, decision.AppendString)
	}
	return append(dst, '}')
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("decisionlog: an event is plain data: %v", err))
	}
	return b
}

// maxPositions is how many positions of rules are cached as text.
const maxPositions = 1 << 12

// position returns the position of a rule as JSON, from a cache.
func (l *Log) position(at problem.Position) string {
	return l.positions.Do(at, func() string { return string(decision.AppendString(nil, at.String())) })
}

// responsible returns the rules behind an event; none for a list event, which has too many, an attempt or an
// intent.
func responsible(e decision.Event) []decision.Rule {
	if e.Point == decision.List || e.Point == decision.Attempted || e.Point == decision.Transitioned {
		return nil
	}
	return e.Engine.Responsible(context.Background(), e.Point, e.Input)
}

// Viewed returns the result of a list event that shows the tools of these names.
func Viewed(names []string) any {
	return viewed{slices.Clip(names[:min(len(names), maxVisible)]), len(names)}
}

type viewed struct {
	Visible []string `json:"visible"`
	// Tools is how many there are: Visible has the first of them.
	Tools int `json:"tools"`
}

// maxVisible is how many names a list event has at most.
const maxVisible = 1000
