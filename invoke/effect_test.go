package invoke_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// openEffects is open for a tool with a side effect, whose calls are executed on a store of their own.
func openEffects(t *testing.T, s *script, bound registry.Bound) (fixture, *intent.Effector) {
	t.Helper()
	f := open(t, s, bound, func(tool *registry.Tool) { tool.Effect = registry.Write })
	log := slog.New(slog.DiscardHandler)
	store, err := intent.Open(t.Context(), intent.Config{Dir: filepath.Join(t.TempDir(), "intents"), Durability: intent.Process, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	effector := intent.NewEffector(intent.EffectorConfig{Store: store, Log: log, Server: func(intent.Intent) string { return "" }})
	t.Cleanup(func() {
		effector.Close(context.Background())
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	f.path.Policy = "p1"
	f.path.Release = func(context.Context, decision.ReleaseInput) decision.Decision {
		return decision.Decision{Point: decision.Release, Allow: true, Code: decision.Allowed}
	}
	f.path.Effects = &invoke.Effects{
		Effector: func(context.Context) (*intent.Effector, error) { return effector, nil },
		Now: func(_ intent.Intent, who *decision.Principal) (*invoke.Path, decision.Principal, func(), error) {
			return f.path, *who, func() {}, nil
		},
		Wait: time.Minute,
	}
	return f, effector
}

// TestEffectPanics: a panic before the tool runs is a refusal, and one after it has answered changes nothing of what has
// happened.
func TestEffectPanics(t *testing.T) {
	t.Parallel()
	const secret = "a secret in a panic"
	for _, test := range []struct {
		name  string
		bound registry.Bound
		spoil func(*invoke.Path)
		state intent.State
		runs  int
	}{
		{"the release decision", registry.Bound{}, func(p *invoke.Path) {
			p.Release = func(context.Context, decision.ReleaseInput) decision.Decision { panic(secret) }
		}, intent.Refused, 0},
		{"post", registry.Bound{Post: func(context.Context, json.RawMessage, int) (json.RawMessage, error) { panic(secret) }}, func(*invoke.Path) {}, intent.Succeeded, 1},
		{"the result decision", registry.Bound{}, func(p *invoke.Path) {
			p.Judge = func(context.Context, decision.ResultInput, func() decision.ToolResult) decision.Decision {
				panic(secret)
			}
		}, intent.Succeeded, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, effector := openEffects(t, &script{}, test.bound)
			test.spoil(f.path)
			call := f.call(`{"city":"Oslo"}`)
			if call.Err == nil || call.Err.Code != registry.Internal || strings.Contains(call.Err.Msg, secret) || call.Result != nil || f.script.runs != test.runs {
				t.Errorf("%+v, %d runs", call, f.script.runs)
			}
			in, err := effector.Get(t.Context(), call.Intent, intent.Person{Name: "local"})
			if err != nil || in.State != test.state || strings.Contains(in.Message, secret) {
				t.Errorf("%+v, %v; want %s", in, err, test.state)
			}
			if log := f.log.String(); !strings.Contains(log, "panic: "+secret) {
				t.Errorf("the log has %s", log)
			}
		})
	}
}

// TestEffectOfAnotherPrincipal: a principal that is in fewer groups when its turn comes than when it called is asked about anew.
func TestEffectOfAnotherPrincipal(t *testing.T) {
	t.Parallel()
	f, _ := openEffects(t, &script{}, registry.Bound{})
	f.path.Decide = func(_ context.Context, in decision.CallInput) decision.Decision {
		d := decision.Decision{Point: decision.Call, Allow: len(in.Principal.Groups) > 0, Code: decision.Allowed}
		if !d.Allow {
			d.Code = decision.Denied
		}
		return d
	}
	groups := []string{"buyers"}
	f.path.Effects.Now = func(intent.Intent, *decision.Principal) (*invoke.Path, decision.Principal, func(), error) {
		return f.path, decision.Principal{Name: "ann", Groups: groups}, func() {}, nil
	}
	req := invoke.Request{Tool: "forecast", Arguments: []byte(`{"city":"Oslo"}`), Principal: decision.Principal{Name: "ann", Groups: []string{"buyers"}}}
	if call := f.path.Call(t.Context(), req); call.Err != nil || f.script.runs != 1 {
		t.Fatalf("%+v, %d runs", call, f.script.runs)
	}
	groups = nil
	if call := f.path.Call(t.Context(), req); call.Err == nil || call.Err.Code != registry.Denied || f.script.runs != 1 {
		t.Errorf("%+v, %d runs", call, f.script.runs)
	}
}
