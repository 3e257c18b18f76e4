package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    *registry.Result
		err  error
		want registry.Outcome
	}{
		"a result":                     {&registry.Result{}, nil, registry.OutcomeSucceeded},
		"the tool's error":             {&registry.Result{IsError: true}, nil, registry.OutcomeFailed},
		"an unclear error":             {&registry.Result{IsError: true, Unclear: true}, nil, registry.OutcomeUnclear},
		"an unclear result":            {&registry.Result{Unclear: true}, nil, registry.OutcomeUnclear},
		"a question":                   {&registry.Result{Input: &registry.Input{}}, nil, registry.OutcomeUnclear},
		"nothing":                      {nil, nil, registry.OutcomeUnclear},
		"any error":                    {nil, context.DeadlineExceeded, registry.OutcomeUnclear},
		"a call's error":               {nil, &registry.Error{Code: registry.Timeout}, registry.OutcomeUnclear},
		"unsent":                       {nil, &registry.Error{Unsent: true}, registry.OutcomeUnsent},
		"unsent, below another error":  {nil, fmt.Errorf("call: %w", &registry.Error{Unsent: true}), registry.OutcomeUnsent},
		"answered and not shown":       {nil, &registry.Error{Answered: registry.OutcomeSucceeded}, registry.OutcomeSucceeded},
		"refused and not shown":        {nil, &registry.Error{Answered: registry.OutcomeFailed}, registry.OutcomeFailed},
		"answered, and unsent as well": {nil, &registry.Error{Unsent: true, Answered: registry.OutcomeFailed}, registry.OutcomeUnclear},
		"answered by no answer":        {nil, &registry.Error{Answered: registry.OutcomeUnsent}, registry.OutcomeUnclear},
		"an error beside a result":     {&registry.Result{}, errors.New("lost"), registry.OutcomeUnclear},
	} {
		if got := registry.OutcomeOf(tt.r, tt.err); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
