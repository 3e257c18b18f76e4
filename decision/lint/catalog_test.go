package lint_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// small is a catalog of two tools and two branches.
func small() decision.Catalog {
	return decision.Catalog{
		Tools: []decision.Tool{
			{Name: "greet", Effect: "read", Tags: []string{"polite"}, Binding: "jq"},
			{Name: "fetch", Effect: "write", Tags: []string{}, Binding: "mcp", Server: "everything", Trust: "npx"},
		},
		Branches: []decision.Branch{{Name: "default", Labels: map[string]string{"team": "research"}}, {Name: "ops", Labels: map[string]string{}}},
		Servers:  []string{"everything"},
		Trusted:  []string{"npx"},
		Reached:  []decision.ConnectInput{dateCommand()},
	}
}

// checked is what CheckCatalog says of the minimal policy with these files.
func checked(t *testing.T, c decision.Catalog, files map[string]string) problem.List {
	t.Helper()
	fsys := minimal()
	for name, content := range files {
		with(fsys, name, content)
	}
	return load(t, fsys).CheckCatalog(t.Context(), c)
}

const callHead = "package catalogd.call\n\ndefault allow := false\n\n"

// What is compared with a name that nothing has is reported, however it is written; what can't be known is not.
func TestCheckCatalogNames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call, lib, data string
		want            []string
	}{
		"equal":                  {call: `input.tool.name == "gret"`, want: []string{`no tool is called "gret"; did you mean "greet"?`}},
		"turned around":          {call: `"gret" == input.tool.name`, want: []string{`no tool is called "gret"`}},
		"unified":                {call: `input.tool.name = "gret"`, want: []string{`no tool is called "gret"`}},
		"not equal":              {call: `input.branch.name != "opz"`, want: []string{`no branch is called "opz"; did you mean "ops"?`}},
		"negated":                {call: `not input.tool.server == "everythin"`, want: []string{`no server is called "everythin"; did you mean "everything"?`}},
		"an iterated tag":        {call: `input.tool.tags[_] == "rude"`, want: []string{`no tool has the tag "rude"`}},
		"a member of tags":       {call: `"rude" in input.tool.tags`, want: []string{`no tool has the tag "rude"`}},
		"some tag":               {call: "some tag in input.tool.tags\n\ttag == \"rude\"", want: []string{`no tool has the tag "rude"`}},
		"every tag":              {call: "every tag in input.tool.tags {\n\t\ttag != \"rude\"\n\t}", want: []string{`no tool has the tag "rude"`}},
		"a set":                  {call: `input.tool.name in {"greet", "wave"}`, want: []string{`no tool is called "wave"`}},
		"an array":               {call: `input.tool.name in ["greet", "wave"]`, want: []string{`no tool is called "wave"`}},
		"pairs":                  {call: `[input.branch.name, input.tool.name] in [["ops", "greet"], ["dev", "wave"]]`, want: []string{`no branch is called "dev"`, `no tool is called "wave"`}},
		"a variable":             {call: "name := input.tool.name\n\tname == \"gret\"", want: []string{`no tool is called "gret"`}},
		"a variable of a part":   {call: "tool := input.tool\n\ttool.name == \"gret\"", want: []string{`no tool is called "gret"`}},
		"a constant":             {call: `input.tool.name in own.names`, lib: `names := {"greet", "wave"}`, want: []string{`no tool is called "wave"`}},
		"a partial set":          {call: `input.tool.name in own.names`, lib: "names contains \"wave\"\n\nnames contains \"greet\"", want: []string{`no tool is called "wave"`}},
		"a look-up in a set":     {call: `own.names[input.tool.name]`, lib: `names := {"greet", "wave"}`, want: []string{`no tool is called "wave"`}},
		"a look-up in an object": {call: `own.limits[input.tool.name] > 3`, lib: `limits := {"greet": 7, "wave": 8}`, want: []string{`no tool is called "wave"`}},
		"object.get":             {call: `object.get(own.limits, input.branch.name, 0) > 3`, lib: `limits := {"ops": 7, "dev": 8}`, want: []string{`no branch is called "dev"`}},
		"data by key":            {call: `data.owners[input.tool.name] == "me"`, data: `{"owners": {"greet": "me", "wave": "you"}}`, want: []string{`no tool is called "wave"`}},
		"data in a list":         {call: `input.tool.name in data.names`, data: `{"names": ["greet", "wave"]}`, want: []string{`no tool is called "wave"`}},
		"keys of data":           {call: "some name, owner in data.owners\n\tname == input.tool.name\n\towner == \"me\"", data: `{"owners": {"wave": "you"}}`, want: []string{`no tool is called "wave"`}},
		"a label":                {call: `input.branch.labels.taem == "research"`, want: []string{`no branch has a label called "taem"; did you mean "team"?`}},
		"a label by get":         {call: `object.get(input.branch.labels, "taem", "") == ""`, want: []string{`no branch has a label called "taem"`}},
		"a label's value":        {call: `input.branch.labels.team == "ops"`, want: []string{`no branch has the label team with the value "ops"`}},
		"any label's value":      {call: `input.branch.labels[_] == "reserch"`, want: []string{`no branch has a label with the value "reserch"; did you mean "research"?`}},
		"a subset of labels":     {call: `object.subset(input.branch.labels, {"team": "ops"})`, want: []string{`no branch has the label team with the value "ops"`}},
		"one of a few":           {call: `input.tool.effect == "reads"`, want: []string{`it is never "reads", only one of read, write; did you mean "read"?`}},
		"trust":                  {call: `input.tool.trust == "npy"`, want: []string{`no trust entry is called "npy"; did you mean "npx"?`}},
		"a prefix":               {call: `startswith(input.tool.name, "get_")`, want: []string{`no name of a tool begins with "get_"`}},
		"a suffix":               {call: `endswith(input.branch.name, "_x")`, want: []string{`no name of a branch ends with "_x"`}},
		"a glob":                 {call: `glob.match("g*t_*", null, input.tool.name)`, want: []string{`no name of a tool fits "g*t_*"`}},
		"a helper's parameter":   {call: `own.is(input.tool.name)`, lib: `is(name) if name == "gret"`, want: []string{`no tool is called "gret"`}},
		"a helper's constant":    {call: `own.is(input.tool.name, "gret")`, lib: `is(name, other) if name == other`, want: nil},
		"a helper of a helper":   {call: `own.is(input.tool)`, lib: "is(tool) if same(tool.name)\n\nsame(name) if name == \"gret\"", want: []string{`no tool is called "gret"`}},
		"an import":              {call: `tool.name == "gret"`, want: []string{`no tool is called "gret"`}},
		"in a comprehension":     {call: `count([1 | input.tool.name == "gret"]) == 0`, want: []string{`no tool is called "gret"`}},
		"in else":                {lib: "x := 1 if {\n\tinput.tool.name == \"greet\"\n} else := 2 if {\n\tinput.tool.name == \"gret\"\n}", call: "own.x == 1", want: []string{`no tool is called "gret"`}},

		"right":                   {call: "input.tool.name == \"greet\"\n\t\"polite\" in input.tool.tags\n\tinput.branch.labels.team == \"research\"\n\tinput.tool.server in {\"\", \"everything\"}"},
		"no server":               {call: `input.tool.server == ""`},
		"arguments":               {call: `input.arguments.name == "gret"`},
		"the principal":           {call: `input.principal.name == "gret"`},
		"computed":                {call: `concat("", ["a", input.tool.name]) == "agret"`},
		"lower case":              {call: `lower(input.tool.name) == "gret"`},
		"two things":              {call: "some x in [input.tool.name, input.arguments.x]\n\tx == \"gret\""},
		"either name":             {call: "some x in [input.tool.name, input.branch.name]\n\tx == \"ops\""},
		"a variable of two rules": {call: "count([x | some x in input.arguments.xs; x == \"gret\"]) > 0\n\tcount([x | some x in input.tool.tags; x == \"polite\"]) > 0"},
		"every pattern is \"*\"":  {call: "some p in data.names\n\tglob.match(p, null, input.tool.name)", data: `{"names": ["*"]}`},
		"signs of other globs":    {call: `glob.match("{a,b}*", null, input.tool.name)`},
		"a helper of others":      {call: "own.is(input.tool.name)\n\town.is(input.arguments.x)", lib: `is(name) if name == "gret"`},
	} {
		files := map[string]string{"policy/call.rego": strings.Replace(callHead, "\n\n", "\n\nimport data.catalogd.lib.own\nimport input.tool\n\n", 1) + "deny contains \"x\" if {\n\t" + test.call + "\n}\n"}
		if test.lib == "" {
			test.lib = "unused := 1"
		}
		files["policy/lib/own.rego"] = "package catalogd.lib.own\n\n" + test.lib + "\n"
		if test.data != "" {
			files["policy/data.json"] = test.data
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := checked(t, small(), files)
			if len(found) != len(test.want) {
				t.Errorf("%d problems, want %d: %v", len(found), len(test.want), found)
			}
			for i, p := range found {
				if p.Code != problem.UnknownName || p.Severity != problem.Warning || p.Line == 0 {
					t.Errorf("%v", p)
				}
				if i < len(test.want) && !strings.HasPrefix(p.Message, test.want[i]) {
					t.Errorf("%v\nwant %s", p, test.want[i])
				}
			}
		})
	}
}

// Names of tools and tags are not checked while servers have tools that are not known.
func TestCheckCatalogIncomplete(t *testing.T) {
	t.Parallel()
	c := small()
	c.Incomplete = true
	found := checked(t, c, map[string]string{"policy/call.rego": callHead + "deny contains \"x\" if {\n\tinput.tool.name == \"get\"\n\t\"x\" in input.tool.tags\n\tinput.branch.name == \"dev\"\n}\n"})
	if len(found) != 1 || !strings.Contains(found[0].Message, `no branch is called "dev"`) {
		t.Error(found)
	}
}

// A list of another catalog is recognized by some of its names only.
func TestCheckCatalogManyNames(t *testing.T) {
	t.Parallel()
	found := checked(t, small(), map[string]string{
		"policy/call.rego": callHead + "deny contains \"x\" if input.tool.name in data.names\n",
		"policy/data.json": `{"names": [` + strings.Repeat(`"n",`, 1000) + `"greet"]}`,
	})
	if len(found) == 0 || len(found) > 20 {
		t.Errorf("%d problems", len(found))
	}
}

// Of rules that are never true those are reported that were asked and are there for something to happen.
func TestCheckCatalogNeverTrue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rules      string
		principals []decision.Principal
		cases      []any
		want       int
	}{
		"never":                        {rules: "allow if input.tool.effect == \"read\"\n\nallow if {\n\tinput.tool.effect == \"write\"\n\tinput.tool.binding == \"jq\"\n}", want: 1},
		"true behind the first":        {rules: "allow if input.tool.effect == \"read\"\n\nallow if input.tool.name == \"greet\""},
		"a refusal":                    {rules: "allow if input.tool\n\ndeny contains \"x\" if {\n\tinput.tool.effect == \"write\"\n\tinput.tool.binding == \"jq\"\n}"},
		"behind not":                   {rules: "allow if not input.tool.deprecated\n\nallow if not own.old"},
		"a helper":                     {rules: "allow if own.old", want: 2},
		"a function":                   {rules: "allow if own.is_old(input.tool)", want: 2},
		"half of a function":           {rules: "allow if own.either(input.tool)"},
		"arguments":                    {rules: "allow if input.arguments.x == 7"},
		"arguments behind a helper":    {rules: "allow if own.sevens"},
		"the time":                     {rules: "allow if input.time == \"x\""},
		"the whole input":              {rules: "allow if object.get(input, \"x\", 1) == 2"},
		"nobody's principal":           {rules: "allow if input.principal.name == \"ann\""},
		"a principal":                  {rules: "allow if input.principal.name == \"ann\"", principals: []decision.Principal{{Name: "ann"}}},
		"another principal":            {rules: "allow if input.principal.name == \"ann\"\n\nallow if \"ops\" in input.principal.groups", principals: []decision.Principal{{Name: "ann"}, {Name: "bob", Groups: []string{"ops"}}}},
		"a principal who is elsewhere": {rules: "allow if {\n\tinput.principal.name == \"ann\"\n\t\"ops\" in input.principal.groups\n}", principals: []decision.Principal{{Name: "ann"}, {Name: "bob", Groups: []string{"ops"}}}, want: 1},
		"a case of a table":            {rules: "allow if input.branch.name in data.branches", cases: []any{decision.CallInput{Branch: decision.Branch{Name: "guests"}, Tool: decision.Tool{Name: "greet"}}}},
		"no case of a table":           {rules: "allow if input.branch.name in data.branches", cases: []any{decision.ListInput{Branch: decision.Branch{Name: "guests"}}, decision.ConnectInput{}}, want: 1},
		"counted":                      {rules: "allow if count(own.olds) == 0"},
		"iterated":                     {rules: "allow if {\n\tsome x in own.olds\n\tx == 1\n}", want: 2},
		"an obligation":                {rules: "allow if input.tool\n\ntimeout := \"1s\" if input.tool.deprecated", want: 1},
		"not asked for":                {rules: "allow if {\n\tinput.tool.deprecated\n\town.old\n}", want: 1},
		"else":                         {rules: "allow if input.tool\n\ntimeout := \"1s\" if {\n\tinput.tool.deprecated\n} else := \"2s\" if {\n\tinput.tool.effect == \"read\"\n}"},
		"an error":                     {rules: "allow if input.tool.deprecated\n\ndeny contains \"x\" if to_number(input.tool.name) == 1"},
		"conditions of every":          {rules: "allow if {\n\tevery t in input.tool.tags {\n\t\town.is_old(t)\n\t}\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small()
			c.Principals, c.Cases = test.principals, test.cases
			found := checked(t, c, map[string]string{
				"policy/call.rego": strings.Replace(callHead, "\n\n", "\n\nimport data.catalogd.lib.own\n\n", 1) + test.rules + "\n",
				"policy/data.yaml": "branches: [guests, strangers]\n",
				"policy/lib/own.rego": `package catalogd.lib.own

old if input.tool.deprecated

is_old(tool) if tool.deprecated

either(tool) if tool.deprecated

either(tool) if tool.effect == "read"

sevens if input.arguments.x == 7

olds contains 1 if input.tool.deprecated
`,
			})
			found = slices.DeleteFunc(found, func(p problem.Problem) bool { return p.Code == problem.UnknownName && p.File == "policy/data.yaml" })
			if len(found) != test.want {
				t.Errorf("%d problems, want %d: %v", len(found), test.want, found)
			}
			for _, p := range found {
				if p.Code != problem.NeverTrue || p.Severity != problem.Warning || p.Line == 0 {
					t.Errorf("%v", p)
				}
			}
		})
	}
}

// Names of principals and their groups are judged where there are fixtures of them.
func TestCheckCatalogPrincipals(t *testing.T) {
	t.Parallel()
	rules := map[string]string{"policy/call.rego": callHead + "deny contains \"x\" if input.principal.name in {\"ann\", \"ane\", \"local\"}\n\ndeny contains \"y\" if \"opps\" in input.principal.groups\n"}
	if found := checked(t, small(), rules); len(found) > 0 {
		t.Error(found)
	}
	c := small()
	c.Principals = []decision.Principal{{Name: "ann", Groups: []string{"ops"}}}
	var texts []string
	for _, p := range checked(t, c, rules) {
		texts = append(texts, p.Message)
	}
	if want := []string{`no principal is called "ane"; did you mean "ann"?`, `no principal is in a group called "opps"; did you mean "ops"?`}; !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

// Rules that stand as they were shipped are not judged, nor is what nothing is declared for; an entry of data.trust that
// nothing is reached through is reported where it is written.
func TestCheckCatalogShipped(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../../policy"); err != nil {
		t.Fatal(err)
	}
	with(fsys, "policy/access/data.yaml", "branches: {default: {tools: [\"*\"]}, ops: {tools: [fetch]}}\n")
	with(fsys, "policy/trust/data.yaml", "entries:\n  npx: {command: [npx]}\n  idle: {host: idle.example}\n")
	engine := load(t, fsys)
	c := small()
	c.Shipped = fsys
	found := engine.CheckCatalog(t.Context(), c)
	if len(found) != 1 || found[0].Code != problem.UnusedTrust || found[0].Position.String() != "policy/trust/data.yaml:3:3" {
		t.Error(found)
	}
	if found := engine.CheckCatalog(t.Context(), decision.Catalog{Shipped: fsys, Trusted: []string{"npx", "idle"}, Branches: c.Branches, Incomplete: true}); len(found) > 0 {
		t.Error(found)
	}
}

// The helpers that docs/policy.md tells of are in the shipped policy, with so many parameters.
func TestDocumentedHelpers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile("(?m)^\\| `data\\.catalogd\\.lib\\.([a-z]+)\\.([a-z_]+)\\(([a-z, ]+)\\)`").FindAllStringSubmatch(string(page), -1)
	if len(told) < 4 {
		t.Fatalf("%d helpers", len(told))
	}
	call := callHead + "allow if {\n"
	for _, h := range told {
		call += "\tdata.catalogd.lib." + h[1] + "." + h[2] + "(" + strings.TrimSuffix(strings.Repeat("input.arguments, ", strings.Count(h[3], ",")+1), ", ") + ")\n"
	}
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../../policy"); err != nil {
		t.Fatal(err)
	}
	delete(fsys, "policy/test/call_test.rego")
	load(t, with(fsys, "policy/call.rego", call+"}\n"))
}

func BenchmarkCheckCatalog(b *testing.B) {
	c := small()
	for i := range 10_000 {
		c.Tools = append(c.Tools, decision.Tool{Name: fmt.Sprintf("tool_%d", i), Effect: "read", Tags: []string{"polite"}, Binding: "jq"})
	}
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../../policy"); err != nil {
		b.Fatal(err)
	}
	with(fsys, "policy/own.rego", "package catalogd.call\n\nallow if {\n\tinput.tool.effect == \"read\"\n\tinput.tool.name == \"greet\"\n\tinput.branch.name == \"ops\"\n}\n")
	c.Shipped = fsys
	run := func(name string, c decision.Catalog, want int) {
		engine := load(b, fsys)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found := engine.CheckCatalog(b.Context(), c); len(found) < want {
					b.Fatal(found)
				}
			}
		})
	}
	run("names", c, 1)
	own := c
	own.Shipped = nil
	run("never-true", own, 1)
}
