package derive_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// losing are constructs that JSON Schema can say in part: the properties that are left, and the losses with their
// positions. A field that CUE fills in is marked with =.
var losing = map[string]struct {
	definitions, args, properties string
	losses                        []string
}{
	"A34/cross-field": {"", "start!: int\nend!: int & >start", `"start":{"type":"integer"},"end":{"type":"integer"}`, []string{"7:12 cross_field end: end > start"}},
}

// dumped is what a table of losses is compared with.
func dumped(losses []contract.Loss) (out []string) {
	for _, l := range losses {
		out = append(out, fmt.Sprintf("%d:%d %s %s: %s", l.Line, l.Col, l.Kind, l.Path, l.What))
	}
	return out
}

func TestLosses(t *testing.T) {
	t.Parallel()
	losses(t, false)
}

func losses(t *testing.T, rows bool) {
	for name, tc := range losing {
		if isRow(name) != rows {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, tc.definitions, tc.args, contract.Closed)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			var got struct {
				Properties json.RawMessage `json:"properties"`
			}
			if err := json.Unmarshal(spec.Schema, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("{"+tc.properties+"}", string(got.Properties)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.losses, dumped(spec.Losses)); diff != "" {
				t.Error(diff)
			}
			if spec.Remainder == nil || spec.Remainder.Path != "tools.x.args" {
				t.Errorf("remainder %v", spec.Remainder)
			}
			if _, err := contract.New(spec, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
