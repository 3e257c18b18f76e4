package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/tracing"
	"github.com/catalogd/catalogd/registry"
)

// traceMeta is the trace context in a message's _meta.
type traceMeta struct {
	Parent  string `json:"traceparent"`
	State   string `json:"tracestate"`
	Baggage string `json:"baggage"`
}

func (m traceMeta) String() string {
	return "parent=" + m.Parent + " state=" + m.State + " baggage=" + m.Baggage
}

// While traces are on, a server gets the ids of the span of its request and the client's tracestate in _meta,
// whatever its transport, and never the client's baggage; while they are off it gets nothing.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	t.Cleanup(collector.Close)
	tracer, err := tracing.New(tracing.Config{URL: collector.URL, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tracer.Close(); err != nil {
			t.Error(err)
		}
	})
	overHTTP := modern(t, func(_ string, params json.RawMessage) string {
		var p struct {
			Meta traceMeta `json:"_meta"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			t.Error(err)
		}
		return fmt.Sprintf(`"result":{"resultType":"complete","content":[{"type":"text","text":%q}]}`, p.Meta)
	})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	client := tracing.FromMeta(t.Context(), json.RawMessage(
		`{"traceparent":"00-`+trace+`-00f067aa0ba902b7-01","tracestate":"vendor=kestrel","baggage":"user=kestrel"}`))
	for name, c := range map[string]struct {
		server registry.Server
		terms  trust.Terms
	}{"stdio": {stdioServer(t, "good"), trust.Terms{}}, "http": {overHTTP, loopback}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, set := open(t, c.server, c.terms)
			said := func(ctx context.Context) string {
				t.Helper()
				r, err := set.Call(ctx, "fake", "parent", nil, registry.Listener{})
				if err != nil {
					t.Fatal(err)
				}
				var block struct{ Text string }
				if err := json.Unmarshal(r.Content[0], &block); err != nil {
					t.Fatal(err)
				}
				return block.Text
			}
			if got := said(client); got != (traceMeta{}).String() {
				t.Errorf("traces are off: got %q, want nothing", got)
			}
			ctx, span := tracer.Request(client, "tools/call")
			defer span.End()
			sent := http.Header{}
			tracing.Inject(ctx, sent.Set)
			want := traceMeta{Parent: sent.Get("Traceparent"), State: "vendor=kestrel"}
			if got := said(ctx); got != want.String() || !strings.HasPrefix(want.Parent, "00-"+trace+"-") {
				t.Errorf("got %q, want %q, the span of the request in the client's trace", got, want)
			}
		})
	}
}
