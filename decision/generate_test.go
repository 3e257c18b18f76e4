package decision_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// names are all texts that policies and inputs are about, so that comparisons are often true.
var names = []string{"a", "b", "c", "d"}

// generate makes a random policy and its data, data.cfg, from the constructs of the Rego language reference:
// complete, partial and default rules, else, functions, comprehensions, negation, every, some, with,
// references with variables, aliases of the input, imports, conflicts and built-ins that fail.
func generate(r *rand.Rand) (files map[string]string, data map[string]any) {
	g := &generator{r: r, base: some(r, "input.tool.name", "input.principal.name", "input.branch.name", "input.tool.server", "input.branch.labels.a", "input.branch.labels[input.tool.name]",
		"input.branch.labels[input.principal.name]", "data.cfg.owner.a", "data.cfg.owner[input.tool.name]", "data.cfg.owner[input.branch.name]")}
	if len(g.base) == 0 {
		g.base = []string{"input.tool.effect"}
	}
	data = map[string]any{
		"owner": map[string]any{}, "limit": map[string]any{"a": r.IntN(3), "b": 2}, "names": some(r, names...), "flag": r.IntN(2) == 0,
		"grants": map[string]any{"a": some(r, names...), "b": some(r, names...)},
	}
	for _, n := range some(r, names...) {
		data["owner"].(map[string]any)[n] = pick(r, names...)
	}
	files = map[string]string{}
	for _, point := range []string{"connect", "adopt"} {
		files["policy/"+point+".rego"] = "package catalogd." + point + "\n\ndefault allow := false\n"
	}
	files["policy/lib/plain.rego"] = g.library("plain", "")
	files["policy/lib/late.rego"] = g.library("late", "plain", "arguments", "time")
	files["policy/list.rego"] = g.point("list", "plain")
	files["policy/call.rego"] = g.point("call", pick(r, "late", "plain"), some(r, "arguments", "time", "rate")...)
	files["policy/result.rego"] = g.point("result", pick(r, "late", "plain"), some(r, "arguments", "time", "result")...)
	files["policy/release.rego"] = g.point("release", pick(r, "late", "plain"), some(r, "arguments", "time", "intent")...)
	return files, data
}

// generator writes one module at a time.
type generator struct {
	r      *rand.Rand
	base   []string // the texts that this policy is about
	fields []string // of the input, beside branch, tool and principal
	// rules that may be used, as they are written here: of the module before the one that is written, and of
	// the helpers imported.
	bools, texts, sets, objects, functions []string
	vars                                   []string // in scope, of any type
	next                                   int      // the number of the next variable
}

func (g *generator) has(field string) bool {
	for _, f := range g.fields {
		if f == field {
			return true
		}
	}
	return false
}

func (g *generator) fresh() string {
	g.next++
	return fmt.Sprintf("v%d", g.next)
}

// not is mostly the import with which a negation includes what it is made of; without it most policies are refused
// (suspect_negation).
func (g *generator) not() string {
	if g.r.IntN(40) == 0 {
		return ""
	}
	return "import future.keywords.not\n\n"
}

// imports makes the helpers of a library usable.
func (g *generator) imports(lib string) {
	g.bools, g.texts, g.sets, g.objects, g.functions = nil, nil, nil, nil, nil
	if lib == "" {
		return
	}
	for i := range 2 {
		g.bools = append(g.bools, fmt.Sprintf("%s.is%d", lib, i))
		g.texts = append(g.texts, fmt.Sprintf("%s.text%d", lib, i))
		g.sets = append(g.sets, fmt.Sprintf("%s.set%d", lib, i))
		g.objects = append(g.objects, fmt.Sprintf("%s.object%d", lib, i))
		g.functions = append(g.functions, fmt.Sprintf("%s.f%d", lib, i))
	}
}

// library is a package of helpers. What each of them uses comes before it.
func (g *generator) library(name, uses string, fields ...string) string {
	g.fields = fields
	g.imports(uses)
	var b strings.Builder
	fmt.Fprintf(&b, "package catalogd.lib.%s\n\n%s", name, g.not())
	if uses != "" {
		fmt.Fprintf(&b, "import data.catalogd.lib.%s\n\n", uses)
	}
	for i := range 2 {
		is := fmt.Sprintf("is%d", i)
		if g.r.IntN(2) == 0 {
			fmt.Fprintf(&b, "default %s := false\n\n", is)
		}
		g.rules(&b, is+" if {\n%s}\n", 1+g.r.IntN(2))
		g.bools = append(g.bools, is)
		text := fmt.Sprintf("text%d", i)
		g.complete(&b, text, g.text)
		g.texts = append(g.texts, text)
		set := fmt.Sprintf("set%d", i)
		g.heads(&b, 1+g.r.IntN(2), func() string { return fmt.Sprintf("%s contains %s", set, g.text()) })
		g.sets = append(g.sets, set)
		object := fmt.Sprintf("object%d", i)
		g.heads(&b, 1+g.r.IntN(2), func() string { return fmt.Sprintf("%s[%s] := %s", object, g.text(), g.text()) })
		g.objects = append(g.objects, object)
		f := fmt.Sprintf("f%d", i)
		if g.r.IntN(3) == 0 {
			fmt.Fprintf(&b, "default %s(_) := \"d\"\n\n", f)
		}
		for range 1 + g.r.IntN(2) {
			g.vars = []string{"x"}
			head := fmt.Sprintf("%s(x)", f)
			if g.r.IntN(4) == 0 {
				head = fmt.Sprintf("%s(%q)", f, pick(g.r, names...))
				g.vars = nil
			}
			body := g.body(1 + g.r.IntN(2))
			fmt.Fprintf(&b, "%s := %s if {\n%s}\n\n", head, g.text(), body)
			g.vars = nil
		}
		g.functions = append(g.functions, f)
	}
	return b.String()
}

// point is the package of a decision point.
func (g *generator) point(name, uses string, fields ...string) string {
	g.fields = fields
	g.imports(uses)
	var b strings.Builder
	fmt.Fprintf(&b, "package catalogd.%s\n\n%simport data.catalogd.lib.%s\n\n", name, g.not(), uses)
	b.WriteString("default allow := false\n\n")
	if g.r.IntN(3) == 0 {
		b.WriteString("allow if true\n\n")
	}
	g.rules(&b, "allow if {\n%s}\n", 1+g.r.IntN(3))
	g.heads(&b, g.r.IntN(3), func() string {
		return pick(g.r, `deny contains "no"`, `deny contains "never"`, "deny contains "+g.text(), fmt.Sprintf("deny contains sprintf(\"%%v\", [%s])", g.value()))
	})
	switch {
	case name == "call" && g.r.IntN(3) == 0:
		g.complete(&b, "timeout", func() string { return pick(g.r, `"5s"`, `"5s"`, `"6s"`, `"6s"`, `"6s"`, "5", g.text()) })
	case name == "call" && g.r.IntN(2) == 0:
		approval := func() string {
			return "require_approval := " + pick(g.r, `{"groups": ["b", "a"]}`, `{"groups": {"b"}, "reason": input.tool.name}`, `{"self": input.principal.local, "groups": {"a"}, "expires": "1h"}`,
				`{"self": input.principal.local}`, `{"groups": [], "self": true}`, `{"self": true, "expires": "721h"}`, `{"groups": [`+g.text()+`]}`)
		}
		if g.r.IntN(2) == 0 {
			fmt.Fprintf(&b, "%s if %s\n\n", g.constant(approval), pick(g.r, `input.tool.effect == "write"`, `input.tool.effect == "write"`, `input.tool.name == "a"`))
			break
		}
		g.heads(&b, 1, approval)
	case name == "result":
		g.heads(&b, g.r.IntN(3), func() string { return "redact contains " + pick(g.r, `"/a"`, `"/b"`, `"/b"`, `"b"`, g.text()) })
		if g.r.IntN(3) == 0 {
			g.complete(&b, "max_bytes", func() string { return pick(g.r, "100", "200", "200", `"many"`, "count("+g.collection()+")") })
		}
	}
	return b.String()
}

// complete is a rule of one value, with a default, several bodies or else.
func (g *generator) complete(b *strings.Builder, name string, value func() string) {
	if g.r.IntN(2) == 0 {
		def := pick(g.r, `"5s"`, `"9s"`)
		if name == "max_bytes" {
			def = "300"
		}
		fmt.Fprintf(b, "default %s := %s\n\n", name, def)
	}
	switch g.r.IntN(3) {
	case 0:
		body := g.body(1 + g.r.IntN(2))
		fmt.Fprintf(b, "%s := %s if {\n%s}", name, g.constant(value), body)
		for range g.r.IntN(3) {
			body := g.body(1 + g.r.IntN(2))
			fmt.Fprintf(b, "\nelse := %s if {\n%s}", g.constant(value), body)
		}
		b.WriteString("\n\n")
		g.vars = nil
	default:
		g.heads(b, 1+g.r.IntN(2), func() string { return fmt.Sprintf("%s := %s", name, value()) })
	}
}

// constant is a value without the variables of the body before it.
func (g *generator) constant(value func() string) string {
	vars := g.vars
	g.vars = nil
	defer func() { g.vars = vars }()
	return value()
}

// heads are rules whose heads may use the variables of their bodies.
func (g *generator) heads(b *strings.Builder, n int, head func() string) {
	for range n {
		body := g.body(1 + g.r.IntN(3))
		fmt.Fprintf(b, "%s if {\n%s}\n\n", head(), body)
		g.vars = nil
	}
}

func (g *generator) rules(b *strings.Builder, format string, n int) {
	for range n {
		fmt.Fprintf(b, format+"\n", g.body(1+g.r.IntN(3)))
		g.vars = nil
	}
}

// body is some literals, each on its line. The variables that they bind are left in scope.
func (g *generator) body(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "\t%s\n", g.literal(2))
	}
	for _, v := range g.vars { // a variable that is not used is an error
		if v != "x" && strings.Count(b.String(), v) < 2 {
			fmt.Fprintf(&b, "\t%s %s %s\n", v, pick(g.r, "!=", "!=", "=="), g.text())
		}
	}
	return b.String()
}

// closed is a literal of which no variable is seen outside.
func (g *generator) closed(depth int, more ...string) string {
	vars := g.vars
	defer func() { g.vars = vars }()
	for {
		g.vars = append(append([]string{}, vars...), more...)
		l := g.literal(depth)
		if strings.HasPrefix(l, "some ") || strings.Contains(l, "\n") || strings.Contains(l, ":= ") || strings.Contains(l, "_]") || strings.Contains(l, "[_,") {
			continue // it binds a variable
		}
		return l
	}
}

func (g *generator) literal(depth int) string {
	bind := func(format string, args ...any) string {
		v := g.fresh()
		l := fmt.Sprintf(format, append([]any{v}, args...)...)
		g.vars = append(g.vars, v)
		return l
	}
	late := func() string { // what a call brings
		switch {
		case g.has("result") && g.r.IntN(2) == 0:
			return pick(g.r, "input.result.is_error", "input.result.bytes > 100", `input.result.structured.a == "b"`, `"a" in input.result.text`, "not input.result.structured")
		case g.has("intent") && g.r.IntN(2) == 0:
			return pick(g.r, "input.intent.attempt > 1", "input.intent.age < 60", "input.intent.approval", "not input.intent.approval", "input.intent.approval.by.name == "+g.text(),
				"input.intent.approval.by.name != input.principal.name", `"a" in input.intent.approval.by.groups`, "input.intent.repeatable", "not input.intent.policy_changed")
		case g.has("rate") && g.r.IntN(2) == 0:
			return pick(g.r, "input.rate.minute > 1", "input.rate.hour == 2", "input.rate.minute < input.rate.hour")
		case g.has("time") && g.r.IntN(3) == 0:
			return pick(g.r, `startswith(input.time, "2026-01-05T08")`, "time.clock(time.parse_rfc3339_ns(input.time))[0] < 10", "input.time != \"\"")
		case g.has("arguments"):
			return pick(g.r, "input.arguments.q", "input.arguments.q == "+g.text(), "not input.arguments.q", "input.arguments.n > 1", "to_number(input.arguments.n) > 0",
				"input.arguments.deep.q != "+g.text(), "not input.arguments.q == "+g.text(), "count(input.arguments) > 1", "object.get(input.arguments, [\"deep\", \"q\"], \"c\") == "+g.text(),
				"input.arguments == {}", "input.arguments["+g.text()+"]", "10 / input.arguments.n > 1")
		}
		return "input.tool.deprecated"
	}
	kinds := 24
	if depth == 0 {
		kinds = 9
	}
	switch g.r.IntN(kinds) {
	case 0, 1:
		return g.text() + " == " + g.text()
	case 2:
		return g.text() + " != " + g.text()
	case 3:
		return g.value() + " in " + g.collection()
	case 4:
		return pick(g.r, "input.tool.deprecated", "input.principal.admin", "data.cfg.flag", `input.tool.effect == "read"`, pick(g.r, g.base...)+` == "a"`, pick(g.r, g.base...)+` == "b"`)
	case 5, 6:
		return late()
	case 7:
		if len(g.bools) > 0 {
			return pick(g.r, "", "not ") + pick(g.r, g.bools...)
		}
		return pick(g.r, "startswith", "endswith", "contains") + "(" + g.text() + ", " + g.text() + ")"
	case 8:
		if len(g.functions) > 0 {
			return pick(g.r, "", "not ") + pick(g.r, g.functions...) + "(" + g.value() + ")" + pick(g.r, "", " == "+g.text())
		}
		return "count(" + g.collection() + ") > " + pick(g.r, "0", "1")
	case 9, 10:
		for {
			if l := g.closed(depth - 1); !strings.HasPrefix(l, "not ") && !strings.HasPrefix(l, "every ") {
				return "not " + l
			}
		}
	case 11:
		return bind("some %s in %s", g.collection())
	case 12:
		k := g.fresh()
		from := []string{"data.cfg.owner", "input.branch.labels", "data.cfg.grants"}
		if g.has("arguments") {
			from = append(from, "input.arguments", "input.arguments.deep")
		}
		l := bind("some "+k+", %s in %s", pick(g.r, from...))
		g.vars = append(g.vars, k)
		return l
	case 13:
		return bind("%s := %s", g.value())
	case 14:
		x := g.fresh()
		return fmt.Sprintf("every %s in %s { %s; %s != %s }", x, g.collection(), g.closed(depth-1, x), x, g.text())
	case 15:
		x := g.fresh()
		return fmt.Sprintf("count({%s | some %s in %s; %s}) %s", x, x, g.collection(), g.closed(depth-1, x), pick(g.r, "> 0", "== 0", "== 1"))
	case 16:
		if len(g.sets) > 0 {
			return pick(g.r, "", "not ") + pick(g.r, g.sets...) + "[" + g.value() + "]"
		}
		return "data.cfg.grants[input.branch.name][_] == " + g.text()
	case 17:
		if len(g.objects) > 0 {
			return pick(g.r, g.objects...) + "[" + g.value() + "] == " + g.text()
		}
		return "data.cfg.owner[" + g.value() + "] == " + g.text()
	case 18: // another input, or other data
		if len(g.bools) > 0 {
			with := []string{"input.tool.name as " + g.text(), "input.principal.groups as " + `["a"]`, "data.cfg.owner as {\"a\": " + g.text() + "}", "input.tool.tags as []"}
			if g.has("arguments") {
				with = append(with, "input.arguments as {\"q\": "+g.text()+"}", "input.tool.name as input.arguments.q", "input.arguments.q as \"a\"")
			}
			return pick(g.r, "", "not ") + pick(g.r, g.bools...) + " with " + pick(g.r, with...)
		}
		return "data.cfg.flag"
	case 19: // aliases of the input
		v := g.fresh()
		l := v + " := input\n\t" + v + pick(g.r, ".tool.name == ", ".principal.name == ", ".branch.name != ") + g.text()
		if g.has("arguments") && g.r.IntN(2) == 0 {
			l = v + " := input\n\t" + v + ".arguments.q == " + g.text()
		}
		return l
	case 20: // fields by computed names
		if g.has("arguments") {
			return pick(g.r, `object.get(input, ["arguments", "q"], "c") == `+g.text(), `input[concat("", ["argu", "ments"])].q == `+g.text(), "walk(input.arguments, [_, \"b\"])",
				"[path | walk(input, [path, \"c\"])] != []", `json.marshal(input) != ""`)
		}
		return pick(g.r, `object.get(input, ["principal", "name"], "c") == `+g.text(), "walk(input.branch, [_, \"b\"])", "count([x | walk(input, [x, \"c\"])]) > 1")
	case 21: // what fails for some, and is not looked at where what comes behind is looked up first
		behind := ""
		if g.has("arguments") {
			behind = pick(g.r, "", "\n\tinput.arguments.q == \"a\"", "\n\tinput.arguments.q == \"b\"")
		}
		return pick(g.r, "to_number("+g.text()+") > 1", "json.unmarshal("+g.text()+") == 1", "count(input.branch.labels["+g.text()+"]) > 1", "1 / count("+g.collection()+") > 0") + behind
	case 22: // in brackets
		return "[" + g.text() + ", " + g.value() + "][_] == " + g.text()
	default:
		return "count(" + g.collection() + ") " + pick(g.r, ">", "==", "<") + " " + pick(g.r, "0", "1", "2", "data.cfg.limit["+g.text()+"]")
	}
}

// text is an expression that is a text, or of any type.
func (g *generator) text() string {
	from := append(append([]string{}, g.base...), g.texts...)
	switch g.r.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("%q", pick(g.r, names...))
	case 2:
		return pick(g.r, "lower(", "upper(", "trim_space(") + fmt.Sprintf("%s)", pick(g.r, g.base...))
	case 3:
		if g.has("arguments") && g.r.IntN(2) == 0 {
			return pick(g.r, "input.arguments.q", "input.arguments.deep.q", "input.arguments[input.tool.name]")
		}
	}
	return pick(g.r, from...)
}

// value is an expression of any type.
func (g *generator) value() string {
	if len(g.vars) > 0 && g.r.IntN(2) == 0 {
		return pick(g.r, g.vars...)
	}
	return g.text()
}

// collection is an expression that is an array or a set.
func (g *generator) collection() string {
	from := []string{"input.tool.tags", "input.principal.groups", "data.cfg.names", "data.cfg.grants.a", `["a", "b"]`, `{"b", "c"}`, "[" + g.text() + "]", "object.keys(data.cfg.owner)",
		"[x | some x in input.principal.groups; x != \"a\"]", "{x | x := data.cfg.names[_]}"}
	from = append(from, g.sets...)
	if g.has("arguments") {
		from = append(from, "input.arguments.list", "object.keys(input.arguments)", "[input.arguments.q]", "[x | x := input.arguments[_]]")
	}
	return pick(g.r, from...)
}
