package diff

import (
	"testing"

	"github.com/catalogd/catalogd/registry"
)

// A tool that may be repeated without a person may do more than before; another key is read by a person.
func TestChangesOfWhatAWriteToolDeclares(t *testing.T) {
	t.Parallel()
	plain := registry.Tool{Name: "t", Effect: registry.Write, Source: registry.Source{Digest: "a"}}
	with := func(change func(*registry.Tool)) registry.Tool {
		to := plain
		to.Digest = "b"
		change(&to)
		return to
	}
	repeated := with(func(t *registry.Tool) { t.Idempotent = true })
	keyed := with(func(t *registry.Tool) { t.IdempotencyKey = "{id}" })
	noted := with(func(t *registry.Tool) { t.EffectNote = "It only searches." })
	other := with(func(t *registry.Tool) { t.EffectNote = "It only counts." })
	other.Digest = "c"
	for name, tc := range map[string]struct {
		from, to registry.Tool
		field    string
		want     Class
	}{
		"idempotent":       {plain, repeated, "idempotent", Widening},
		"idempotent, back": {repeated, plain, "idempotent", Narrowing},
		"a key":            {plain, keyed, "idempotencyKey", Unclassified},
		"no key":           {keyed, plain, "idempotencyKey", Unclassified},
		"a note":           {plain, noted, "effectNote", Widening},
		"another note":     {noted, other, "effectNote", Unclassified},
		"no note":          {noted, plain, "effectNote", Narrowing},
	} {
		got := changeOf(&tc.from, &tc.to, func(string) bool { return false })
		if got.Class != tc.want || len(got.Fields) != 1 || got.Fields[0].Field != tc.field || got.Breaking {
			t.Errorf("%s: got %+v, want %s of %s", name, got, tc.want, tc.field)
		}
	}
}
