package decision

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/source"
	"github.com/catalogd/catalogd/problem"
)

// allowedBuiltins are the built-ins that a policy may call: those whose result depends on their operands
// alone, and whose cost is bounded by the size of these or which can be cancelled (TestHostile tests each;
// some need sizeChecks). Deliberately missing are built-ins that reach the network or files (http.send,
// net.lookup_ip_addr, graphql.*), read the process or the module (opa.runtime, rego.*, trace), differ from
// one evaluation to the next (time.now_ns, rand.*, uuid.*), handle keys (io.jwt.verify_* and encode_*,
// crypto.x509.*, providers.*), or don't end in time and can't be cancelled (graph.reachable_paths,
// yaml.marshal, regex.globs_match, regex.template_match, strings.render_template, bits.lsh; net.cidr_expand
// lists 2^32 addresses of one, net.cidr_contains_matches takes 20 s for two lists of 120 ranges).
// json.match_schema and json.verify_schema are not OPA's own (matchschema.go).
var allowedBuiltins = []string{
	"eq", "assign", "equal", "neq", "gt", "gte", "lt", "lte",
	"plus", "minus", "mul", "div", "rem", "abs", "ceil", "floor", "round",
	"bits.and", "bits.negate", "bits.or", "bits.xor",
	"and", "or", "intersection", "union",
	"count", "max", "min", "product", "sum", "sort",
	"array.concat", "array.flatten", "array.reverse", "array.slice",
	"to_number", "format_int", "type_name",
	"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
	"concat", "contains", "endswith", "indexof", "indexof_n", "lower", "replace", "split", "sprintf", "startswith",
	"strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.replace_n", "strings.reverse",
	"strings.split_n", "substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper",
	"glob.match", "glob.quote_meta",
	"regex.find_all_string_submatch_n", "regex.find_n", "regex.is_valid", "regex.match", "regex.replace", "regex.split",
	"json.filter", "json.is_valid", "json.marshal", "json.marshal_with_options", "json.patch", "json.remove",
	"json.unmarshal", "json.match_schema", "json.verify_schema",
	"object.filter", "object.get", "object.keys", "object.remove", "object.subset", "object.union", "object.union_n",
	"base64.decode", "base64.encode", "base64.is_valid", "base64url.decode", "base64url.encode",
	"base64url.encode_no_pad", "hex.decode", "hex.encode",
	"urlquery.decode", "urlquery.decode_object", "urlquery.encode", "urlquery.encode_object",
	"yaml.is_valid", "yaml.unmarshal",
	"crypto.hmac.equal", "crypto.hmac.sha256", "crypto.hmac.sha512", "crypto.sha256",
	"io.jwt.decode",
	"net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid", "net.cidr_merge",
	"graph.reachable", "walk", "numbers.range", "numbers.range_step",
	"semver.compare", "semver.is_valid", "units.parse", "units.parse_bytes",
	"time.add_date", "time.clock", "time.date", "time.diff", "time.format", "time.parse_duration_ns", "time.parse_ns",
	"time.parse_rfc3339_ns", "time.weekday",
	// Erased from the policy that serves; `catalogd test` shows what it prints.
	"print",
}

// fastBuiltins are those of allowedBuiltins that return at once whatever their operands are. A policy that
// calls no others is evaluated on the caller's goroutine, which saves about 10 us.
var fastBuiltins = []string{
	"eq", "assign", "equal", "neq", "gt", "gte", "lt", "lte",
	"plus", "minus", "mul", "div", "rem", "abs", "ceil", "floor", "round",
	"count", "array.slice", "array.concat", "array.reverse", "sort", "min", "max", "sum",
	"to_number", "format_int", "type_name",
	"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
	"concat", "contains", "endswith", "indexof", "lower", "replace", "split", "sprintf", "startswith",
	"strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.replace_n", "strings.reverse",
	"strings.split_n", "substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper",
	"json.marshal", "json.unmarshal", "object.get", "object.keys", "object.subset", "object.union", "union", "intersection",
	"glob.match", "glob.quote_meta", "array.flatten", "indexof_n", "json.filter", "json.remove", "object.filter", "object.remove",
	"base64.decode", "base64.encode", "base64url.decode", "crypto.sha256", "hex.decode", "hex.encode",
	"internal.member_2", "internal.member_3", "internal.template_string", "print", "internal.print",
}

// callsOnlyFast reports whether the modules call only fastBuiltins.
func callsOnlyFast(modules map[string]*ast.Module) bool {
	all := true
	for _, module := range modules {
		ast.WalkRefs(module, func(ref ast.Ref) bool {
			name := ref.String()
			if _, ok := ast.BuiltinMap[name]; ok && !slices.Contains(fastBuiltins, name) {
				all = false
			}
			return !all
		})
	}
	return all
}

// builtinAllowed reports whether a policy may call the function. internal.* is what the compiler rewrites
// `in`, print and string templates to.
func builtinAllowed(name string) bool {
	return strings.HasPrefix(name, "internal.") || slices.Contains(allowedBuiltins, name)
}

// capabilities are those of this version of OPA without what is not allowed: what forbiddenBuiltins missed
// would not compile.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool { return !builtinAllowed(b.Name) })
	c.AllowNet = []string{}
	return c
}

// forbiddenBuiltins reports every use of a built-in of OPA that is not allowed, replacing one with `with`
// included.
func forbiddenBuiltins(module *ast.Module, path string) problem.List {
	known := ast.BuiltinMap
	var problems problem.List
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		name := ref.String()
		if _, ok := known[name]; ok && !builtinAllowed(name) {
			problems.Errorf(problem.RegoBuiltin, source.Position(ref[0].Location), path,
				"%s is not allowed: %s", name, builtinRemedy(name))
		}
		return false
	})
	return problems
}

func builtinRemedy(name string) string {
	switch {
	case name == "time.now_ns":
		return "decisions are cached by their input; the call point has input.time"
	case strings.HasPrefix(name, "regex.") || name == "re_match":
		return "use regex.match"
	case name == "net.cidr_expand" || name == "net.cidr_contains_matches":
		return "use net.cidr_contains for each range"
	}
	return "a decision depends on its input and the policy's data alone (docs/policy.md lists what may be called)"
}
