package decisionlog_test

import (
	"context"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/decisionlog"
)

// nowhere is a sink that takes everything.
type nowhere struct{}

func (nowhere) Previous() decisionlog.Previous      { return decisionlog.Previous{} }
func (nowhere) Write(context.Context, []byte) error { return nil }
func (nowhere) Close() error                        { return nil }

// BenchmarkDecisionLog is what the event of one call costs, from Add until its line is handed to the sink: on
// the call's path and behind it together. A call whose result is decided on too has two events.
func BenchmarkDecisionLog(b *testing.B) {
	for _, test := range []struct {
		name    string
		modules map[string]string
	}{
		{"plain", nil},
		{"masked", map[string]string{"policy/log.rego": "package catalogd.log\n\nmask contains \"/input/principal/name\" if input.path == \"catalogd/call\"\n"}},
	} {
		b.Run(test.name, func(b *testing.B) {
			event := call(policy(b, test.modules), "5f0c0a6e9d6c4b0f8a53f1a1b2c3d4e5", "ann")
			event.Engine.Responsible(b.Context(), event.Point, event.Input)
			log := decisionlog.New(decisionlog.Config{Sink: nowhere{}, Block: true, Queue: 64, Version: "v1.2.3"})
			b.ReportAllocs()
			for b.Loop() {
				in := event.Input.(decision.CallInput)
				event.Input = in
				log.Add(event)
			}
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
