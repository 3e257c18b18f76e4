package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/loader"
	"github.com/catalogd/catalogd/problem"
)

// testsTime limits the tests of a policy at a reload, all of them together: no single test has a limit that
// high load could exceed. If they take longer, a policy that requires passing tests refuses the candidate;
// the result is not cached, so the next reload runs them again.
const testsTime = 2 * time.Minute

// testResults caches the test results of the last policy, by the digest of its files.
type testResults struct {
	mu      sync.Mutex
	policy  string
	summary decision.TestSummary
}

func (t *testResults) find(policy string) (decision.TestSummary, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summary, policy != "" && t.policy == policy
}

func (t *testResults) keep(policy string, summary decision.TestSummary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policy, t.summary = policy, summary
}

// test runs the tests of the candidate's policy, unless the result is cached or no adopt decision reads it.
// It returns within testsTime, whatever the tests do.
func (d *Daemon) test(ctx context.Context, serving, candidate *generation.Generation, snap *loader.Snapshot) decision.TestSummary {
	if !serving.ReadsTests() && !candidate.ReadsTests() {
		return decision.TestSummary{Failures: []string{}}
	}
	if summary, ok := d.tested.find(candidate.PolicyFiles()); ok {
		return summary
	}
	ctx, cancel := context.WithTimeout(ctx, testsTime)
	defer cancel()
	ended := make(chan decision.TestSummary, 1)
	go func() { ended <- summaryOf(decision.Test(ctx, snap.FS(), decision.TestConfig{Timeout: testsTime})) }()
	select {
	case summary := <-ended:
		if ctx.Err() == nil {
			d.tested.keep(candidate.PolicyFiles(), summary)
			return summary
		}
	case <-ctx.Done():
	}
	return decision.TestSummary{
		Run: true, Failed: 1, Failures: []string{fmt.Sprintf("the tests did not finish within %s", testsTime)},
	}
}

func summaryOf(report decision.TestReport, problems problem.List) decision.TestSummary {
	summary := decision.TestSummary{Run: true, Failures: []string{}}
	for _, t := range report.Tests {
		switch {
		case t.Skipped:
			summary.Skipped++
		case t.Pass:
			summary.Passed++
		default:
			summary.Failed++
			summary.Failures = append(summary.Failures, t.Name)
		}
	}
	if problems.HasErrors() {
		summary.Failed++
		summary.Failures = append(summary.Failures, "the tests could not be run: "+problems.Err().Error())
	}
	return summary
}
