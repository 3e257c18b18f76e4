package binding_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/binding"
	"github.com/catalogd/catalogd/registry"
)

// FuzzOption: no value makes an option where the author wrote none. An element that comes to begin with a dash did so in
// the template, or stands behind an element -- of the template.
func FuzzOption(f *testing.F) {
	f.Add("{x}", "{y}", "-rf", "--help")
	f.Add("--", "{x}", "-rf", "")
	f.Add("--{x}", "{y}{x}", "-", "-")
	f.Add("{x}{y}", "-{x}", "", "-o")
	f.Add("{{x}}", "a{x}", "--", "-")
	f.Fuzz(func(t *testing.T, first, second, x, y string) {
		raw, err := json.Marshal(map[string]string{"x": x, "y": y})
		if err != nil {
			t.Fatal(err)
		}
		tool := command(t, args(t, "x", "y"), "args", first, second)
		tool.Binding.Exec.Joined = true
		c, problems := binding.Compile(tool, "")
		if problems.HasErrors() {
			return
		}
		plan, err := c.Bind(trust.Trust{}, binding.Deps{}).Plan(checked(t, tool, string(raw)))
		if err != nil {
			if code(err) != registry.InvalidArguments {
				t.Fatal(err)
			}
			return
		}
		for i, text := range []string{first, second} {
			if got := plan.Argv[3+i]; strings.HasPrefix(got, "-") && !strings.HasPrefix(text, "-") && (i == 0 || first != "--") {
				t.Errorf("%q became %q with x=%q y=%q", text, got, x, y)
			}
		}
	})
}
