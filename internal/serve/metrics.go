package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/catalogd/catalogd/registry"
)

// metrics is what /metrics shows. Labels are bounded: a tool's name is a label only where the branch has that tool.
type metrics struct {
	front    *Front
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	// unauthorized counts requests that were refused for want of a good token.
	unauthorized prometheus.Counter

	generation, healthy, tools, sessions   *prometheus.Desc
	checkers, checks, failedChecks, killed *prometheus.Desc
	logged, logWaiting                     *prometheus.Desc
	upstreams                              upstreamMetrics
}

func newMetrics(f *Front) *metrics {
	m := &metrics{
		front:    f,
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_calls_total",
			Help: "Tool calls that have ended, by how: ok, tool_error, or an error's code. tool is empty for a name that the branch doesn't have.",
		}, []string{"branch", "tool", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "catalogd_call_duration_seconds",
			Help:    "How long tool calls took, refused ones included.",
			Buckets: []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60},
		}, []string{"branch"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_reloads_total",
			Help: "Reloads by result: adopted, unchanged, refused.",
		}, []string{"result"}),
		unauthorized: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "catalogd_unauthorized_total",
			Help: "Requests that were answered 401: they had no token, or none that is good.",
		}),
		generation: prometheus.NewDesc("catalogd_generation_info", "The generation that serves.", []string{"generation"}, nil),
		healthy:    prometheus.NewDesc("catalogd_config_healthy", "1 while the newest files are served, 0 while they are refused and the last good generation serves.", nil, nil),
		tools:      prometheus.NewDesc("catalogd_branch_tools", "Tools that the operator sees in a branch.", []string{"branch"}, nil),
		sessions:   prometheus.NewDesc("catalogd_sessions", "Live sessions of a branch that has been used.", []string{"branch"}, nil),
	}
	m.checkers = prometheus.NewDesc("catalogd_check_workers", "Processes that check calls with CUE and run now.", nil, nil)
	m.checks = prometheus.NewDesc("catalogd_cue_checks_total", "Checks with CUE that were decided.", nil, nil)
	m.failedChecks = prometheus.NewDesc("catalogd_cue_check_failures_total", "Checks with CUE that were not decided, by why: timeout, death. Their calls were refused.", []string{"why"}, nil)
	m.killed = prometheus.NewDesc("catalogd_check_workers_killed_total", "Processes that were ended for a check that took too long or was broken off.", nil, nil)
	m.logged = prometheus.NewDesc("catalogd_decision_log_events_total", "Events of the decision log by what became of them: written, dropped (the queue was full), failed (the sink took them in no time).", []string{"result"}, nil)
	m.logWaiting = prometheus.NewDesc("catalogd_decision_log_waiting", "Events of the decision log that wait to be written.", nil, nil)
	m.upstreams = newUpstreamMetrics()
	m.registry.MustRegister(m.calls, m.duration, m.reloads, m.unauthorized, m,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, result := range []string{"adopted", "unchanged", "refused"} {
		m.reloads.WithLabelValues(result) // so that the first failure is a change from 0
	}
	return m
}

// Describe is prometheus.Collector's.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.generation
	ch <- m.healthy
	ch <- m.tools
	ch <- m.sessions
	ch <- m.checkers
	ch <- m.checks
	ch <- m.failedChecks
	ch <- m.killed
	ch <- m.logged
	ch <- m.logWaiting
	m.upstreams.describe(ch)
}

// Collect reads what serves at the moment of the scrape, so nothing here can be stale.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	g, release := m.front.Pin()
	defer release()
	ch <- prometheus.MustNewConstMetric(m.generation, prometheus.GaugeValue, 1, g.ID)
	healthy := 0.0
	status := m.front.Status()
	if status.Healthy {
		healthy = 1
	}
	if c := status.Checker; c != nil {
		ch <- prometheus.MustNewConstMetric(m.checkers, prometheus.GaugeValue, float64(len(c.PIDs)))
		ch <- prometheus.MustNewConstMetric(m.checks, prometheus.CounterValue, float64(c.Checks))
		ch <- prometheus.MustNewConstMetric(m.failedChecks, prometheus.CounterValue, float64(c.Timeouts), "timeout")
		ch <- prometheus.MustNewConstMetric(m.failedChecks, prometheus.CounterValue, float64(c.Deaths), "death")
		ch <- prometheus.MustNewConstMetric(m.killed, prometheus.CounterValue, float64(c.Kills))
	}
	if l := status.DecisionLog; l != nil {
		for result, n := range map[string]uint64{"written": l.Written, "dropped": l.Dropped, "failed": l.Failed} {
			ch <- prometheus.MustNewConstMetric(m.logged, prometheus.CounterValue, float64(n), result)
		}
		ch <- prometheus.MustNewConstMetric(m.logWaiting, prometheus.GaugeValue, float64(l.Waiting))
	}
	ch <- prometheus.MustNewConstMetric(m.healthy, prometheus.GaugeValue, healthy)
	m.upstreams.collect(ch, status.Servers)
	for _, name := range g.Branches() {
		if path, ok := g.Path(name); ok {
			ch <- prometheus.MustNewConstMetric(m.tools, prometheus.GaugeValue, float64(path.View.Len()), name)
		}
	}
	m.front.mu.Lock()
	defer m.front.mu.Unlock()
	sessions := map[string]int{}
	for at, b := range m.front.branches {
		sessions[at.branch] += b.sessions.count()
	}
	for name, n := range sessions {
		ch <- prometheus.MustNewConstMetric(m.sessions, prometheus.GaugeValue, float64(n), name)
	}
}

// called counts one call.
func (m *metrics) called(c *registry.Call) {
	tool, code := c.Tool, "ok"
	switch {
	case c.Err != nil:
		code = string(c.Err.Code)
	case c.Result.Input != nil:
		code = "input_required"
	case c.Result.IsError:
		code = "tool_error"
	}
	if c.Err != nil && c.Err.Code == registry.UnknownTool {
		tool = ""
	}
	m.calls.WithLabelValues(c.Branch, tool, code).Inc()
	m.duration.WithLabelValues(c.Branch).Observe(c.Duration.Seconds())
}
