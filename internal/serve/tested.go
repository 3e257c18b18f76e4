package serve

import (
	"context"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/loader"
)

// How long the tests of a policy may take before a reload stops waiting for them, one test (far above what a test takes on a
// busy machine) and all of them. A policy whose tests take longer is not adopted by a policy that asks for them.
const (
	testTime  = 30 * time.Second
	testsTime = time.Minute
)

// tested is what the tests of the last policy said, by the content of its files.
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
	summary := decision.TestSummary{Run: true, Failures: []string{}}
	report, problems := decision.Test(ctx, snap.FS(), decision.TestConfig{Timeout: testTime})
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
	if ctx.Err() == nil {
		d.tested = tested{candidate.policy, summary}
	}
	return summary
}
