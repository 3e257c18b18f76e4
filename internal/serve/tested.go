package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/loader"
)

// testsTime is how long a reload waits for the tests of a policy, all of them together: no single test has a limit that a
// busy machine would exceed. A policy whose tests take longer is refused by a policy that asks for them; the answer is not
// cached, so that the next reload runs them again.
const testsTime = 2 * time.Minute

// tested caches what the tests of the last policy said, by the content of its files.
type tested struct {
	policy  string
	summary decision.TestSummary
}

// test runs the tests of the candidate's policy, unless they are known or no policy that is asked about its adoption looks
// at them.
func (d *Daemon) test(ctx context.Context, serving, candidate *Generation, snap *loader.Snapshot) decision.TestSummary {
	if !serving.engine.Reads(decision.Adopt, "tests") && !candidate.engine.Reads(decision.Adopt, "tests") {
		return decision.TestSummary{Failures: []string{}}
	}
	if d.tested.policy == candidate.policy && candidate.policy != "" {
		return d.tested.summary
	}
	ctx, cancel := context.WithTimeout(ctx, testsTime)
	defer cancel()
	report, problems := decision.Test(ctx, snap.FS(), decision.TestConfig{Timeout: testsTime})
	if ctx.Err() != nil {
		return decision.TestSummary{
			Run: true, Failed: 1, Failures: []string{fmt.Sprintf("the tests did not finish within %s", testsTime)},
		}
	}
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
	d.tested = tested{candidate.policy, summary}
	return summary
}
