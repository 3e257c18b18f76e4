package decision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/internal/cache"
)

// logSpec is data.catalogd.log, no decision point: what a log has of an event.
var logSpec = pointSpec{point: "log", outputs: []string{"mask", "arguments"}, load: true}

// Logging is what data.catalogd.log says of an event.
type Logging struct {
	// Mask are the JSON pointers of what is taken out, such as /input/principal/name. A step * means every
	// item of a list.
	Mask []string
	// Arguments: the arguments of the call are logged, but for its secrets and what Mask takes out.
	Arguments bool
}

// Logs reports what data.catalogd.log can say of any event: whether it says anything, and whether arguments
// may be logged.
func (e *Engine) Logs() (anything, arguments bool) {
	if e.log == nil {
		return false, false
	}
	return true, len(e.log.compiler.GetRulesExact(logSpec.path().Append(ast.StringTerm("arguments")))) > 0
}

// maxLogged is how many answers of data.catalogd.log are cached, by the parts of events that it reads.
const maxLogged = 1 << 12

// Log asks data.catalogd.log what to log of an event, as decoded JSON. Only parts of /input and /result can
// be masked. The answer is shared and not to be changed.
func (e *Engine) Log(ctx context.Context, event any) (Logging, error) {
	if e.log == nil {
		return Logging{}, nil
	}
	key, err := e.log.reads.appendData(nil, event)
	if err != nil {
		return Logging{}, fmt.Errorf("reading the event: %w", err)
	}
	if answer, ok := cache.GetBytes(e.logAnswers, key); ok {
		return answer, nil
	}
	answer, err := e.askLog(ctx, event)
	if err != nil {
		return Logging{}, err
	}
	e.logAnswers.Put(string(key), answer)
	return answer, nil
}

func (e *Engine) askLog(ctx context.Context, event any) (answer Logging, err error) {
	defer func() {
		if recover() != nil {
			answer, err = Logging{}, errors.New("the evaluation failed inside the engine")
		}
	}()
	input, err := shape.Exact(event)
	if err != nil {
		return Logging{}, fmt.Errorf("reading the event: %w", err)
	}
	document, err := e.evaluate(ctx, e.log, ast.NewTerm(input), nil)
	if err != nil {
		return Logging{}, errors.New(strings.Join(e.failure(ctx, logSpec.point, err).Reasons, "; "))
	}
	if document == nil {
		return Logging{}, nil
	}
	r := reader{document: document}
	answer = Logging{Mask: r.pointers("mask"), Arguments: r.boolean("arguments")}
	for _, p := range answer.Mask {
		if !strings.HasPrefix(p, "/input/") && !strings.HasPrefix(p, "/result/") && p != "/input" && p != "/result" {
			r.fault("mask", BadDecisionType, "holds %q, which is not a part of /input or /result", p)
		}
	}
	if r.code != "" {
		return Logging{}, errors.New(strings.Join(r.faults, "; "))
	}
	return answer, nil
}
