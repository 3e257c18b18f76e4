package compat_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/compat"
)

// An empty pattern is a keyword like any other, also in an alternative that the old schema compares only by its types.
func TestCompareEmptyPattern(t *testing.T) {
	now := object(`"a":{"anyOf":[{"type":"string","pattern":""},{"type":"null"}]}`)
	for _, old := range []string{object(`"a":{"type":["string","null"],"pattern":"^a"}`), object(`"a":{"type":["string","null"]}`)} {
		for _, upstream := range []bool{false, true} {
			s := spec(now)
			s.Upstream = upstream
			if c := compat.Compare(spec(old), s); c.Verdict == "" || c.Verdict == compat.Narrowed {
				t.Errorf("%s to %s, upstream %t: got %q, want a verdict without a loss", old, now, upstream, c.Verdict)
			}
		}
	}
}

// The same schema refuses what it accepted once its defaults are no longer filled in.
func TestCompareNoFill(t *testing.T) {
	filled := spec(object(`"a":{"type":"string","default":"x"}`, `"required":["a"]`))
	bare := filled
	bare.NoFill = true
	if c := compat.Compare(filled, bare); !c.Breaking() {
		t.Errorf("filled in, then not: got %s, want a breaking verdict", c.Verdict)
	}
	if c := compat.Compare(bare, bare); c.Verdict != compat.Identical {
		t.Errorf("the same schema: got %s, want %s", c.Verdict, compat.Identical)
	}
}

// A pattern that takes too long to match proves nothing: here it would let "zoo", which is refused now, seem refused before.
func TestCompareSlowPatterns(t *testing.T) {
	slow := strings.Repeat("a", 40) + "!"
	server := func(s string) contract.Spec { return contract.Spec{Schema: []byte(s), Upstream: true, NoFill: true} }
	old := `{"type":"object","properties":{"` + slow + `":true,"zoo":true},"patternProperties":{"^(?=a)(a+)+$":true,"^(?=f)foo$":false}}`
	now := `{"type":"object","properties":{"zoo":false},"patternProperties":{"^(?=a)(a+)+$":true}}`
	if c := compat.Compare(server(old), server(now)); !c.Breaking() {
		t.Errorf("got %s, want a breaking verdict", c.Verdict)
	}
}
