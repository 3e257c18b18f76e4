package registry_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/internal/intent/attempttest"
	"github.com/catalogd/catalogd/registry"
)

// TestRuns: what writes runs with an attempt of it alone, once, and what reads without one (rule 1 of docs/effects.md).
func TestRuns(t *testing.T) {
	t.Parallel()
	r := open(t, tool("reads"), tool("writes", func(t *registry.Tool) { t.Effect = registry.Write }))
	entry := func(name string) (*registry.Entry, contract.Args) {
		e, ok := r.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		args, violations, err := e.Contract().Check(t.Context(), json.RawMessage(`{"city":"Oslo"}`))
		if err != nil || violations != nil {
			t.Fatal(violations, err)
		}
		return e, args
	}
	reads, args := entry("reads")
	writes, _ := entry("writes")
	if _, err := reads.Invoke(t.Context(), args, registry.Listener{}); err != nil {
		t.Errorf("a read tool: %v", err)
	}
	var failed *registry.Error
	if _, err := writes.Invoke(t.Context(), args, registry.Listener{}); !errors.As(err, &failed) || failed.Code != registry.EffectorRequired || !strings.Contains(failed.Msg, `"writes"`) || !failed.Unsent {
		t.Errorf("a write tool without an attempt: %v", err)
	}
	of := func(tool, digest string) attempt.Attempt {
		return attempttest.Of(attempt.Of{Intent: "i", Number: 1, Tool: tool, Digest: digest, Key: "k"})
	}
	for name, a := range map[string]attempt.Attempt{"none": {}, "of another tool": of("reads", args.Digest()), "of other arguments": of("writes", "sha256:0")} {
		if _, err := writes.Execute(t.Context(), a, args, registry.Listener{}); !errors.As(err, &failed) || failed.Code != registry.Internal || !failed.Unsent {
			t.Errorf("an attempt %s: %v", name, err)
		}
	}
	if _, err := reads.Execute(t.Context(), of("reads", args.Digest()), args, registry.Listener{}); !errors.As(err, &failed) || failed.Code != registry.Internal {
		t.Errorf("the effector runs a read tool: %v", err)
	}
	once := of("writes", args.Digest())
	if _, err := writes.Execute(t.Context(), once, args, registry.Listener{}); err != nil {
		t.Errorf("its own attempt: %v", err)
	}
	if _, err := writes.Execute(t.Context(), once, args, registry.Listener{}); err == nil {
		t.Error("an attempt was used twice")
	}
}
