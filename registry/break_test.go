package registry_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// TestMadeUpNameIsNotRepeatedWhole: a client's message may hold megabytes, and what is answered and logged may not.
func TestMadeUpNameIsNotRepeatedWhole(t *testing.T) {
	t.Parallel()
	view := registry.NewView(open(t, tool("known")), registry.Branch{Name: "b"}, everything)
	for _, name := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", 1<<20), strings.Repeat("\xff", 1<<20)} {
		_, err := view.Lookup(name)
		if err == nil || len(err.Msg) > 1024 {
			t.Errorf("%.10q...: the answer is %d bytes", name, len(err.Msg))
		}
		if shown := registry.Shown(name); len(shown) > 200 {
			t.Errorf("%.10q... is shown as %d bytes", name, len(shown))
		}
	}
	longest := strings.Repeat("x", 63)
	if registry.Shown(longest) != longest {
		t.Error("a name that can be declared is cut")
	}
}
