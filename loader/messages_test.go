package loader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/loader"
)

// told compares what a file is told with want: line:col: the message, or its beginning. A want that ends in a
// full stop is the whole message without it.
func told(t *testing.T, c *loader.Compiler, source string, want []string) {
	t.Helper()
	_, problems := load(t, c, loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": source})})
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Col, p.Message))
	}
	fits := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		whole, ends := strings.CutSuffix(want[i], ".")
		fits = fits && strings.HasPrefix(got[i], want[i]) || ends && got[i] == whole
	}
	if !fits {
		t.Errorf("%s\ngot\n%s\nwant\n%s", source, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// argument is a tool whose argument x is declared at column 6 of line 6; imports are on line 2.
func argument(imports, x string) string {
	return "package catalog\n" + imports + "\ntools: a: #Tool & {\n\tdescription: \"d\"\n\teffect: \"read\"\n\targs: x?: " + x + "\n\tbinding: jq: \".\"\n}\n"
}

// TestNames: a name that refers to nothing is told what was meant: a type, an import, a function, a definition.
func TestNames(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	for _, tt := range []struct{ imports, x, want string }{
		{``, `strng`, `6:12: nothing is called "strng"; did you mean string?`},
		{``, `String`, `6:12: nothing is called "String"; did you mean string?`},
		{``, `strings`, `6:12: nothing is called "strings"; did you mean string?`},
		{``, `integer`, `6:12: nothing is called "integer"; CUE writes int.`},
		{``, `Boolean`, `6:12: nothing is called "Boolean"; CUE writes bool.`},
		{``, `{...} & object`, `6:20: nothing is called "object"; CUE writes {...}.`},
		{``, `[...str]`, `6:16: nothing is called "str"; CUE writes string.`},
		{``, `None | string`, `6:12: nothing is called "None"; CUE writes null.`},
		{``, `True`, `6:12: nothing is called "True"; did you mean true?`},
		{``, `date`, "6:12: nothing is called \"date\"; CUE writes time.Format(\"2006-01-02\"), and needs its package: write import \"time\" below `package catalog`."},
		{`import "time"`, `date | time.Time`, `6:12: nothing is called "date"; CUE writes time.Format("2006-01-02").`},
		{``, `tool`, `6:12: nothing is called "tool"; did you mean #Tool?`},
		{``, `#duration`, `6:12: nothing is called "#duration"; did you mean #Duration?`},
		{`_Unit: "a" | "b"`, `unit`, `6:12: nothing is called "unit"; did you mean _Unit?`},
		{``, `{let size = 1, y: siz + size}`, `6:30: nothing is called "siz"; did you mean size?`},
		{``, `{let size = 1, y: siz}`, `6:30: nothing is called "siz"; did you mean size?`},
		{``, `[for item in [1] {itm + item}]`, `6:30: nothing is called "itm"; did you mean item?`},
		{``, `nowhere`, `6:12: nothing is called "nowhere"; declare it, or fix the name.`},
		// Functions.
		{``, `strings.MinRunes(1)`, "6:12: strings is not imported: write import \"strings\" below `package catalog`."},
		{`import "list"`, `strings.MinRunes(1) | list.MinItems(1)`, `6:12: strings is not imported: write import "strings" beside the imports of line 2.`},
		{``, `json.Validate(int)`, "6:12: json is not imported: write import \"encoding/json\" below `package catalog`."},
		{``, `strings.MinRune(1)`, "6:12: strings is not imported: write import \"strings\" below `package catalog`; it has no MinRune; did you mean strings.MinRunes?"},
		{``, `sting.MinRunes(1)`, "6:12: nothing is called \"sting\"; did you mean strings.MinRunes? write import \"strings\" below `package catalog`."},
		{`import "strings"`, `sting.MinRunes(1) | strings.MinRunes(3)`, `6:12: nothing is called "sting"; did you mean strings.MinRunes?`},
		{``, `string.minRunes(1)`, "6:12: string is a type; did you mean strings.MinRunes? write import \"strings\" below `package catalog`."},
		{``, `string.length`, `6:12: string is a type, and has nothing inside`},
		{``, `minRunes(1)`, "6:12: nothing is called \"minRunes\"; did you mean strings.MinRunes? write import \"strings\" below `package catalog`."},
		{`import "strings"`, `string & strings.MinRune(1)`, `6:21: there is no strings.MinRune; did you mean strings.MinRunes?`},
		{`import "strings"`, `strings.Length(1)`, `6:12: there is no strings.Length; to constrain an argument, strings has MinRunes, MaxRunes.`},
		{`import l "list"`, `[...string] & l.minItems(1)`, `6:26: there is no l.minItems; did you mean list.MinItems?`},
		{`import "time"`, `time.time`, `6:12: there is no time.time; did you mean time.Time?`},
		{`import "net"`, `net.IPv5`, `6:12: there is no net.IPv5; did you mean net.IPv4?`},
		{`import "html"`, `html.Nothing(1)`, `6:12: there is no html.Nothing; https://pkg.go.dev/cuelang.org/go/pkg/html lists what it has.`},
		// Imports.
		{`import "string"`, `string`, `2:8: CUE has no standard package "string"; did you mean "strings"?`},
		{`import "json"`, `json.Validate(int)`, `2:8: CUE has no standard package "json"; did you mean "encoding/json"?`},
		{`import "nosuch"`, `nosuch.x`, `2:8: CUE has no standard package "nosuch"; the packages of this module begin with its name.`},
		{`import "strings"`, `string`, `2:8: nothing uses "strings"; remove the import.`},
	} {
		told(t, c, argument(tt.imports, tt.x), []string{tt.want})
	}
	for _, tt := range []struct{ old, new, want string }{
		{`tools:`, `tool:`, `2:1: there is no field "tool" here; did you mean "tools"?`},
		{`tools:`, `things:`, `2:1: there is no field "things" here; there are branches, servers, tools; call a value of your own _things or #things.`},
		{`#Tool`, `#tool`, `2:11: nothing is called "#tool"; did you mean #Tool?`},
		{`jq: "."`, `jq: program`, `5:15: nothing is called "program"; declare it, or fix the name.`},
		{`jq: "."`, `jq: strings.Join(["."], "")`, "5:15: strings is not imported: write import \"strings\" below `package catalog`."},
	} {
		told(t, c, strings.Replace("package catalog\ntools: a: #Tool & {\n\tdescription: \"d\"\n\teffect: \"read\"\n\tbinding: jq: \".\"\n}\n", tt.old, tt.new, 1), []string{tt.want})
	}
}
