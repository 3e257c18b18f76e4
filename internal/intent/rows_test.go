package intent

import "testing"

// TestBadInput finds the tests of the store by the rows of the list of bad inputs (docs/robustness.md).
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"F1/killed in each state", deadOwner},
		{"F2/its key afterwards", keyOfUnknown},
		{"F6/a key elsewhere", keyNamesOneIntent},
		{"F7/keys that are none", keysThatAreRefused},
		{"F10/a clock that jumps", clockThatJumps},
		{"F11/a result that is too large", largeResult},
	} {
		t.Run(row.name, row.test)
	}
}

// keyOfUnknown: the key of a call whose process has died under it goes on naming that intent, of which nobody knows what came.
func keyOfUnknown(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir)
	in := anIntent(`{"n":1}`)
	in.Key = "k"
	staged := inState(t, s, Attempted, in)
	must(t, s.Close())
	s = open(t, dir)
	_, err := s.Recover(t.Context())
	must(t, err)
	again := anIntent(`{"n":1}`)
	again.Key = "k"
	got, made, err := s.Stage(t.Context(), again)
	if err != nil || made || got.ID != staged.ID || got.State != Unknown {
		t.Errorf("the same key again: %+v, made %v, %v", got, made, err)
	}
}
