package derive_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/contract"
)

// A secret in a shared definition is one at each place, also where it is joined with something.
func TestSharedDefinitionsKeepWhatDiffers(t *testing.T) {
	t.Parallel()
	spec, _, problems := args(t, `#Login: {user!: string, password!: string @secret(), realm: *"main" | string, tenant?: string}`,
		"a!: #Login\nb!: #Login\nc!: #Login & {tenant?: !=\"x\"}", contract.Closed)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	const login = `{"user": "u", "password": ["hunter2hunter2"]}`
	_, found, err := c.Check(t.Context(), []byte(`{"a": `+login+`, "b": `+login+`, "c": `+login+`}`))
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, v := range found {
		at = append(at, v.Pointer+": "+v.Got)
	}
	want := []string{"/a/password: an array of 1 item", "/b/password: an array of 1 item", "/c/password: an array of 1 item"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("%s\n%s", diff, spec.Schema)
	}
}
