package diff

import (
	"reflect"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
)

// Another value of a field of a trust entry has the class of what it grants.
func TestFieldsOfTrustEntriesAreClassed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		field, old, new string
		class           Class
		what            string
	}{
		{"headers", `["Accept"]`, `[]`, Narrowing, "entry e no longer lets the headers Accept be sent"},
		{"headers", `[]`, `["Accept"]`, Widening, "entry e now lets the headers Accept be sent"},
		{"headers", `["X-A"]`, ``, Narrowing, "entry e no longer lets the headers X-A be sent"},
		{"headers", ``, `["X-A"]`, Widening, "entry e now lets the headers X-A be sent"},
		{"headers", `["A","B"]`, `["B","A"]`, Neutral, "entry e: headers [A, B] -> [B, A]"},
		{"secrets", `["env:A"]`, `[]`, Narrowing, "entry e no longer gives the value of env:A"},
		{"secrets", `[]`, ``, Neutral, "entry e: secrets [] -> none"},
		{"in_tree", ``, `true`, Widening, "entry e now covers programs and scripts in the catalog's own tree"},
		{"in_tree", `true`, `false`, Narrowing, "entry e no longer covers programs and scripts in the catalog's own tree"},
	} {
		class, what := trustChange(lint.Change{Path: []string{"trust", "entries", "e", test.field}, Old: test.old, New: test.new})
		if class != test.class || what != test.what {
			t.Errorf("%s %s -> %s: got %s, %q, want %s, %q", test.field, test.old, test.new, class, what, test.class, test.what)
		}
	}
}

// Whatever a Trust grants is compared: more of it widens, less narrows.
func TestTermsOfTrustAreCompared(t *testing.T) {
	t.Parallel()
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "x", Path: "/x"}}
	yes := decision.Decision{Allow: true}
	none := granted(yes, trusttest.New(target, trust.Terms{}))
	all := reflect.TypeFor[trust.Terms]()
	for i := range all.NumField() {
		field := all.Field(i).Name
		switch field {
		case "Entry", "Env", "Fixed": // which the decision itself has
			continue
		}
		terms := trust.Terms{}
		switch v := reflect.ValueOf(&terms).Elem().Field(i); v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int:
			v.SetInt(1)
		case reflect.String:
			v.SetString(sixtyFour)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"x"}))
		default:
			t.Fatalf("%s is a %s, which this test does not fill in", field, v.Kind())
		}
		gains, loses := Widening, Narrowing
		if field == "MaxConnections" || field == "SHA256" { // limits
			gains, loses = Narrowing, Widening
		}
		some := granted(yes, trusttest.New(target, terms))
		if class, differ := none.to(some); class != gains || len(differ) != 1 {
			t.Errorf("%s granted: got %s by %v, want %s", field, class, differ, gains)
		}
		if class, differ := some.to(none); class != loses || len(differ) != 1 {
			t.Errorf("%s no longer granted: got %s by %v, want %s", field, class, differ, loses)
		}
	}
}
