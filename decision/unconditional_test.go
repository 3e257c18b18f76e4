package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/problem"
)

// TestEveryAllowIsLookedAt: each output of each point that allows something is warned of where it always holds. What is
// left out is named here, so that a new point or output is not left out by accident.
func TestEveryAllowIsLookedAt(t *testing.T) {
	t.Parallel()
	leftOut := []string{"result.allow", "adopt.allow"} // unconditional_allow.go says why
	file := func(spec pointSpec) string { return fmt.Sprintf("policy/%s.rego", spec.point) }
	module := func(spec pointSpec, rule string) *fstest.MapFile {
		text := fmt.Sprintf("package catalogd.%s\n\ndefault allow := false\n\n%s\n", spec.point, rule)
		return &fstest.MapFile{Data: []byte(text)}
	}
	looked := 0
	for _, spec := range points {
		for _, output := range spec.allOutputs() {
			if !strings.HasPrefix(output, "allow") {
				continue
			}
			looked++
			name := fmt.Sprintf("%s.%s", spec.point, output)
			policy := fstest.MapFS{}
			for _, s := range points {
				policy[file(s)] = module(s, "")
			}
			policy[file(spec)] = module(spec, output+" := true")
			_, problems := Load(t.Context(), policy, Config{})
			warned := slices.ContainsFunc(problems, func(p problem.Problem) bool {
				return p.Code == problem.UnconditionalAllow && p.File == file(spec) && p.Line == 5
			})
			if warned == slices.Contains(leftOut, name) {
				t.Errorf("%s: warned is %v: %v", name, warned, problems)
			}
		}
	}
	if looked <= len(points) {
		t.Errorf("only %d outputs allow", looked)
	}
}
