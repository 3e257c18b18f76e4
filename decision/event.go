package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Event is one decision as it was made, for a log.
type Event struct {
	// ID names the decision; Call is the call that it was made for, empty where it was none.
	ID, Call string
	Time     time.Time
	Point    Point
	// Input is what was asked: the point's input type. It holds the arguments of a call, which nobody writes down.
	Input any
	// Arguments is the digest of the arguments.
	Arguments string
	Principal string
	// Decision is what was answered, without what arguments it may repeat.
	Decision Decision
	// Visible are the names of the tools that a list event lets be seen; its Input is a Viewer.
	Visible    []string
	Took       time.Duration
	Generation string
	Engine     *Engine
}

// Viewer is who a list event is about: one event stands for the decisions on all tools.
type Viewer struct {
	Branch    Branch    `json:"branch"`
	Principal Principal `json:"principal"`
}

// ReadInput reads an input of a point, as a log has it, from its JSON. What is not there is empty.
func ReadInput(point Point, data []byte) (input any, err error) {
	switch point {
	case Connect:
		input, err = read[ConnectInput](data)
	case Discover:
		input, err = read[DiscoverInput](data)
	case List:
		input, err = read[Viewer](data)
	case Call:
		var in CallInput
		in, err = read[CallInput](data)
		if in.Arguments == nil {
			in.Arguments = json.RawMessage("{}")
		}
		input = in
	case Result:
		var in ResultInput
		in, err = read[ResultInput](data)
		if in.Arguments == nil {
			in.Arguments = json.RawMessage("{}")
		}
		input = in
	case Adopt:
		input, err = read[AdoptInput](data)
	default:
		return nil, fmt.Errorf("the point %q is not asked by this version", point)
	}
	if err != nil {
		return nil, fmt.Errorf("the input of %s: %w", point, err)
	}
	return input, nil
}

func read[T any](data []byte) (in T, err error) {
	if len(data) == 0 {
		return in, nil
	}
	err = json.Unmarshal(data, &in)
	return in, err
}

// logSpec is data.catalogd.log, no decision point: its mask is what a log leaves out of an event.
var logSpec = pointSpec{point: "log", outputs: []string{"mask"}, load: true}

// Mask are the JSON pointers of what data.catalogd.log takes out of an event, such as /input/principal/name; none where the
// policy has no such package. Only what is asked (/input/...) and answered (/result/...) can be taken out.
func (e *Engine) Mask(ctx context.Context, event any) (pointers []string, err error) {
	defer func() {
		if recover() != nil {
			pointers, err = nil, errors.New("the evaluation failed inside the engine")
		}
	}()
	if e.log == nil {
		return nil, nil
	}
	input, err := ast.InterfaceToValue(event)
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	document, err := e.evaluate(ctx, e.log, ast.NewTerm(input), nil)
	if err != nil {
		return nil, errors.New(strings.Join(e.failed(ctx, logSpec.point, err).Reasons, "; "))
	}
	if document == nil {
		return nil, nil
	}
	r := reader{document: document}
	pointers = r.pointers("mask")
	for _, p := range pointers {
		if !strings.HasPrefix(p, "/input/") && !strings.HasPrefix(p, "/result/") && p != "/input" && p != "/result" {
			r.fault(BadDecisionType, "mask holds %q, which is no part of /input or /result", p)
		}
	}
	if r.code != "" {
		return nil, errors.New(strings.Join(r.faults, "; "))
	}
	return pointers, nil
}

// Responsible are the rules that the answer to this question comes from. For an answer that does not change with the call
// they are found once.
func (e *Engine) Responsible(ctx context.Context, point Point, input any) []Rule {
	p := e.points[point]
	if p == nil {
		return nil
	}
	var key []byte
	if p.settled != nil {
		key = p.settled.key(reflect.ValueOf(input))
		if at, ok := p.settled.find(key); ok && at.answered {
			if at.rules != nil {
				return *at.rules
			}
		} else {
			key = nil
		}
	}
	x, err := e.Explain(ctx, point, input)
	if err != nil {
		return nil
	}
	rules := x.Responsible()
	if key != nil {
		p.settled.ruled(key, rules)
	}
	return rules
}
