package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/problem"
)

type testCmd struct {
	Dir    string  `arg:"" optional:"" help:"The catalog's root; by default the nearest one, from the working directory upwards."`
	Filter string  `name:"run" placeholder:"REGEXP" help:"Only the policy tests whose package.name matches, the decisions whose name does, and the examples of the tools whose name does."`
	Cover  float64 `name:"min-coverage" placeholder:"PERCENT" help:"Fail if the policy's tests cover a smaller share of its lines, without those of catalogd's library in policy/catalogd/."`
	catalogFlags
}

type testOutput struct {
	Policy    decision.TestReport         `json:"policy"`
	Decisions []generation.DecisionResult `json:"decisions"`
	Examples  []generation.ExampleResult  `json:"examples"`
	Passed    int                         `json:"passed"`
	Failed    int                         `json:"failed"`
	Skipped   int                         `json:"skipped"`
}

func (*testCmd) formats() []string { return []string{"junit"} }

// Run tests the policy first: an invalid policy still has tests that show why.
func (c *testCmd) Run(e *env) error {
	cfg, err := c.config(e, c.Dir)
	if err != nil {
		return err
	}
	if c.Cover > 0 && c.Filter != "" {
		return errors.New("--min-coverage is for all tests, and --run picks some")
	}
	if _, err := regexp.Compile(c.Filter); err != nil {
		return fmt.Errorf("--run is not a regular expression: %w", err)
	}
	done := e.progress("testing the policy")
	report, err := catalogd.TestPolicy(e.ctx, cfg, c.Filter)
	done()
	if err != nil {
		return err
	}
	done = e.progress("asking the decisions of the tables")
	decisions, err := catalogd.TestDecisions(e.ctx, cfg, c.Filter)
	done()
	if err != nil {
		return err
	}
	catalog, err := e.opened(c.catalogFlags, c.Dir)
	if err != nil {
		return err
	}
	defer catalog.Close()
	done = e.progress("running the examples")
	examples, err := catalog.TestExamples(e.ctx, c.Filter)
	done()
	if err != nil {
		return err
	}
	out := testOutput{Policy: report, Decisions: decisions, Examples: examples}
	for _, t := range report.Tests {
		out.count(t.Pass, t.Skipped)
	}
	for _, d := range decisions {
		out.count(d.Pass, false)
	}
	for _, x := range examples {
		out.count(x.Pass, x.Skipped != "")
	}
	switch e.format {
	case "json":
		err = e.printJSON(out)
	case "junit":
		err = out.junit(e.stdout)
	default:
		err = out.print(e, c.Filter != "")
	}
	if err == nil && report.Coverage < c.Cover {
		fmt.Fprintf(e.stderr, "catalogd: the policy's tests reach %.1f %% of its lines, and --min-coverage asks for %.1f\n", report.Coverage, c.Cover)
		return errFailed
	}
	if err == nil && out.Failed > 0 {
		return errFailed
	}
	return err
}

func (o *testOutput) count(pass, skipped bool) {
	switch {
	case skipped:
		o.Skipped++
	case pass:
		o.Passed++
	default:
		o.Failed++
	}
}

// print prints what failed and what was skipped, one line each, then the coverage of each module and the
// totals. With picked, only some tests ran, and coverage is omitted.
func (o *testOutput) print(e *env, picked bool) error {
	for _, t := range o.Policy.Tests {
		switch {
		case t.Skipped:
			fmt.Fprintf(e.stdout, "%s: SKIP %s\n", t.Position, t.Name)
		case !t.Pass:
			fmt.Fprintf(e.stdout, "%s: FAIL %s%s\n", t.Position, t.Name, details(t))
		}
	}
	for _, d := range o.Decisions {
		if !d.Pass {
			fmt.Fprintf(e.stdout, "%s: FAIL %s: %s\n", e.seen(d.Pos), d.Name, problem.Printable(d.Message))
		}
	}
	for _, x := range o.Examples {
		switch {
		case x.Skipped != "":
			fmt.Fprintf(e.stdout, "%s: SKIP tools.%s.examples[%d]: %s\n", e.seen(x.Pos), x.Tool, x.Index, x.Skipped)
		case !x.Pass:
			fmt.Fprintf(e.stdout, "%s: FAIL tools.%s.examples[%d]: %s\n", e.seen(x.Pos), x.Tool, x.Index, x.Message)
		}
	}
	if !picked {
		for _, f := range o.Policy.Files {
			if len(f.NotCovered) > 0 && !f.Library {
				fmt.Fprintf(e.stdout, "%s: %.1f %% covered; no test reaches line %s\n", f.File, f.Coverage, lines(f.NotCovered))
			}
		}
		fmt.Fprintf(e.stdout, "policy coverage %.1f %%\n", o.Policy.Coverage)
	}
	_, err := fmt.Fprintf(e.stdout, "%d passed, %d failed, %d skipped\n", o.Passed, o.Failed, o.Skipped)
	return err
}

func details(t decision.TestResult) string {
	var b strings.Builder
	if len(t.Failed) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(t.Failed, ", "))
	}
	if t.Message != "" {
		fmt.Fprintf(&b, ": %s", t.Message)
	}
	if t.Output != "" {
		fmt.Fprintf(&b, "\n%s", strings.TrimRight(t.Output, "\n"))
	}
	return b.String()
}

// lines formats line numbers with consecutive ones joined: 3, 5-7.
func lines(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
