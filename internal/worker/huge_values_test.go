package worker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/worker"
	"github.com/catalogd/catalogd/problem"
)

// TestBadInputHuge: CUE refuses values that would take gigabytes (row A12 of docs/robustness.md), or the
// child's limits stop their evaluation.
func TestBadInputHuge(t *testing.T) {
	t.Parallel()
	for name, expression := range map[string]string{
		"list.Repeat":             `len(list.Repeat([1], 100000000))`,
		"list.Repeat of lists":    `len(list.Repeat(list.Repeat([1], 10000), 10000))`,
		"strings.Repeat":          `len(strings.Repeat("a", 1000000000))`,
		"strings.Repeat, doubled": `len(strings.Repeat(strings.Repeat("a", 100000), 100000))`,
		"shift":                   `len("\(math.Pow(10, 100000000))")`,
	} {
		t.Run("A12/"+name, func(t *testing.T) { // not in parallel: each takes all memory that it is allowed
			var imports []string
			for _, pkg := range []string{"list", "strings", "math"} {
				if strings.Contains(expression, pkg+".") {
					imports = append(imports, `"`+pkg+`"`)
				}
			}
			var log bytes.Buffer
			c := compiler(t, worker.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Timeout: 5 * time.Second, Memory: 256 << 20})
			_, problems := compile(t, c, with(good(), "catalog/b/bomb.cue",
				"package catalog\n\nimport ("+strings.Join(imports, ";")+")\n\n_n: "+expression+"\n"+tool("bomb", `\(_n)`)))
			if !problems.HasErrors() || !strings.HasPrefix(problems[0].File, "catalog/b") {
				t.Fatalf("problems %v", problems)
			}
			for _, p := range problems {
				if p.Code == problem.LoadFailed {
					t.Errorf("%s\n%s", p, &log)
				}
			}
			if _, problems := compile(t, c, good()); len(problems) > 0 {
				t.Errorf("after it: %v", problems)
			}
		})
	}
}

// TestThreat runs the tests of threat T16 (docs/robustness.md), besides TestBadInput.
func TestThreat(t *testing.T) {
	t.Parallel()
	t.Run("T16/no files, no network, no programs", confined)
	t.Run("T16/memory", outOfMemory)
	t.Run("T16/the file is named", namesTheNewFile)
}
