package lint_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/problem"
)

// taking is a catalog whose tools take arguments.
func taking() decision.Catalog {
	c := small()
	tool := func(name, effect string, tags []string, schema string) {
		c.Tools = append(c.Tools, decision.Tool{Name: name, Effect: effect, Tags: tags, Binding: "jq"})
		c.Arguments[name] = lint.Arguments{Schema: json.RawMessage(schema)}
	}
	c.Tools = nil
	c.Arguments = map[string]lint.Arguments{}
	tool("slugify", "read", []string{"text"}, `{"type": "object", "additionalProperties": false, "required": ["title"], "properties": {
		"title": {"type": "string"}, "count": {"type": "integer"}, "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
		"kind": {"enum": ["a", "b"]}, "tags": {"type": "array", "items": {"type": "string"}},
		"options": {"type": "object", "additionalProperties": false, "properties": {"lower": {"type": "boolean"}}},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"rows": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
		"either": {"type": ["string", "array"], "items": {"type": "string"}},
		"node": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}}}`)
	c.Arguments["slugify"] = lint.Arguments{Schema: c.Arguments["slugify"].Schema, Computed: []string{"worked_out"}}
	tool("search", "read", []string{"web"}, `{"type": "object", "properties": {"query": {"type": "string"}, "count": {"type": "string"}}}`)
	tool("write", "write", []string{"web"}, `{"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false}`)
	tool("open", "write", []string{"open"}, `{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}`)
	tool("nothing", "write", []string{"none"}, `{"type": "object", "additionalProperties": false}`)
	return c
}

// What a rule says of arguments is held to those of the tools that it can be about; what can't be known is not.
func TestCheckCatalogArguments(t *testing.T) {
	t.Parallel()
	const slugify = "input.tool.name == \"slugify\"\n\t"
	for name, test := range map[string]struct {
		call, lib string
		want      string
	}{
		"a name":                            {call: slugify + `contains(input.arguments.titel, "secret")`, want: `unknown_argument for the tool slugify, input.arguments has no "titel"; did you mean "title"?`},
		"a name that is there":              {call: slugify + `contains(input.arguments.title, "secret")`},
		"a name that is computed":           {call: slugify + `contains(input.arguments.worked_out, "secret")`},
		"a name of another tool":            {call: slugify + `contains(input.arguments.query, "secret")`, want: `unknown_argument for the tool slugify, input.arguments has no "query": there are count, either,`},
		"any tool":                          {call: `input.tool.effect == "read"` + "\n\tinput.arguments.quary", want: `unknown_argument for the tools search, slugify, input.arguments has no "quary"; did you mean "query"?`},
		"any tool that has it":              {call: `input.tool.effect == "read"` + "\n\tinput.arguments.query"},
		"a tool that takes any":             {call: `input.tool.effect == "write"` + "\n\tinput.arguments.anything"},
		"no condition":                      {call: "input.arguments.anything"},
		"a tag":                             {call: "\"text\" in input.tool.tags\n\tinput.arguments.titel", want: "unknown_argument for the tool slugify, "},
		"an iterated tag":                   {call: "some tag in input.tool.tags\n\ttag == \"text\"\n\tinput.arguments.titel", want: "unknown_argument for the tool slugify, "},
		"names from a list":                 {call: "input.tool.name in {\"slugify\", \"write\"}\n\tinput.arguments.query", want: "unknown_argument for the tools slugify, write, "},
		"a pattern":                         {call: "startswith(input.tool.name, \"slug\")\n\tinput.arguments.titel", want: "unknown_argument for the tool slugify, "},
		"not a tool":                        {call: "not input.tool.name in {\"open\", \"search\"}\n\tinput.arguments.query", want: "unknown_argument for the tools nothing, slugify, write, "},
		"not a tool, open":                  {call: "not input.tool.name == \"slugify\"\n\tinput.arguments.query"},
		"a condition in a helper":           {call: "h.textual\n\tinput.arguments.titel", lib: "textual if \"text\" in input.tool.tags", want: "unknown_argument for the tool slugify, "},
		"a function with the name":          {call: "h.is(input.tool.name)\n\tinput.arguments.titel", lib: `is("slugify")`, want: "unknown_argument for the tool slugify, "},
		"a condition that looks elsewhere":  {call: "data.owners[input.tool.name] == input.principal.name\n\tinput.arguments.titel"},
		"a tool that is not there":          {call: "input.tool.name == \"slug\"\n\tinput.arguments.titel", want: "unknown_name"},
		"a tool without arguments":          {call: "input.tool.name == \"nothing\"\n\tinput.arguments.titel", want: `input.arguments has no "titel": there are none`},
		"a helper that reads":               {call: slugify + "h.title == \"a\"", lib: "title := input.arguments.titel", want: "unknown_argument for the tool slugify, "},
		"a helper of two rules":             {call: slugify + "h.query == \"a\"\n}\n\ndeny contains \"y\" if {\n\tinput.tool.name == \"search\"\n\th.query == \"b\"", lib: "query := input.arguments.query"},
		"a variable":                        {call: slugify + "args := input.arguments\n\targs.titel", want: `has no "titel"; did you mean "title"?`},
		"an import":                         {call: slugify + "given.titel", want: `has no "titel"; did you mean "title"?`},
		"in a comprehension":                {call: slugify + "count([1 | input.arguments.titel]) == 1", want: `has no "titel"`},
		"another tool in a comprehension":   {call: "count([1 | input.tool.name == \"search\"; input.arguments.query == \"x\"]) == 1"},
		"in every":                          {call: slugify + "every t in input.arguments.tagz {\n\t\tt == \"a\"\n\t}", want: `has no "tagz"; did you mean "tags"?`},
		"a missing optional one":            {call: slugify + "not input.arguments.limit"},
		"a missing one that is misspelt":    {call: slugify + "not input.arguments.limt", want: `has no "limt"; did you mean "limit"?`},
		"a missing one, with the import":    {call: slugify + "not startswith(input.arguments.titel, \"a\")", want: `has no "titel"; did you mean "title"?`},
		"a key that is computed":            {call: slugify + "input.arguments[input.branch.name] == \"a\""},
		"all of them":                       {call: slugify + "some v in input.arguments\n\tv == \"a\""},
		"object.get":                        {call: slugify + "object.get(input.arguments, \"titel\", \"\") == \"a\"", want: `unknown_argument for the tool slugify, input.arguments has no "titel"; did you mean "title"?`},
		"object.get of what is there":       {call: slugify + "object.get(input.arguments, \"title\", \"\") == \"a\""},
		"object.get of what is computed":    {call: slugify + "object.get(input.arguments, \"worked_out\", \"\") == \"a\""},
		"object.get in a term":              {call: slugify + "contains(upper(object.get(input.arguments, \"titel\", \"\")), \"A\")", want: `input.arguments has no "titel"`},
		"object.get by a path":              {call: slugify + "object.get(input.arguments, [\"options\", \"lowr\"], false)", want: `input.arguments.options has no "lowr"; did you mean "lower"?`},
		"object.get by a path to a field":   {call: slugify + "object.get(input.arguments, [\"options\", \"lower\"], false)"},
		"object.get by an index":            {call: slugify + "object.get(input.arguments, [\"rows\", 0, \"di\"], \"\") == \"a\""},
		"object.get of a map":               {call: slugify + "object.get(input.arguments, [\"labels\", \"any\"], \"\") == \"a\""},
		"object.get of a field":             {call: slugify + "object.get(input.arguments.options, \"lowr\", false)", want: `input.arguments.options has no "lowr"`},
		"object.get of a variable":          {call: slugify + "args := input.arguments\n\tobject.get(args, \"titel\", \"\") == \"a\"", want: `args has no "titel"`},
		"object.get by what is computed":    {call: slugify + "object.get(input.arguments, input.branch.name, \"\") == \"a\""},
		"object.get for any tool":           {call: `input.tool.effect == "read"` + "\n\tobject.get(input.arguments, \"query\", \"\") == \"a\""},
		"object.get for no tool":            {call: `input.tool.effect == "read"` + "\n\tobject.get(input.arguments, \"quary\", \"\") == \"a\"", want: `for the tools search, slugify, input.arguments has no "quary"; did you mean "query"?`},
		"object.get of a tool that is open": {call: "input.tool.name == \"open\"\n\tobject.get(input.arguments, \"x\", \"\") == \"a\""},
		"object.get of something else":      {call: slugify + "object.get(data.owners, \"titel\", \"\") == \"a\""},
		"object.get in a helper":            {call: slugify + "h.title == \"a\"", lib: "title := object.get(input.arguments, \"titel\", \"\")", want: `input.arguments has no "titel"`},
		"a nested name":                     {call: slugify + "input.arguments.options.lowr", want: `input.arguments.options has no "lowr"; did you mean "lower"?`},
		"a nested name that is there":       {call: slugify + "input.arguments.options.lower"},
		"a map":                             {call: slugify + "input.arguments.labels.anything == \"a\""},
		"an element's field":                {call: slugify + "some row in input.arguments.rows\n\trow.di == \"a\"", want: `has no "di": there is only id`},
		"an element's field that is there":  {call: slugify + "input.arguments.rows[_].id == \"a\""},
		"by index":                          {call: slugify + "input.arguments.rows[0].di == \"a\"", want: `has no "di"`},
		"a schema that refers to itself":    {call: slugify + "input.arguments.node.next.next.name == \"a\""},
		"a field of it":                     {call: slugify + "input.arguments.node.next.nam == \"a\"", want: `has no "nam"`},
		"a number as a text":                {call: slugify + "contains(input.arguments.count, \"x\")", want: "argument_type for the tool slugify, contains: invalid argument"},
		"a number or a text as a text":      {call: "input.tool.effect == \"read\"\n\tcontains(input.arguments.count, \"x\")"},
		"a number equal to a text":          {call: slugify + "input.arguments.count == \"5\"", want: "argument_type for the tool slugify, match error"},
		"a number unequal to a text":        {call: slugify + "input.arguments.count != \"5\"", want: "argument_type for the tool slugify, input.arguments.count is of type number, and is compared with a string"},
		"a number less than a text":         {call: slugify + "input.arguments.count < \"5\"", want: "argument_type for the tool slugify, input.arguments.count is of type number"},
		"a number in texts":                 {call: slugify + "input.arguments.count in {\"5\", 6}", want: "argument_type for the tool slugify, input.arguments.count is of type number"},
		"a number in numbers":               {call: slugify + "input.arguments.count in {5, 6}"},
		"null for what may be":              {call: slugify + "input.arguments.limit != null"},
		"null for what may not be":          {call: slugify + "input.arguments.count != null", want: "is of type number, and is compared with a null"},
		"a value of an enumeration":         {call: slugify + "startswith(input.arguments.kind, \"a\")"},
		"a number of an enumeration":        {call: slugify + "input.arguments.kind > 3", want: "input.arguments.kind is of type string, and is compared with a number"},
		"what may be two types":             {call: slugify + "input.arguments.either == \"a\"\n\tinput.arguments.either[0] == \"a\""},
		"a list as a text":                  {call: slugify + "startswith(input.arguments.tags, \"a\")", want: "argument_type for the tool slugify, startswith: invalid argument"},
		"a field of a text":                 {call: slugify + "input.arguments.title.x == \"a\"", want: "argument_type"},
		"a rule for resources and prompts":  {call: "input.prompt.name == \"x\"\n\tinput.arguments.topic == \"a\""},
		"a definition with another branch":  {call: slugify + "h.pick == \"a\"", lib: "pick := input.arguments.query if input.tool.name == \"search\"\n\npick := input.arguments.title if input.tool.name == \"slugify\""},
		"else, which is about all tools":    {call: slugify + "h.pick == \"a\"", lib: "pick := input.arguments.query if input.tool.name == \"search\"\n\nelse := input.arguments.title", want: "unknown_argument"},
	} {
		files := map[string]string{
			"policy/call.rego":        "package catalogd.call\n\nimport data.catalogd.lib.h\nimport future.keywords.not\nimport input.arguments as given\n\ndefault allow := false\n\ndeny contains \"x\" if {\n\t" + test.call + "\n}\n",
			"policy/lib/h.rego":       "package catalogd.lib.h\n\nimport future.keywords.not\n\nunused := 1\n\n" + test.lib + "\n",
			"policy/owners/data.yaml": "slugify: ann\n",
		}
		found := checked(t, taking(), files)
		var texts []string
		for _, p := range found {
			texts = append(texts, string(p.Code)+" "+p.Message)
		}
		switch {
		case test.want == "" && len(found) > 0, test.want != "" && (len(found) != 1 || !strings.Contains(texts[0], test.want)):
			t.Errorf("%s: %q, want %q", name, texts, test.want)
		}
	}
}

// Nothing is said where not all tools are known, or the arguments may be those of a prompt.
func TestCheckCatalogArgumentsUnknown(t *testing.T) {
	t.Parallel()
	rule := map[string]string{"policy/call.rego": callHead + "deny contains \"x\" if {\n\tinput.tool.name != \"open\"\n\tinput.arguments.titel\n}\n"}
	said := func(change func(*decision.Catalog)) bool {
		c := taking()
		change(&c)
		return slices.ContainsFunc(checked(t, c, rule), func(p problem.Problem) bool { return p.Code == problem.UnknownArgument })
	}
	if !said(func(*decision.Catalog) {}) {
		t.Error("not said")
	}
	for name, change := range map[string]func(*decision.Catalog){
		"incomplete":       func(c *decision.Catalog) { c.Incomplete = true },
		"prompts":          func(c *decision.Catalog) { c.Prompts = true },
		"a tool's unknown": func(c *decision.Catalog) { delete(c.Arguments, "write") },
		"no schemas":       func(c *decision.Catalog) { c.Arguments = nil },
	} {
		if said(change) {
			t.Errorf("%s: said", name)
		}
	}
}

func TestArgumentFaults(t *testing.T) {
	t.Parallel()
	slugify := taking().Arguments["slugify"]
	for arguments, want := range map[string]string{
		`{}`: "", ``: "", `{"title": "a", "count": 1, "worked_out": [1]}`: "",
		`{"titel": "a"}`:                     `arguments has no "titel"; did you mean "title"?`,
		`{"title": 1}`:                       `arguments.title is of type number, and must be of type string`,
		`{"limit": null, "kind": "a"}`:       "",
		`{"limit": "a"}`:                     `arguments.limit is of type string, and must be of type number or null`,
		`{"options": {"lowr": true}}`:        `arguments.options has no "lowr"; did you mean "lower"?`,
		`{"labels": {"x": "y"}}`:             "",
		`{"rows": [{"id": "a"}, {"di": 1}]}`: `arguments.rows[1] has no "di": there is only id`,
		`{"tags": ["a", 1]}`:                 `arguments.tags[1] is of type number, and must be of type string`,
		`[]`:                                 `arguments is of type array, and must be of type object`,
	} {
		if got := strings.Join(slugify.Faults(json.RawMessage(arguments)), "; "); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}
