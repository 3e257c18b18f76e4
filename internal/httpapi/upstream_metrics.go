package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/upstream"
)

// upstreamMetrics show the health of trusted upstream servers. The labels are the server's name and, if it
// isolates by branch, the branch (otherwise empty); both come from the catalog.
type upstreamMetrics struct {
	state, breaker, inFlight, waiting  *prometheus.Desc
	calls, failures, refused, connects *prometheus.Desc
	ignored                            *prometheus.Desc
}

func newUpstreamMetrics() upstreamMetrics {
	connection, server := []string{"server", "branch"}, []string{"server"}
	return upstreamMetrics{
		state:    prometheus.NewDesc("catalogd_upstream_state", "1 for the state in which a connection to a server is: idle, connecting, ready, failed, draining.", append(connection, "state"), nil),
		breaker:  prometheus.NewDesc("catalogd_upstream_breaker", "1 for the state of a server's circuit breaker: closed, half-open, open. While it is open, calls fail at once.", append(connection, "state"), nil),
		inFlight: prometheus.NewDesc("catalogd_upstream_calls_in_flight", "Calls of a server that run or wait for their turn.", connection, nil),
		waiting:  prometheus.NewDesc("catalogd_upstream_calls_waiting", "Calls of a server that wait because its connections are busy.", server, nil),
		calls:    prometheus.NewDesc("catalogd_upstream_calls_total", "Calls that a server was sent, or that failed for want of a connection.", server, nil),
		failures: prometheus.NewDesc("catalogd_upstream_failures_total", "Failures that a server is to blame for: no connection, a lost one, a status that says so, no answer in time.", server, nil),
		refused:  prometheus.NewDesc("catalogd_upstream_refused_total", "Calls that a server's open circuit breaker failed at once.", server, nil),
		connects: prometheus.NewDesc("catalogd_upstream_connects_total", "Connections that were made to a server.", server, nil),
		ignored:  prometheus.NewDesc("catalogd_upstream_ignored_total", "Messages and lines of a server that are no MCP messages, or answer nothing that was asked.", server, nil),
	}
}

func (m upstreamMetrics) all() []*prometheus.Desc {
	return []*prometheus.Desc{m.state, m.breaker, m.inFlight, m.waiting, m.calls, m.failures, m.refused, m.connects, m.ignored}
}

func (m upstreamMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range m.all() {
		ch <- d
	}
}

// collect sends the metrics of trusted servers. It omits draining connections: a series is for one in use.
func (m upstreamMetrics) collect(ch chan<- prometheus.Metric, servers []daemon.ServerStatus) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range servers {
		if s.Counts == nil {
			continue
		}
		count := func(d *prometheus.Desc, n uint64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), s.Name)
		}
		count(m.calls, s.Counts.Calls)
		count(m.failures, s.Counts.Failures)
		count(m.refused, s.Counts.Refused)
		count(m.connects, s.Counts.Connects)
		count(m.ignored, s.Counts.Ignored)
		waiting := 0
		seen := map[string]bool{}
		for _, c := range s.Connections {
			if c.State == upstream.Draining || seen[c.Branch] {
				continue
			}
			seen[c.Branch] = true
			waiting = max(waiting, c.Waiting)
			gauge(m.state, 1, s.Name, c.Branch, string(c.State))
			gauge(m.breaker, 1, s.Name, c.Branch, c.Breaker)
			gauge(m.inFlight, float64(c.Calls), s.Name, c.Branch)
		}
		gauge(m.waiting, float64(waiting), s.Name)
	}
}
