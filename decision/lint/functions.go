package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// unknownFunction reports a call of what is neither a built-in of OPA nor a rule.
func (m *referringModule) unknownFunction(ref ast.Ref) {
	name := dotted(ref)
	m.report(ref[0], name, problem.Error, problem.RegoCompile, "there is no function %s%s", name, m.meantFunction(name))
}

// method reports a call of a part of a value, as input.tool.name.lower().
func (m *referringModule) method(ref ast.Ref) {
	name := dotted(ref)
	value, last, _ := cutLast(name)
	hint := fmt.Sprintf(": Rego has no methods, write a function of %s", value)
	if last == "contains" {
		hint = fmt.Sprintf(": Rego has no methods, write `x in %s`, or contains(%s, part) of a text", value, value)
	} else if slices.Contains(m.builtins, last) {
		hint = fmt.Sprintf(": Rego has no methods, write %s(%s)", last, value)
	} else if remedy := elsewhereCalled[spelled(last)]; remedy != "" {
		hint = fmt.Sprintf(": Rego has no methods, write %s", remedy)
	}
	m.report(ref[0], name, problem.Error, problem.RegoCompile, "there is no function %s%s", name, hint)
}

// dotted is a reference as it is written with dots.
func dotted(ref ast.Ref) string {
	return strings.Join(append([]string{ref[0].String()}, constants(ref[1:])...), ".")
}

// spelled is a name in lower case without underscores.
func spelled(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// meantFunction is the end of a message about an unknown function: what was probably meant.
func (m *referringModule) meantFunction(name string) string {
	qualifier, last, _ := cutLast(name)
	if pkg := m.library(qualifier); pkg != "" {
		return fmt.Sprintf("; did you mean the package %s? Write `import %s`", pkg, pkg)
	}
	if remedy := elsewhereCalled[spelled(name)]; remedy != "" {
		return ": write " + remedy
	}
	known := keysOf(m.own.below)
	for _, builtin := range m.builtins {
		known[builtin] = true
		_, end, _ := cutLast(builtin)
		if s := spelled(builtin); s == spelled(name) || s == spelled(last) || spelled(end) == spelled(name) {
			return fmt.Sprintf("; did you mean %q?", builtin)
		}
	}
	if remedy := elsewhereCalled[spelled(last)]; remedy != "" {
		return ": write " + remedy
	}
	return cmp.Or(source.DidYouMean(name, known), ": fix the name, or write the function in a package below catalogd.lib, and import that")
}

// library is the package below catalogd.lib that a name without an import means; empty where there is none.
func (m *referringModule) library(name string) string {
	if m.names.at("catalogd").at("lib").at(name) == nil {
		return ""
	}
	return "data.catalogd.lib." + name
}

func cutLast(name string) (before, last string, qualified bool) {
	if i := strings.LastIndex(name, "."); i >= 0 {
		return name[:i], name[i+1:], true
	}
	return "", name, false
}

// elsewhereCalled is what Rego has for functions of other languages and of earlier versions of Rego, by their
// names in lower case without underscores. Names that differ from a built-in's in nothing else are not here.
var elsewhereCalled = func() map[string]string {
	all := map[string]string{}
	for remedy, names := range map[string][]string{
		"startswith(text, prefix)":                {"hasprefix", "beginswith", "prefix"},
		"endswith(text, suffix)":                  {"hassuffix", "suffix"},
		"count(collection)":                       {"len", "length", "size", "cardinality"},
		"count(collection) == 0":                  {"empty", "isempty"},
		"lower(text)":                             {"tolower", "lowercase", "downcase", "lcase"},
		"upper(text)":                             {"toupper", "uppercase", "upcase", "ucase"},
		"`part in list`, or contains(text, part)": {"includes", "has", "in", "member", "contain"},
		"trim_space(text)":                        {"strip", "chomp"},
		"regex.match(pattern, text)":              {"regex.matches", "regexp.match", "regexp.matchstring", "regex.test", "regexmatch", "matches", "re.match", "rematch", "regex.ismatch", "regex.search", "regexp", "regex"},
		"glob.match(pattern, [], text), or regex.match(pattern, text)": {"match", "like", "fnmatch", "glob", "glob.matches"},
		"indexof(text, part)":              {"find", "strpos"},
		"substring(text, start, length)":   {"substr", "slice", "mid", "left", "right"},
		"concat(delimiter, list)":          {"join", "implode"},
		"sprintf(format, [values])":        {"format", "printf", "fmt", "string", "str", "tostring"},
		"json.marshal(value)":              {"json.encode", "json.stringify", "json.dumps", "tojson"},
		"json.unmarshal(text)":             {"json.decode", "json.parse", "json.loads", "fromjson"},
		"to_number(text)":                  {"int", "float", "number", "parseint", "parsefloat", "toint", "atoi", "castnumber"},
		"type_name(value)":                 {"type", "typeof", "kind"},
		"object.keys(object)":              {"keys"},
		"object.get(object, key, default)": {"get", "lookup", "getordefault", "default"},
		"the reference by itself (a condition is true where it has a value), or `not` in front of it": {"exists", "defined", "isset", "isdefined", "haskey", "isnil", "isundefined"},
		"is_number(value)":                                   {"isint", "isinteger", "isfloat"},
		"is_boolean(value)":                                  {"isbool"},
		"is_array(value)":                                    {"islist"},
		"is_object(value)":                                   {"ismap", "isdict"},
		"array.concat(list, list)":                           {"append", "push", "extend"},
		"a set: `{x | some x in list}`":                      {"unique", "distinct", "set", "toset", "castset"},
		"a comprehension: `[y | some x in list; y := f(x)]`": {"map", "filter", "select", "foreach"},
		"`every x in list { ... }`":                          {"all"},
		"`some x in list`, and conditions about x":           {"any", "some"},
		"input.time, which the points call, result and release have (time.parse_rfc3339_ns makes it a number)": {"now", "time.now", "today", "timestamp"},
		"time.clock(time.parse_rfc3339_ns(input.time)), which is [hour, minute, second] in UTC":                {"hour", "time.hour", "minute", "time.minute"},
		"time.weekday(time.parse_rfc3339_ns(input.time)), which is \"Monday\" and so on in UTC":                {"weekday", "dayofweek", "time.day"},
		"time.parse_rfc3339_ns(text)":       {"time.parse", "parsetime", "strptime", "todate"},
		"net.cidr_contains(range, address)": {"cidrmatch", "cidrcontains", "ipinrange", "net.cidrmatch", "inrange"},
		"crypto.sha256(text)":               {"sha256", "hash"},
		"floor, ceil or round(number)":      {"truncate", "trunc", "math.round"},
	} {
		for _, name := range names {
			all[name] = remedy
		}
	}
	return all
}()
