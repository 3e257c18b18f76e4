package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// TestNarrowingIsItsFragment: in JSON a narrowing is the fragment as it was written, and nothing but an object is one.
func TestNarrowingIsItsFragment(t *testing.T) {
	t.Parallel()
	type branch struct {
		Args *contract.Narrowing `json:"args,omitempty"`
	}
	const text = `{"args":{"properties":{"tenant":{"const":"acme"},"limit":{"maximum":50}}}}`
	var b branch
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	copied := branch{b.Args.Clone()}
	b.Args.Schema[0] = '['
	got, err := json.Marshal(copied)
	if err != nil || string(got) != text {
		t.Errorf("got %s, %v, want %s", got, err, text)
	}
	for _, bad := range []string{`{"args":[]}`, `{"args":"x"}`, `{"args":true}`} {
		if err := json.Unmarshal([]byte(bad), &branch{}); err == nil {
			t.Errorf("%s: got no error, want one", bad)
		}
	}
}
