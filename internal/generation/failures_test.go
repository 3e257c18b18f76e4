package generation_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/problem"
)

// What the policy fails to answer is a warning in the log and in the status, once a generation, with the
// first example and a count that goes on.
func TestPolicyFailuresAreSaid(t *testing.T) {
	t.Parallel()
	h := servetest.NewHouse(t)
	h.Set("policy/broken.rego", "package catalogd.list\n\ndeny contains json.unmarshal(input.tool.name) if input.principal.name == \"bob\"\n")
	h.Set("policy/late.rego", "package catalogd.call\n\ntimeout := 5 if input.arguments.text == \"late\"\n")
	h.Set("policy/out.rego", "package catalogd.result\n\nredact contains \"x\" if input.arguments.text == \"out\"\n")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	warnings := func() (said []string) {
		for _, w := range h.Status().Warnings {
			if w.Code == problem.PolicyFailed {
				said = append(said, w.String())
			}
		}
		return said
	}
	if said := warnings(); said != nil {
		t.Fatalf("before anything failed: %q", said)
	}
	h.Sees(t, "default", servetest.Person("bob"))
	for range 3 {
		h.Call(t, "default", "upper", `{"text":"late"}`)
	}
	h.Call(t, "default", "upper", `{"text":"out"}`)
	h.Call(t, "default", "upper", `{"text":"fine"}`)
	said := warnings()
	for _, want := range []string{
		`data.catalogd.call: the policy failed to answer 3 times, which denies; for example about tool "upper" in branch "default": bad_decision_type: timeout is `,
		`policy/broken.rego:3:15: policy_failed: warning: data.catalogd.list: the policy failed to answer 5 times, which denies; for example about tool "clock"`, `data.catalogd.result: the policy failed to answer once, which denies; for example about tool "upper"`,
	} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(said, "\n"))
		}
	}
	if n := strings.Count(h.Log.String(), "the policy failed to answer"); n != 3 || len(said) != 3 {
		t.Errorf("%d lines in the log, %d warnings\n%s", n, len(said), h.Log)
	}
	h.Set("policy/late.rego", "package catalogd.call\n\ntimeout := \"5s\" if input.arguments.text == \"late\"\n")
	h.MustReload(t, "adopted")
	if said := warnings(); said != nil {
		t.Errorf("of the next generation: %q", said)
	}
}
