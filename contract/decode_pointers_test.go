package contract

import (
	"strings"
	"testing"
)

// What is reported of many mistakes below a long key is bounded: each pointer is as long as the key.
func TestPointersOfViolationsAreBounded(t *testing.T) {
	key := strings.Repeat("k", 400_000)
	for name, in := range map[string]string{
		"numbers":    `{"` + key + `":[` + strings.TrimSuffix(strings.Repeat("1e999,", 60_000), ",") + `]}`,
		"duplicates": `{"` + key + `":{"":0` + strings.Repeat(`,"":0`, 60_000) + `}}`,
	} {
		_, found := decode([]byte(in))
		size := 0
		for _, v := range found {
			size += len(v.Pointer)
		}
		if len(found) == 0 || size > maxPointers+len(in) {
			t.Errorf("%s: got %d violations with %d bytes of pointers, want some, and at most %d bytes", name, len(found), size, maxPointers+len(in))
		}
	}
}
