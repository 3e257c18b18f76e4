package derive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// TestDisclosed: an argument in which CUE fills something in from a secret is a secret, too; others are not.
func TestDisclosed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, definitions, args, secret string }{
		{"interpolated", "", "pw!: string @secret()\nfull: \"Basic \\(pw)\"", "full pw"},
		{"transformed", "", "pw!: string @secret()\nup: strings.ToUpper(pw)", "pw up"},
		{"in part", "", "pw!: string @secret()\nn: len(pw)", "n pw"},
		{"the same", "", "pw!: string @secret()\ncopy: pw", "copy pw"},
		{"a default", "", "pw!: string @secret()\nagain: *pw | string", "again pw"},
		{"below", "", "pw!: string @secret()\nauth: {header: \"Basic \\(pw)\"}", "auth pw"},
		{"of one below", "", "card!: {no!: string @secret(), kind!: string}\nref: \"x-\\(card.no)\"\nkind: \"k-\\(card.kind)\"", "kind ref"},
		{"below a secret", "", "card!: {no!: string} @secret()\nref: \"x-\\(card.no)\"", "card ref"},
		{"in steps", "", "pw!: string @secret()\na: \"1\\(pw)\"\nb: \"2\\(a)\"", "a b pw"},
		{"through let", "", "pw!: string @secret()\nlet L = \"1\\(pw)\"\nb: \"2\\(L)\"", "b pw"},
		{"through a hidden field", "", "pw!: string @secret()\n_h: \"1\\(pw)\"\nb: \"2\\(_h)\"", "b pw"},
		{"through an alias", "", "X=pw!: string @secret()\nb: \"2\\(X)\"", "b pw"},
		{"in a guard", "", "pw!: string @secret()\nk!: \"a\" | \"b\"\nif k == \"a\" {b: \"2\\(pw)\"}", "b pw"},
		{"in a guard that is lost", "", "pw!: string @secret()\nn!: int\nm!: int\nif n > m {b: \"2\\(pw)\"}", "b pw"},
		{"in a definition", "#A: {pw!: string @secret(), header: \"Basic \\(pw)\"}", "a!: #A\nb!: #A\nn?: int", "a b"},
		{"in one that refers to itself", "#A: {pw!: string @secret(), header: \"Basic \\(pw)\", next?: #A}", "a!: #A\nb!: #A\nn?: int", "a b"},
		{"in a map, where CUE fills in nothing", "", "pw!: string @secret()\nm?: [string]: *pw | string", "pw"},
		{"below a map", "", "pw!: string @secret()\nm?: [string]: {a: *pw | string}", "m pw"},
		{"in a list", "", "pw!: string @secret()\nl: [pw, \"x\"]", "l pw"},
		{"by the definition", "#S: string @secret()", "pw!: #S\nb: \"2\\(pw)\"", "b pw"},
		{"bounded by one", "", "pw!: string @secret()\nq!: string & !=pw\nr: >pw", "pw"},
		{"of others", "", "pw!: string @secret()\na!: string\nb: \"2\\(a)\"", "pw"},
		{"by one of two declarations", "#S: string @secret()\n#S: !=\"\"", "pw!: #S\nn?: int", "pw"},
		{"by the definition of a package with more than fields", "#S: string @secret()\nfor k in [\"a\"] {(\"d\" + k): k}", "pw!: #S\nn?: int", "pw"},
		{"below a definition that can't be followed", "#S: {p!: string @secret()}\nif true {_u: 1}", "pw!: #S\nn?: int", "pw"},
		{"by a joined definition", "#S: string @secret()", "pw!: #S & strings.MinRunes(3)\nn?: int", "pw"},
		{"by an embedded definition", "#S: {string, !=\"a\"} @secret()", "pw!: {#S}\nn?: int", "pw"},
		{"by an alternative's definition", "#S: string @secret()", "pw!: #S | int\nn?: int", "pw"},
		{"by a lookup", "#S: {p: string @secret()}", "pw!: #S[\"p\"]\nn?: int", "pw"},
		{"by a selection", "#S: {p: string @secret(), ...}", "pw!: #S.p\nn?: int", "pw"},
		{"in a comprehension", "", "n?: int\nfor k in [\"pw\"] {(k)!: string @secret()}", "n"},
		{"beside a comprehension at the top of the package", "#S: string @secret()\n#N: int\n_t: a: 1\nfor k, v in _t {_u: (k): v}", "pw!: #S\nn?: #N", "pw"},
		{"in an exact guard", "", "k!: \"a\" | \"b\"\nn?: int\nif k == \"a\" {pw!: {a!: string @secret()}}", ""},
		{"by a let", "", "let S = {p: string @secret()}\npw!: S\nn?: int", "pw"},
		{"in several declarations", "", "pw!: string\npw!: !=\"\" @secret()\nn?: int", "pw"},
		{"in matchN", "", "pw!: matchN(1, [{a!: string @secret()}, {b!: int}])\nn?: int", "pw"},
		{"transformed through hidden", "", "pw!: string @secret()\n_h: strings.ToUpper(pw)\nd: _h", "d pw"},
		{"names alike", "", "pw!: string @secret()\na: \"\\(pw)\"\nab?: int", "a pw"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spec, _, problems := args(t, tc.definitions, tc.args, contract.Closed)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			var secret []string
			for _, f := range spec.Fields {
				if f.Secret {
					secret = append(secret, f.Name)
				}
			}
			slices.Sort(secret)
			if got := strings.Join(secret, " "); got != tc.secret {
				t.Errorf("got %q, want %q", got, tc.secret)
			}
		})
	}
}
