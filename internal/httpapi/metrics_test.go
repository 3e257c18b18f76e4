package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/catalogd/catalogd/decision"
)

// TestMetricsPage holds the table of docs/metrics.md to the metrics that are registered. A metric that is exposed and not
// registered is an error of the scrape.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	var rows []string
	for _, d := range h.Metrics.Described() {
		labels := "`" + strings.Join(d.Labels, "`, `") + "`"
		if len(d.Labels) == 0 {
			labels = ""
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", d.Name, labels, d.Help))
	}
	slices.Sort(rows)
	checkTable(t, "../../docs/metrics.md", "| metric | labels | means |\n|---|---|---|\n", strings.Join(rows, ""))
}

// TestMetricsAreBounded makes calls with invented names, and checks that none is a label, and that Prometheus's linter has
// nothing to say.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Modern(t, "/mcp", "tools/call", `"name":"hello"`, h.as("ann")...)
	h.Modern(t, "/mcp", "tools/call", `"name":"quokka"`, h.as("ann")...)
	h.Modern(t, "/branches/quokka/mcp", "tools/call", `"name":"hello"`, h.as("ann")...)
	h.Do(t, "POST", "/branches/default/calls", `{"function":"quokka"}`, h.as("ann")...)
	h.Metrics.Decided(decision.Event{Point: decision.Call, Decision: decision.Decision{Code: decision.Denied}})
	h.Metrics.Decided(decision.Event{Point: decision.Attempted, Decision: decision.Decision{Code: "quokka"}})
	text := h.want(200, "GET", "/metrics", "", h.as("root")...)
	for _, line := range []string{
		`catalogd_calls_total{branch="default",code="ok",tool="hello"} 1`,
		`catalogd_calls_total{branch="default",code="unknown_tool",tool=""} 2`,
		`catalogd_call_duration_seconds_count{branch="default",tool="hello"} 1`,
		`catalogd_decisions_total{code="denied",point="call"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
	if strings.Contains(text, "quokka") {
		t.Errorf("a word of a client is a label:\n%s", text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
