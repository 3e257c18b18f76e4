package decision

import (
	"context"
	"io/fs"
	"strings"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// TestSource is a rule of the policy's tests: a test, or a helper of tests.
type TestSource struct {
	// Name is package.name, as `catalogd test` says it.
	Name string
	Pos  problem.Position
	// Text is the rule as it is written, Meaning without comments and formatting.
	Text, Meaning string
}

// TestSources are the rules of the _test.rego files of a policy, in the order of files and lines. A policy
// that can't be read has none.
func TestSources(ctx context.Context, fsys fs.FS) (all []TestSource) {
	s, problems := source.Read(ctx, fsys, capabilities())
	if problems.HasErrors() {
		return nil
	}
	for _, file := range source.SortedKeys(s.Tests) {
		module := s.Tests[file]
		for _, rule := range module.Rules {
			name := strings.TrimPrefix(module.Package.Path.String(), "data.") + "." + source.RuleName(rule)
			all = append(all, TestSource{Name: name, Pos: source.Position(rule.Location), Text: source.RuleText(rule), Meaning: rule.String()})
		}
	}
	return all
}
