package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/catalogd/catalogd/internal/tracing"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// While traces are off, nothing of them costs an allocation or is passed on, whatever the client names.
func TestOffCostsNothing(t *testing.T) {
	var off *tracing.Tracer
	client := tracing.FromHeader(context.Background(), http.Header{"Traceparent": {parent}})
	if id := tracing.ID(client); id != traceID {
		t.Errorf("the log would have the trace %q, want %q", id, traceID)
	}
	header, without, meta := http.Header{}, http.Header{}, []byte(`{"progressToken":1}`)
	for name, ctx := range map[string]context.Context{"no trace": context.Background(), "a client's trace": client} {
		if n := testing.AllocsPerRun(100, func() {
			ctx := tracing.FromMeta(tracing.FromHeader(ctx, without), meta)
			ctx, request := off.Request(ctx, "tools/call")
			ctx, call := tracing.Start(ctx, "call", tracing.Client)
			call.Set("catalogd.call", "x")
			tracing.Inject(ctx, header.Set)
			call.Fail("denied")
			call.End()
			request.End()
		}); n != 0 || len(header) != 0 {
			t.Errorf("%s: %v allocations, and the headers %v are sent; want none", name, n, header)
		}
	}
	if err := off.Close(); err != nil {
		t.Error(err)
	}
}

// What names no span well begins a trace of its own.
func TestClientsThatNameNoSpan(t *testing.T) {
	t.Parallel()
	for _, meta := range []string{
		`{}`, `{"traceparent":1}`, `{"traceparent":""}`, `{"traceparent":"00-` + strings.Repeat("0", 32) + `-00f067aa0ba902b7-01"}`,
		`{"traceparent":"` + strings.Repeat("x", 4096) + `"}`, `{"traceparent":["` + parent + `"]}`, `["traceparent"]`,
	} {
		if id := tracing.ID(tracing.FromMeta(context.Background(), []byte(meta))); id != "" {
			t.Errorf("%.80s: got the trace %s, want none", meta, id)
		}
	}
	twice := http.Header{"Traceparent": {parent, parent}}
	if id := tracing.ID(tracing.FromHeader(context.Background(), twice)); id != "" {
		t.Errorf("two headers: got the trace %s, want none", id)
	}
	nearer := tracing.FromMeta(tracing.FromHeader(context.Background(), http.Header{"Traceparent": {"00-" + strings.Repeat("ab", 16) + "-00f067aa0ba902b7-01"}}),
		[]byte(`{"traceparent":"`+parent+`"}`))
	if id := tracing.ID(nearer); id != traceID {
		t.Errorf("header and _meta: got the trace %s, want that of _meta", id)
	}
}

// Another process gets the ids of the span of its request and the client's tracestate, of which whole entries
// are left out where it is long: those of more than 128 characters first, then the last ones.
func TestInject(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer collector.Close()
	var log strings.Builder
	tracer, err := tracing.New(tracing.Config{URL: collector.URL, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	long, shorts := "c="+strings.Repeat("x", 127), make([]string, 0, 30)
	for i := range 30 {
		shorts = append(shorts, fmt.Sprintf("s%02d=%s", i, strings.Repeat("y", 20)))
	}
	for _, test := range []struct {
		sent []string
		want string
	}{
		{nil, ""},
		{[]string{"vendor=kestrel"}, "vendor=kestrel"},
		{[]string{"a=1,b=2", "c=3"}, "a=1,b=2,c=3"},
		{[]string{"a=1,a=2"}, ""},
		{[]string{"a=1", "a=2"}, ""},
		{[]string{"a=1,,b=2 ", " c=3"}, "a=1,b=2,c=3"},
		{[]string{"a=1\r\nX-Evil: 1"}, ""},
		{[]string{"a=\x1b[31m,b=2"}, ""},
		{[]string{"a=é"}, ""},
		{[]string{"A=1"}, ""},
		{[]string{"a"}, ""},
		{[]string{"a=1=2"}, ""},
		{[]string{"t@v=" + strings.Repeat("x", 257)}, ""},
		{[]string{strings.Join(numbered(33), ",")}, ""},
		{[]string{strings.Join(numbered(32), ",")}, strings.Join(numbered(32), ",")},
		{[]string{long + ",a=1"}, long + ",a=1"},
		{[]string{"a=1," + long + "," + strings.Join(shorts[:20], ",")}, "a=1," + strings.Join(shorts[:20], ",")},
		{[]string{strings.Join(shorts, ",")}, strings.Join(shorts[:20], ",")},
	} {
		ctx := tracing.FromHeader(context.Background(), http.Header{"Traceparent": {parent}, "Tracestate": test.sent, "Baggage": {"user=kestrel"}})
		ctx, span := tracer.Request(ctx, "tools/call")
		header := http.Header{}
		tracing.Inject(ctx, header.Set)
		got := header.Get("Traceparent")
		if !strings.HasPrefix(got, "00-"+traceID+"-") || got == parent || !strings.HasSuffix(got, "-01") || header.Get("Tracestate") != test.want {
			t.Errorf("%v: got %v, want a span of our own in the client's trace, and tracestate %q", test.sent, header, test.want)
		}
		header.Del("Traceparent")
		if header.Del("Tracestate"); len(header) > 0 {
			t.Errorf("%v: %v is passed on too", test.sent, header)
		}
		span.End()
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	if posts.Load() != 1 || !strings.Contains(log.String(), "the collector answered status 503") {
		t.Errorf("%d requests reached the collector that takes none, and the log says %s", posts.Load(), log.String())
	}
}

// numbered are so many entries of a tracestate.
func numbered(n int) (entries []string) {
	for i := range n {
		entries = append(entries, fmt.Sprintf("n%d=1", i))
	}
	return entries
}

func TestCollectorsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "otel", "http://otel.example.com:4318", "ftp://localhost/", "https://user:word@otel.example.com/"} {
		if tracer, err := tracing.New(tracing.Config{URL: address}); err == nil {
			t.Errorf("%q was accepted", address)
			_ = tracer.Close()
		}
	}
}
