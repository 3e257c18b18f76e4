package httpapi

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// Metrics are the metrics of /metrics. Labels are bounded: a tool's name is a label only if the branch has
// that tool.
type Metrics struct {
	api      *API // nil until read is called
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	retries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
	// unauthorized counts requests that were refused because they had no valid token.
	unauthorized prometheus.Counter
	// attempts counts requests that were refused before they became a call.
	attempts *prometheus.CounterVec
	// decisions counts answers of the policy.
	decisions *prometheus.CounterVec

	generation, healthy, tools, sessions   *prometheus.Desc
	building, abandoned, undecided         *prometheus.Desc
	overdue                                *prometheus.Desc
	checkers, checks, failedChecks, killed *prometheus.Desc
	jqWorkers, jqRuns, jqFailures          *prometheus.Desc
	logged, logWaiting                     *prometheus.Desc
	intents, intentMoves, intentsRunning   *prometheus.Desc
	intentsWritten                         *prometheus.Desc
	upstreams                              upstreamMetrics
}

// NewMetrics returns metrics whose counters are 0.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_calls_total",
			Help: "Tool calls that have ended, by how: ok, accepted (answered with a handle), tool_error, or an error's code. tool is empty for a name that the branch doesn't have.",
		}, []string{"branch", "tool", "code"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_call_retries_total",
			Help: "Requests of http tools that were sent again (retry). tool is as in catalogd_calls_total.",
		}, []string{"branch", "tool"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "catalogd_call_duration_seconds",
			Help:    "How long tool calls took, refused ones included. tool is as in catalogd_calls_total.",
			Buckets: []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60},
		}, []string{"branch", "tool"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_reloads_total",
			Help: "Reloads by result: adopted, unchanged, refused, superseded.",
		}, []string{"result"}),
		unauthorized: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "catalogd_unauthorized_total",
			Help: "Requests that were answered 401: they had no token, or none that is good.",
		}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_refused_attempts_total",
			Help: "Requests that were refused before they became a call, by why (docs/reasons.md).",
		}, []string{"code"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "catalogd_decisions_total",
			Help: "Answers of the policy by decision point and code (docs/reasons.md), known ones included. A list " +
				"decision counts once for each list that is decided, with the code listed.",
		}, []string{"point", "code"}),
		generation: prometheus.NewDesc("catalogd_generation_info", "The generation that serves.", []string{"generation"}, nil),
		healthy:    prometheus.NewDesc("catalogd_config_healthy", "1 while the newest files are served, 0 while they are refused and the last good generation serves.", nil, nil),
		tools:      prometheus.NewDesc("catalogd_branch_tools", "Tools that the operator sees in a branch.", []string{"branch"}, nil),
		sessions:   prometheus.NewDesc("catalogd_sessions", "Live sessions of a branch that has been used.", []string{"branch"}, nil),
	}
	m.building = prometheus.NewDesc("catalogd_build_running_seconds", "How long the build that runs has run; 0 while none does. One of more than 30 s is stuck.", nil, nil)
	m.abandoned = prometheus.NewDesc("catalogd_builds_abandoned", "Builds that were superseded or broken off, and have not ended.", nil, nil)
	m.undecided = prometheus.NewDesc("catalogd_undecided", "Decisions about the serving generation that the policy did not make in time, and is asked for again.", nil, nil)
	m.overdue = prometheus.NewDesc("catalogd_policy_evaluations_overdue", "Evaluations of a decision point that did not end in time and still run.", []string{"point"}, nil)
	m.checkers = prometheus.NewDesc("catalogd_check_workers", "Processes that check calls with CUE and run now.", nil, nil)
	m.checks = prometheus.NewDesc("catalogd_cue_checks_total", "Checks with CUE that were decided.", nil, nil)
	m.failedChecks = prometheus.NewDesc("catalogd_cue_check_failures_total", "Checks with CUE that were not decided, by why: timeout, death. Their calls were refused.", []string{"why"}, nil)
	m.killed = prometheus.NewDesc("catalogd_check_workers_killed_total", "Processes that were ended for a check that took too long or was broken off.", nil, nil)
	m.jqWorkers = prometheus.NewDesc("catalogd_jq_workers", "Processes that run jq programs and run now.", nil, nil)
	m.jqRuns = prometheus.NewDesc("catalogd_jq_runs_total", "Runs of jq programs that ended.", nil, nil)
	m.jqFailures = prometheus.NewDesc("catalogd_jq_failures_total", "Runs of jq programs that ended with their process, by why: timeout, death (such as too little memory), cancelled.", []string{"why"}, nil)
	m.logged = prometheus.NewDesc("catalogd_decision_log_events_total", "Events of the decision log by what became of them: written, dropped (the queue was full), failed (the sink took them in no time), suppressed (attempts beyond a rate).", []string{"result"}, nil)
	m.logWaiting = prometheus.NewDesc("catalogd_decision_log_waiting", "Events of the decision log that wait to be written.", nil, nil)
	m.intents = prometheus.NewDesc("catalogd_intents", "Calls with a side effect that are kept, by the state of their intent.", []string{"state"}, nil)
	m.intentMoves = prometheus.NewDesc("catalogd_intent_transitions_total", "How often this process has brought an intent into a state: attempted counts attempts, and succeeded, failed and unknown what came of them.", []string{"state"}, nil)
	m.intentsRunning = prometheus.NewDesc("catalogd_intents_running", "Intents that this process executes or is to execute.", nil, nil)
	m.intentsWritten = prometheus.NewDesc("catalogd_intents_writable", "0 while calls with a side effect are refused because none can be written down, else 1.", nil, nil)
	m.upstreams = newUpstreamMetrics()
	m.registry.MustRegister(m.calls, m.retries, m.duration, m.reloads, m.unauthorized, m.attempts, m.decisions,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, result := range []string{"adopted", "unchanged", "refused", "superseded"} {
		m.reloads.WithLabelValues(result) // so that the first failure is a change from 0
	}
	return m
}

// read connects the metrics to the API that a scrape reads.
func (m *Metrics) read(a *API) {
	m.api = a
	m.registry.MustRegister(m)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.generation
	ch <- m.healthy
	ch <- m.tools
	ch <- m.sessions
	ch <- m.building
	ch <- m.abandoned
	ch <- m.undecided
	ch <- m.overdue
	ch <- m.checkers
	ch <- m.checks
	ch <- m.failedChecks
	ch <- m.killed
	ch <- m.jqWorkers
	ch <- m.jqRuns
	ch <- m.jqFailures
	ch <- m.logged
	ch <- m.logWaiting
	ch <- m.intents
	ch <- m.intentMoves
	ch <- m.intentsRunning
	ch <- m.intentsWritten
	m.upstreams.describe(ch)
}

// Collect implements prometheus.Collector. It reads the state at the moment of the scrape, so no value can be
// stale.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	g, release := m.api.MCP.Pin()
	defer release()
	ch <- prometheus.MustNewConstMetric(m.generation, prometheus.GaugeValue, 1, g.ID)
	healthy := 0.0
	status := m.api.Status()
	if status.Healthy {
		healthy = 1
	}
	running, abandoned := 0.0, 0.0
	if b := status.Build; b != nil {
		abandoned = float64(b.Abandoned)
		if b.Since != nil {
			running = time.Since(*b.Since).Seconds()
		}
	}
	ch <- prometheus.MustNewConstMetric(m.building, prometheus.GaugeValue, running)
	ch <- prometheus.MustNewConstMetric(m.abandoned, prometheus.GaugeValue, abandoned)
	ch <- prometheus.MustNewConstMetric(m.undecided, prometheus.GaugeValue, float64(len(status.Undecided)))
	overdue := map[decision.Point]int{}
	for _, e := range status.Overdue {
		overdue[e.Point]++
	}
	for _, point := range decision.Points() {
		ch <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, float64(overdue[point]), string(point))
	}
	if c := status.Checker; c != nil {
		ch <- prometheus.MustNewConstMetric(m.checkers, prometheus.GaugeValue, float64(len(c.PIDs)))
		ch <- prometheus.MustNewConstMetric(m.checks, prometheus.CounterValue, float64(c.Checks))
		ch <- prometheus.MustNewConstMetric(m.failedChecks, prometheus.CounterValue, float64(c.Timeouts), "timeout")
		ch <- prometheus.MustNewConstMetric(m.failedChecks, prometheus.CounterValue, float64(c.Deaths), "death")
		ch <- prometheus.MustNewConstMetric(m.killed, prometheus.CounterValue, float64(c.Kills))
	}
	if j := status.JQ; j != nil {
		ch <- prometheus.MustNewConstMetric(m.jqWorkers, prometheus.GaugeValue, float64(len(j.PIDs)))
		ch <- prometheus.MustNewConstMetric(m.jqRuns, prometheus.CounterValue, float64(j.Runs))
		ch <- prometheus.MustNewConstMetric(m.jqFailures, prometheus.CounterValue, float64(j.Timeouts), "timeout")
		ch <- prometheus.MustNewConstMetric(m.jqFailures, prometheus.CounterValue, float64(j.Deaths), "death")
		ch <- prometheus.MustNewConstMetric(m.jqFailures, prometheus.CounterValue, float64(j.Kills-j.Timeouts), "cancelled")
	}
	if l := status.DecisionLog; l != nil {
		for result, n := range map[string]uint64{"written": l.Written, "dropped": l.Dropped, "failed": l.Failed, "suppressed": l.Suppressed} {
			ch <- prometheus.MustNewConstMetric(m.logged, prometheus.CounterValue, float64(n), result)
		}
		ch <- prometheus.MustNewConstMetric(m.logWaiting, prometheus.GaugeValue, float64(l.Waiting))
	}
	if x := status.Intents; x != nil {
		m.collectIntents(ch, *x)
	}
	ch <- prometheus.MustNewConstMetric(m.healthy, prometheus.GaugeValue, healthy)
	m.upstreams.collect(ch, status.Servers)
	for _, name := range g.Branches() {
		if path, ok := g.Path(name); ok {
			ch <- prometheus.MustNewConstMetric(m.tools, prometheus.GaugeValue, float64(path.View.Len()), name)
		}
	}
	for name, n := range m.api.MCP.Sessions() {
		ch <- prometheus.MustNewConstMetric(m.sessions, prometheus.GaugeValue, float64(n), name)
	}
}

func (m *Metrics) collectIntents(ch chan<- prometheus.Metric, x daemon.EffectsStatus) {
	writable := 1.0
	if x.Failed != "" {
		writable = 0
	}
	ch <- prometheus.MustNewConstMetric(m.intentsWritten, prometheus.GaugeValue, writable)
	ch <- prometheus.MustNewConstMetric(m.intentsRunning, prometheus.GaugeValue, float64(x.Running))
	for _, state := range intent.States() {
		ch <- prometheus.MustNewConstMetric(m.intentMoves, prometheus.CounterValue, float64(x.Moves[state]), string(state))
		if x.States != nil {
			ch <- prometheus.MustNewConstMetric(m.intents, prometheus.GaugeValue, float64(x.States[state]), string(state))
		}
	}
}

// Refused counts a request that was refused before it became a call.
func (m *Metrics) Refused(code decision.AttemptCode) { m.attempts.WithLabelValues(string(code)).Inc() }

// Decided counts an answer of the policy. The code of an attempt is counted by Refused, or by Called.
func (m *Metrics) Decided(e decision.Event) {
	if !slices.Contains(decision.Points(), e.Point) {
		return
	}
	code := string(e.Decision.Code)
	if e.Point == decision.List && e.Visible != nil {
		code = "listed"
	}
	m.decisions.WithLabelValues(string(e.Point), code).Inc()
}

// Reloaded counts the outcome of a reload.
func (m *Metrics) Reloaded(o daemon.Outcome) { m.reloads.WithLabelValues(o.Result).Inc() }

// Called counts one call.
func (m *Metrics) Called(c *registry.Call) {
	tool, code := c.Tool, "ok"
	switch {
	case c.Err != nil:
		code = string(c.Err.Code)
	case c.Result.Input != nil:
		code = "input_required"
	case c.Result.Handle:
		code = "accepted"
	case c.Result.IsError:
		code = "tool_error"
	}
	if c.Err != nil && c.Err.Code == registry.UnknownTool {
		tool = ""
	}
	m.calls.WithLabelValues(c.Branch, tool, code).Inc()
	if c.Retries > 0 {
		m.retries.WithLabelValues(c.Branch, tool).Add(float64(c.Retries))
	}
	m.duration.WithLabelValues(c.Branch, tool).Observe(c.Duration.Seconds())
}
