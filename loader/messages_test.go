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
		{``, `nowhere`, `6:12: nothing is called "nowhere"; a text is written "nowhere", in quotes; else declare it, or fix the name.`},
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
		{`jq: "."`, `jq: program`, `5:15: nothing is called "program"; a text is written "program", in quotes`},
		{`jq: "."`, `jq: strings.Join(["."], "")`, "5:15: strings is not imported: write import \"strings\" below `package catalog`."},
	} {
		told(t, c, strings.Replace("package catalog\ntools: a: #Tool & {\n\tdescription: \"d\"\n\teffect: \"read\"\n\tbinding: jq: \".\"\n}\n", tt.old, tt.new, 1), []string{tt.want})
	}
}

// TestSyntax: a file that is not CUE is told each mistake once, where it is, with what to write.
func TestSyntax(t *testing.T) {
	t.Parallel()
	const (
		noComma = "a comma or a new line is missing here: write "
		comment = "a comment begins with //, and # begins a definition, as in #Unit: ..."
		quoted  = "a name with - or ., or one that begins with a digit, stands in quotes: write "
		lines   = `a text of several lines stands between """ and """, each on a line of its own`
	)
	c := compiler(t)
	for _, tt := range []struct {
		source string // below the package clause
		want   []string
	}{
		// Colons and commas.
		{"tools git_log: {\n}", []string{"2:7: a : is missing behind tools: write `tools: git_log: {`."}},
		{"tools git_log {\n}", []string{"2:7: a : is missing behind tools: write `tools: git_log: {`."}},
		{"tools {\n}", []string{"2:7: a : is missing behind tools: write `tools: {`."}},
		{"tools: a {\n}", []string{"2:10: a : is missing behind a: write `tools: a: {`."}},
		{"tools: a: #Tool {\n}", []string{"2:17: an & is missing behind #Tool: write `tools: a: #Tool & {`."}},
		{"tools: a: {\n\ttitle \"t\"\n}", []string{"3:8: a : is missing behind title: write `title: \"...\"`."}},
		{"tools: a: {\n\ttitle: \"t\" effect: \"read\"\n}", []string{"3:13: " + noComma + "`title: \"...\", effect: \"...\"`."}},
		{"tools: a: args: {x!: string y?: int}", []string{"2:29: " + noComma + "`tools: a: args: {x!: string, y?: int}`."}},
		{"tools: a: tags: [\"a\" \"b\"]", []string{"2:22: " + noComma + "`tools: a: tags: [\"...\", \"...\"]`."}},
		{"tools: a: {\n\ttitle = \"t\"\n\teffect: \"read\"\n}", []string{"3:2: a field has a : and no =: write title: \"...\"."}},
		{"tools: a: title: \"t\";", []string{"2:21: CUE has no ; between declarations; take it away."}},
		// Comments.
		{"# a comment\ntools: {}", []string{"2:1: " + comment}},
		{"#a comment: here\ntools: a: title: \"t\" # why", []string{"2:1: " + comment, "3:22: " + comment}},
		{"/* a comment */", []string{"2:1: CUE has no /* */; begin each line of a comment with //."}},
		// Forms of YAML.
		{"tools: a: tags:\n  - one\n  - two", []string{`3:3: this is a list of YAML; CUE writes ["one", "two"].`}},
		{"tools: a: title: |\n  text", []string{"2:18: " + lines}},
		{"tools: a: description: Reads the log.", []string{`2:11: a text stands in quotes: write description: "...".`}},
		{"tools: a: {\n\tdescription: Reads the log.\n}", []string{`3:2: a text stands in quotes: write description: "...".`}},
		{"tools: a: {\n\t<<: *base\n}", []string{"3:2: CUE has no <<: and no anchors; give the shared part a name"}},
		{"tools: a: binding: jq: .x", []string{"2:24: a value is expected here, found '.'; a text stands in quotes."}},
		// Forms of TypeScript and Python.
		{"tools: a: args: {\n\tx: string?\n\ty: string!\n\tz: string[]\n\tw: Array<string>\n\tv: string = \"d\"\n\t!u: int\n\tt: required String\n\ts: Optional<int>\n\tr: Record<string, Number>\n}", []string{
			"3:2: the mark stands behind the name: write x?: string.", "4:2: the mark stands behind the name: write y!: string.",
			"5:5: a list is written [...string].", "6:5: a list is written [...string].", "7:2: a default stands before the type, with *: write v: *\"...\" | string.",
			"8:2: the mark stands behind the name: write u!: ...", "9:2: a mark stands behind the name: write t!: string.",
			"10:5: what may be left out has a ? behind its name: write name?: int.", "11:5: a struct with any names is written {[string]: number}.",
		}},
		{"tools: a: #Tool && {\n}", []string{"2:17: && is for conditions; what fits both values is written with one &."}},
		{"tools: a: args: x?: \"a\" || \"b\"", []string{"2:25: || is for conditions; a choice of values is written with one |."}},
		{"tools: a: {\n\t...#Tool\n}", []string{"3:2: a struct takes over another by &: write #Tool & {...}, without the ...."}},
		{"tools: git-log: {}", []string{"2:8: " + quoted + `"git-log": ....`}},
		{"tools: a: args: {user-name!: string, 3d?: int}", []string{"2:18: " + quoted + `"user-name": ....`}},
		// Texts and brackets.
		{"tools: a: title: \"t", []string{"2:18: the text has no closing quote in its line; " + lines}},
		{"tools: a: title: \"\"\"\n\tt\n", []string{`2:18: the """ that opens this text has none that closes it, which stands on a line of its own.`}},
		{"tools: a: title: \"\"\"t\"\"\"", []string{`2:18: behind """ the text begins on the next line; write a text of one line between " and ".`}},
		{"tools: a: title: \"\"\"\n\tt\n\t\t\"\"\"", []string{`2:18: each line of this text must begin with the blanks and tabs that stand before its closing """.`}},
		{"tools: a: args: x?: =~\"^\\d\"", []string{`2:26: a \ in a text begins an escape`}},
		{"tools: a: title: `t`", []string{"2:18: a text stands between \" and \""}},
		{"tools: a: title: \u201ct\u201d", []string{"2:18: these are typographic quotes; write \"."}},
		{"tools:\u00a0a: {}", []string{"2:7: there is a no-break space here (U+00A0)"}},
		{"tools: a: {\n\targs: {\n\t\tx!: string\n\ttitle: \"t\"\n}\ntools: b: {}", []string{"3:8: the { of this line is not closed: a } is missing, probably before line 6."}},
		{"tools: a: {\n\ttags: [\"}\", // ]\n\ttitle: \"t\"\n}", []string{"3:8: the [ of this line is not closed: a ] is missing, probably before line 5."}},
		{"tools: a: {\n\ttitle: \"t\"\n\t}\n\teffect: \"read\"\n}", []string{"6:1: there is one } too many: nothing is open here that it would close; the { of line 2 is already closed in line 4."}},
		{"tools: a: ]", []string{"2:11: there is one ] too many"}},
		{"tools: a: {title: \"\\(1 + \"", []string{"2:26: the text has no closing quote in its line"}},
		// Imports.
		{"import strings", []string{`2:1: an import stands in quotes: write import "strings".`}},
		{"import {MinRunes} from \"strings\"", []string{"2:1: an import names a package alone"}},
		{"tools: {}\nimport \"strings\"", []string{"3:8: imports stand above all declarations, directly below the package clause; move this one there."}},
	} {
		told(t, c, "package catalog\n"+tt.source+"\n", tt.want)
	}
	// Of a file that can't be searched for secrets, no text is quoted.
	for _, line := range []string{`password: "hunter" user: "x"`, `password "hunter"`, `password = "hunter"`, `password: string = "hunter"`, `password: ["hunter" "x"`, `"hunter" {`, `x: {password: "hunter`} {
		_, problems := load(t, c, loader.Tree{FS: tree(t, map[string]string{"catalog/a.cue": "package catalog\n_x: {\n\t" + line + "\n}\n"})})
		if !problems.HasErrors() || strings.Contains(full(problems), "hunter") {
			t.Errorf("%s: %s", line, full(problems))
		}
	}
	told(t, c, "package: catalog\n", []string{"1:1: a package clause is a name alone: write `package catalog`."})
	told(t, c, "package \"catalog\"\n", []string{"1:1: a package clause is a name alone: write `package catalog`."})
	// A byte order mark, the line ends of Windows and tabs are CUE.
	crlf := "\ufeff" + strings.ReplaceAll(argument(``, `string`), "\n", "\r\n")
	told(t, c, crlf, nil)
	told(t, c, strings.Replace(crlf, "effect:", "effect", 1), []string{"5:9: a : is missing behind effect: write `effect: \"...\"`."})
}

// TestBytes: a text in single quotes is bytes, which no field of a declaration takes.
func TestBytes(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	for old, want := range map[string]string{
		`"d"`:    `4:15: description must be a string that is not empty (conflicting values 'd' and =~"\\S" (mismatched types bytes and string)); what stands in ' are bytes: write a text in ".`,
		`"read"`: `5:10: effect must be "read" or "write"; what stands in ' are bytes: write a text in ".`,
		`"."`:    `7:15: jq must be {program: ...} or a string that is not empty; what stands in ' are bytes: write a text in ".`,
	} {
		told(t, c, strings.Replace(argument(``, `string`), old, "'"+strings.Trim(old, `"`)+"'", 1), []string{want})
	}
}

// TestMisplacedFields: the message about a field that another part of the declaration has says where.
func TestMisplacedFields(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	const tool = "package catalog\n\ntools: t: {\n\tdescription: \"d\"\n\teffect: \"read\"\n\targs: x!: string\n"
	const server = "package catalog\n\nservers: s: {\n\t"
	for source, want := range map[string]string{
		tool + "\tbinding: {http: \"https://a.example/\", method: \"POST\"}\n}\n":         `7:40: there is no field "method" here; it belongs in binding.http.`,
		tool + "\tbinding: jq: {program: \".\", timeout: \"1s\"}\n}\n":                    `7:30: there is no field "timeout" here; it belongs beside binding, not in it.`,
		tool + "\tbinding: {jq: \".\", tags: [\"a\"]}\n}\n":                               `7:21: there is no field "tags" here; it belongs beside binding, not in it.`,
		tool + "\tbinding: exec: [\"a\"]\n\tstdin: \"x\"\n}\n":                            `8:2: there is no field "stdin" here; it belongs in binding.exec.`,
		tool + "\tbinding: jq: \".\"\n\turl: \"x\"\n}\n":                                  `8:2: there is no field "url" here; it belongs in binding.http.`,
		tool + "\tbinding: jq: \".\"\n\toutput: \"json\"\n}\n":                            `8:2: there is no field "output" here; it belongs in binding.http or binding.jq.`,
		tool + "\tbinding: jq: \".\"\n\tefect: \"read\"\n}\n":                             `8:2: there is no field "efect" here; did you mean "effect"?`,
		server + "transport: {stdio: command: \"a\", args: [\"x\"]}\n}\n":                 `4:35: there is no field "args" here; it belongs in transport.stdio.`,
		server + "transport: stdio: command: \"a\"\n\turl: \"x\"\n}\n":                    `5:2: there is no field "url" here; it belongs in transport.http.`,
		server + "transport: stdio: {command: \"a\", prefix: \"x\"}\n}\n":                 `4:35: there is no field "prefix" here; it belongs beside transport, not in it.`,
		server + "transport: stdio: command: \"a\"\n\ttools: a: effect: \"read\"\n}\n":    `5:2: there is no field "tools" here; it belongs in discover.`,
		server + "transport: stdio: command: \"a\"\n\tdiscover: {tools: {}, url: 1}\n}\n": `5:24: there is no field "url" here; there are`,
	} {
		told(t, c, source, []string{want})
	}
}
