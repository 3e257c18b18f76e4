package decision

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// TestConfig says which tests run, and for how long.
type TestConfig struct {
	// Run is a regular expression over package.name; empty runs all.
	Run string
	// Timeout bounds one test; 0 means 30 s, which is for a busy machine.
	Timeout time.Duration
}

// TestReport is the report of a policy's tests.
type TestReport struct {
	// Tests are sorted by position.
	Tests []TestResult `json:"tests"`
	// Files has the coverage of every module that is served, sorted by name.
	Files []FileCoverage `json:"files"`
	// Coverage is the share of lines with code that a test evaluated, in percent, without those of the library.
	Coverage float64 `json:"coverage"`
}

// TestResult is one test: a rule whose name begins with test_.
type TestResult struct {
	// Name is package.rule, as stock `opa test` has it; a case of a test follows in brackets.
	Name string `json:"name"`
	problem.Position
	Pass bool `json:"pass"`
	// Skipped tests begin with todo_test_; they count neither way.
	Skipped bool `json:"skipped,omitempty"`
	// Failed names the cases that failed, for a test of several.
	Failed []string `json:"failed,omitempty"`
	// Cases is the number of cases; 0 for a test without.
	Cases int `json:"cases,omitempty"`
	// Message is the error that ended the test, Output what it printed.
	Message  string        `json:"message,omitempty"`
	Output   string        `json:"output,omitempty"`
	Duration time.Duration `json:"duration"`
}

// FileCoverage is the coverage of one module.
type FileCoverage struct {
	File     string  `json:"file"`
	Coverage float64 `json:"coverage"`
	// NotCovered are its lines with code that no test evaluated.
	NotCovered []int `json:"not_covered,omitempty"`
	// Library says that the module is catalogd's own, whose tests are too.
	Library bool `json:"library,omitempty"`
}

// Passed reports whether no test failed.
func (r TestReport) Passed() bool {
	return !slices.ContainsFunc(r.Tests, func(t TestResult) bool { return !t.Pass && !t.Skipped })
}

// Test runs the policy's _test.rego files as stock `opa test policy/` does, with the engine's own built-ins
// and strict errors, and measures which lines of the served modules they evaluate. It answers problems
// instead where the policy would not load.
func Test(ctx context.Context, fsys fs.FS, cfg TestConfig) (report TestReport, problems problem.List) {
	defer func() {
		if recover() != nil {
			report = TestReport{}
			problems.Errorf(problem.RegoCompile, problem.Position{File: source.Root}, "", "%s", compilerPanicked)
		}
	}()
	s, problems := source.Read(ctx, fsys, capabilities())
	if !problems.HasErrors() {
		problems = append(problems, check(ctx, s)...)
	}
	if problems.HasErrors() {
		return TestReport{}, problems.Sorted()
	}
	store := storeOf(s.Data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		problems.Errorf(problem.PolicyData, problem.Position{File: source.Root}, "", "reading the policy's data: %v", err)
		return TestReport{}, problems.Sorted()
	}
	defer store.Abort(ctx, txn)

	run := testRun{Source: s, store: store, txn: txn, timeout: cfg.Timeout}
	if run.timeout <= 0 {
		run.timeout = 30 * time.Second
	}
	coverage := cover.New()
	results, err := run.results(ctx, cfg.Run, coverage)
	if err != nil {
		return TestReport{}, append(problems, source.Problems(err, source.Root, "")...).Sorted()
	}
	report.Tests = results
	report.Files, report.Coverage = measure(coverage, s.Modules)
	return report, problems.Sorted()
}

// testRun is what the runs over one source share.
type testRun struct {
	*source.Source
	store   storage.Store
	txn     storage.Transaction
	timeout time.Duration
}

// run runs the tests that match the filter, measuring coverage, or tracing where coverage is nil.
func (t testRun) run(ctx context.Context, filter string, coverage *cover.Cover) ([]*tester.Result, error) {
	everything := maps.Clone(t.Modules)
	maps.Copy(everything, t.Tests)
	runner := tester.NewRunner().
		SetCompiler(newCompiler().WithEnablePrintStatements(true)).
		SetStore(t.store).
		SetModules(everything).
		SetCoverageRuns(nil).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(true).
		SetTimeout(t.timeout).
		Filter(filter)
	if coverage != nil {
		runner.SetCoverageQueryTracer(coverage)
	} else {
		runner.EnableTracing(true)
	}
	found, err := runner.RunTests(ctx, t.txn)
	if err != nil {
		return nil, fmt.Errorf("running the policy's tests: %w", err)
	}
	var results []*tester.Result
	for r := range found {
		if r != nil {
			results = append(results, r)
		}
	}
	return results, ctx.Err()
}

// results runs the tests, and those that fail without an error once more, traced, to say which condition was
// not true.
func (t testRun) results(ctx context.Context, filter string, coverage *cover.Cover) ([]TestResult, error) {
	found, err := t.run(ctx, filter, coverage)
	if err != nil {
		return nil, err
	}
	var results []TestResult
	for _, r := range found {
		result := testResult(r)
		if r.Fail && result.Cases == 0 {
			traced, err := t.run(ctx, "^"+regexp.QuoteMeta(result.Name)+"$", nil)
			if err != nil {
				return nil, err
			}
			result.Message = failedCondition(traced)
		}
		results = append(results, result)
	}
	slices.SortFunc(results, func(a, b TestResult) int { return source.ComparePositions(a.Position, b.Position) })
	return results, nil
}

// failedCondition is the last condition of the test itself that was not true.
func failedCondition(traced []*tester.Result) string {
	message := "the test is not true"
	for _, r := range traced {
		for _, event := range r.Trace {
			if event.Op == topdown.FailOp && event.Location != nil && event.Location.File == r.Location.File && event.Location.Row >= r.Location.Row {
				text, _, _ := strings.Cut(string(event.Location.Text), "\n")
				message = fmt.Sprintf("not true: %s (%s)", text, source.Position(event.Location))
			}
		}
	}
	return message
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{
		Name: r.Package + "." + r.Name, Position: source.Position(r.Location),
		Pass: r.Pass(), Skipped: r.Skip, Duration: r.Duration, Output: string(bytes.TrimSpace(r.Output)),
	}
	for name, sub := range r.SubResults.Iter {
		if len(sub.SubResults) > 0 {
			continue // its cases speak for it
		}
		t.Cases++
		if sub.Fail {
			t.Failed = append(t.Failed, strings.Join(name, "/"))
		}
	}
	if r.Error != nil {
		t.Message = r.Error.Error()
	}
	return t
}

// library is the folder of catalogd's own modules, whose tests are catalogd's.
const library = "policy/catalogd/"

// measure reads the coverage of the served modules.
func measure(coverage *cover.Cover, modules map[string]*ast.Module) ([]FileCoverage, float64) {
	report := coverage.Report(modules)
	var files []FileCoverage
	var covered, lines int
	for _, file := range source.SortedKeys(modules) {
		fr := report.Files[file]
		if fr == nil {
			continue
		}
		f := FileCoverage{File: file, Coverage: fr.Coverage}
		for _, missed := range fr.NotCovered {
			for line := missed.Start.Row; line <= missed.End.Row; line++ {
				f.NotCovered = append(f.NotCovered, line)
			}
		}
		slices.Sort(f.NotCovered)
		f.NotCovered = slices.Compact(f.NotCovered)
		if f.Library = strings.HasPrefix(file, library); !f.Library {
			covered += fr.CoveredLines
			lines += fr.CoveredLines + fr.NotCoveredLines
		}
		files = append(files, f)
	}
	if lines == 0 {
		return files, 0
	}
	return files, 100 * float64(covered) / float64(lines)
}
