package decision

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Event is a record for the decision log: a decision, an attempt that was refused without one, or the
// transition of an intent.
type Event struct {
	// ID names the decision; Call is the call that it was made for, empty where it was none.
	ID, Call string
	Time     time.Time
	// Point is Attempted for an attempt.
	Point Point
	// Input is what was asked: the point's input type, a Viewer for a list event, an Attempt. It holds the
	// arguments of a call: Event.AppendInput leaves them out.
	Input any
	// Unseen: the policy answered a result decision without reading the result, which Input then does not
	// have.
	Unseen bool
	// Shown are the arguments without what is declared as a secret; nil where nothing of them is.
	Shown func() json.RawMessage
	// Arguments is the digest of the arguments.
	Arguments string
	Principal string
	// Decision is what was answered, without what arguments it may repeat. Of an attempt it is the refusal,
	// and its Code an AttemptCode or a registry.ErrorCode.
	Decision Decision
	// Visible are the names of the tools that a list event lets be seen; its Input is a Viewer.
	Visible    []string
	Took       time.Duration
	Generation string
	Engine     *Engine
}

// Viewer is the subject of a list event, which covers the decisions on all tools.
type Viewer struct {
	Branch    Branch    `json:"branch"`
	Principal Principal `json:"principal"`
}

// ReadInput decodes an input of a point from a decision log. Missing fields are empty.
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
	case Release:
		var in ReleaseInput
		in, err = read[ReleaseInput](data)
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

// Responsible are the rules that the answer to this question comes from. For a cached answer they are found
// once.
func (e *Engine) Responsible(ctx context.Context, point Point, input any) []Rule {
	p := e.points[point]
	if p == nil {
		return nil
	}
	var key []byte
	if p.cache != nil {
		key = p.cache.key(reflect.ValueOf(input))
		if at, ok := p.cache.get(key); ok && at.invariant {
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
		p.cache.setRules(key, rules)
	}
	return rules
}
