package decision

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/problem"
)

// allowedBuiltins are the functions that a policy may call: those whose result depends on their arguments alone and
// whose cost does not run away. Not here, on purpose: whatever reaches the network or files (http.send, net.*,
// json.match_schema and json.verify_schema, which read file:// references, graphql.*), reads the process or the module
// (opa.runtime, rego.*, trace), differs from one evaluation to the next (time.now_ns, rand.*, uuid.*), or handles keys
// (io.jwt.*, crypto.x509.*, providers.*).
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
	"json.unmarshal",
	"object.filter", "object.get", "object.keys", "object.remove", "object.subset", "object.union", "object.union_n",
	"base64.decode", "base64.encode", "base64.is_valid", "base64url.decode", "base64url.encode",
	"base64url.encode_no_pad", "hex.decode", "hex.encode",
	"urlquery.decode", "urlquery.decode_object", "urlquery.encode", "urlquery.encode_object",
	"yaml.is_valid", "yaml.marshal", "yaml.unmarshal",
	"crypto.hmac.equal", "crypto.hmac.sha256", "crypto.hmac.sha512", "crypto.sha256",
	"graph.reachable", "graph.reachable_paths", "walk", "numbers.range", "numbers.range_step",
	"semver.compare", "semver.is_valid", "units.parse", "units.parse_bytes",
	"time.add_date", "time.clock", "time.date", "time.diff", "time.format", "time.parse_duration_ns", "time.parse_ns",
	"time.parse_rfc3339_ns", "time.weekday",
	// Erased from the policy that serves; `catalogd test` shows what it prints.
	"print",
}

// builtinAllowed reports whether a policy may call the function. internal.* is what the compiler rewrites `in`, print
// and string templates to.
func builtinAllowed(name string) bool {
	return strings.HasPrefix(name, "internal.") || slices.Contains(allowedBuiltins, name)
}

// capabilities are OPA's of this version without what is not allowed. A second lock behind forbiddenBuiltins: what it
// let through would still not compile.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool { return !builtinAllowed(b.Name) })
	c.AllowNet = []string{}
	return c
}

// forbiddenBuiltins reports every use of a built-in of OPA that is not allowed, replacing one with `with` included.
func forbiddenBuiltins(module *ast.Module, path string) problem.List {
	known := ast.BuiltinMap
	var problems problem.List
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		name := ref.String()
		if _, ok := known[name]; ok && !builtinAllowed(name) {
			problems.Errorf(problem.RegoBuiltin, position(ref[0].Location), path,
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
	}
	return "a decision depends on its input and the policy's data alone (docs/policy.md lists what may be called)"
}
