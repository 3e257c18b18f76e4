package diff

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
)

// covered returns questions about what the trust entries in the data name, and about similar values: an
// argument more or less, another directory, variable, header, secret, path or digest, and possible values of
// a call.
func covered(data map[string]any) (out []map[string]any) {
	entries := mapping(mapping(data["trust"])["entries"])
	out = append(out, commandQuestions(map[string]any{"command": []any{"other"}})...)
	for _, name := range keys(entries) {
		entry, ok := entries[name].(map[string]any)
		if !ok {
			continue
		}
		if entry["host"] != nil {
			out = append(out, addressQuestions(entry)...)
		} else {
			out = append(out, commandQuestions(entry)...)
		}
	}
	return out
}

// words returns the strings in a value, at any depth.
func words(v any) (out []string) {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, x := range v {
			out = append(out, words(x)...)
		}
	case map[string]any:
		for _, k := range keys(v) {
			out = append(append(out, k), words(v[k])...)
		}
	}
	return out
}

// usualArguments are command lines of programs that fetch packages and images, and of interpreters.
var usualArguments = [][]string{
	{"-y", "x@1.2.3"}, {"-y", "x"}, {"x@latest"}, {"--package=x@1.2.3", "x"}, {"-c", "x"}, {"exec", "x"}, {"x==1.2.3"}, {"--from", "x==1.2.3", "x"}, {"run", "x"},
	{"run", "-e", "X", "x@sha256:" + sixtyFour}, {"x.js"}, {"-m", "x"}, {"-e", "x"},
}

const sixtyFour = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// oneOfEach returns the first few command lines that a list of words and alternatives covers.
func oneOfEach(line []any) (out [][]any) {
	out = [][]any{{}}
	for _, w := range line {
		some := words(w)
		if len(some) == 0 {
			some = []string{word(w)}
		}
		var longer [][]any
		for _, begun := range out {
			for _, one := range some[:min(3, len(some))] {
				longer = append(longer, append(slices.Clip(begun), one))
			}
		}
		out = longer[:min(9, len(longer))]
	}
	return out
}

func commandQuestions(entry map[string]any) (out []map[string]any) {
	environment := environmentOf(entry)
	for _, line := range oneOfEach(append(slices.Clip(list(entry["command"])), list(entry["args"])...)) {
		if len(line) == 0 {
			continue
		}
		declared := word(line[0])
		path := declared
		if !strings.HasPrefix(path, "/") {
			path = "/usr/bin/" + declared
		}
		base := map[string]any{
			"subject": map[string]any{"kind": "tool", "name": "x", "effect": "read", "pos": map[string]any{"file": "catalog/x.cue", "line": json.Number("1"), "col": json.Number("1")}},
			"target": map[string]any{"kind": "exec", "command": map[string]any{
				"declared": declared, "path": path, "args": line[1:], "dir": word(orEmpty(entry["dir"])), "env": []any{},
				"from_call": texts(filledIn(line[1:])), "stdin": false,
			}, "headers": []any{}, "secrets": []any{}},
			"observed": map[string]any{"sha256": word(orEmpty(entry["sha256"])), "in_tree": false, "addresses": []any{}},
		}
		with := func(path string, value any) {
			data := cloned(base).(map[string]any)
			put(data, strings.Split(path, "."), value)
			out = append(out, data)
		}
		with("target.kind", "exec")
		with("target.kind", "stdio")
		with("subject.kind", "server")
		with("target.command.args", append(slices.Clone(line[1:]), "x"))
		with("target.command.args", append(slices.Clone(line[1:]), "{x}"))
		for _, name := range append(words(entry["from_call"]), "x") {
			filled := cloned(base).(map[string]any)
			put(filled, []string{"target", "command", "args"}, append(slices.Clone(line[1:]), "{"+name+"}"))
			put(filled, []string{"target", "command", "from_call"}, texts(append(filledIn(line[1:]), name)))
			out = append(out, filled)
			with("target.command.from_call", texts(append(filledIn(line[1:]), name)))
		}
		with("target.command.from_call", []any{})
		with("target.command.stdin", true)
		with("target.command.args", append(slices.Clone(line[1:]), "-x"))
		if len(line) > 1 {
			with("target.command.args", line[1:len(line)-1])
			with("target.command.args", []any{})
		}
		for _, args := range usualArguments {
			with("target.command.args", append(slices.Clone(line[1:]), texts(args)...))
			with("target.command.args", texts(args))
		}
		with("target.command.dir", "")
		with("target.command.dir", "elsewhere")
		with("target.command.env", []any{"X"})
		with("target.command.env", texts(environment))
		for _, name := range environment {
			with("target.command.env", []any{name})
		}
		for _, references := range secretsOf(entry) {
			with("target.secrets", references)
		}
		with("observed.in_tree", true)
		with("observed.unpinned", "it is not pinned")
		with("observed.runs_code", "it runs code")
		with("observed.sha256", "")
		with("observed.sha256", sixtyFour)
		with("target.command.path", "/opt/"+declared)
	}
	return out
}

// filledIn returns the names in braces in a command line, which a call fills in.
func filledIn(line []any) (names []string) {
	for _, arg := range line {
		for _, m := range placeholder.FindAllStringSubmatch(word(arg), -1) {
			name, _, _ := strings.Cut(strings.ReplaceAll(m[1], "*", "?"), "?") // {name?TEXT}, {name*TEXT}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// secretsOf returns the references that the entry names, separately and together, and another one.
func secretsOf(entry map[string]any) (out [][]any) {
	references := append(words(entry["secrets"]), "env:X")
	for _, ref := range references {
		out = append(out, []any{ref})
	}
	return append(out, texts(references))
}

// environmentOf returns variables that the entry names or matches, and some others.
func environmentOf(entry map[string]any) []string {
	names := []string{"AWS_SECRET_ACCESS_KEY", "HOME", "PATH", "X"}
	for _, name := range words(entry["env"]) {
		name, _, _ = strings.Cut(name, "=")
		names = append(names, strings.ReplaceAll(name, "*", "X"), strings.ReplaceAll(name, "*", "X_TOKEN"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func addressQuestions(entry map[string]any) (out []map[string]any) {
	scheme := word(orEmpty(entry["scheme"]))
	if scheme == "" {
		scheme = "https"
	}
	var port any = json.Number("443")
	if scheme == "http" {
		port = json.Number("80")
	}
	if entry["port"] != nil {
		port = entry["port"]
	}
	path := word(orEmpty(entry["path"]))
	if path == "" {
		path = "/"
	}
	base := map[string]any{
		"subject": map[string]any{"kind": "tool", "name": "x", "effect": "read", "pos": map[string]any{"file": "catalog/x.cue", "line": json.Number("1"), "col": json.Number("1")}},
		"target": map[string]any{"kind": "http", "headers": []any{}, "secrets": []any{}, "url": map[string]any{
			"scheme": scheme, "host": word(entry["host"]), "port": port, "path": path, "segments": []any{}, "template": false,
			"tls": map[string]any{"min_version": "1.2", "server_name": word(entry["host"]), "verified": true},
		}},
		"observed": map[string]any{"sha256": "", "in_tree": false, "addresses": []any{"93.184.216.34"}},
	}
	with := func(path string, value any) {
		data := cloned(base).(map[string]any)
		put(data, strings.Split(path, "."), value)
		tidy(decision.Connect, data)
		out = append(out, data)
	}
	with("target.kind", "http")
	with("subject.kind", "server")
	with("target.url.path", "/")
	with("target.url.path", strings.TrimSuffix(path, "/")+"/x")
	with("target.url.path", path+"x")
	for _, odd := range []string{"/elsewhere", path + "/../x", path + "//x", path + "/%2e%2e/x", path + `\x`} {
		with("target.url.path", odd)
	}
	with("target.url.template", true)
	with("target.url.host", "elsewhere.example.com")
	with("target.url.scheme", "http")
	with("target.url.port", json.Number("8443"))
	with("target.headers", []any{"X"})
	with("target.headers", texts(words(entry["headers"])))
	for _, name := range words(entry["headers"]) {
		with("target.headers", []any{name})
	}
	for _, name := range append(words(entry["from_call"]), "x") {
		with("target.from_call", []any{name})
	}
	for _, references := range secretsOf(entry) {
		with("target.secrets", references)
	}
	with("observed.addresses", []any{"10.1.2.3"})
	return out
}

// scenarios returns questions of the points that are not about one declaration: changed definitions, and
// candidates for adoption. names are of branches.
func scenarios(point decision.Point, names []string) (out []map[string]any) {
	if point == decision.Discover {
		identity := map[string]any{"name": "x", "version": "1", "protocol": "2025-11-25"}
		for _, change := range changeKinds {
			for _, effect := range []string{"read", "write", ""} {
				for _, found := range [][]any{{}, {"instructions: x"}, {"hidden_unicode: x", "look_alike: x", "other_tool: x"}} {
					out = append(out, map[string]any{
						"server": map[string]any{"name": "x", "trust": "x", "locked": identity, "offered": identity},
						"tool":   map[string]any{"name": "x", "catalog": "x_x", "effect": effect},
						"change": change, "from": "", "details": []any{}, "findings": found,
					})
				}
			}
		}
		return out
	}
	for _, name := range append([]string{"b"}, names...) {
		for _, c := range adoptions {
			data, err := decoded([]byte(fmt.Sprintf(c, jsonText(name))))
			if err != nil {
				panic(fmt.Sprintf("diff: a scenario must encode as JSON: %v", err))
			}
			m := data.(map[string]any)
			m["changes"] = merged(noChanges, mapping(m["changes"]))
			m["tests"] = merged(map[string]any{"run": true, "passed": json.Number("3"), "failed": json.Number("0"), "skipped": json.Number("0"), "failures": []any{}}, mapping(m["tests"]))
			for _, side := range []string{"serving", "candidate"} {
				if m[side] != nil {
					m[side] = merged(emptyGeneration, mapping(m[side]))
				}
			}
			out = append(out, m)
		}
	}
	return out
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// changeKinds are the kinds of decision.DiscoverInput.
var changeKinds = []string{
	"identical", "new", "removed", "arguments_widened", "arguments_narrowed", "result_changed", "description_only", "annotation_lowered",
	"renamed", "unusable",
}

var noChanges = map[string]any{
	"tools_added": []any{}, "tools_removed": []any{}, "tools_changed": []any{}, "servers_added": []any{}, "servers_removed": []any{},
	"servers_changed": []any{}, "branches_added": []any{}, "branches_removed": []any{}, "visibility_gained": []any{}, "visibility_lost": []any{},
	"trust_gained": []any{}, "trust_lost": []any{}, "policy_changed": false,
}

var emptyGeneration = map[string]any{
	"generation": "sha256:x", "policy": "sha256:x", "tools": []any{"t"}, "servers": []any{}, "branches": []any{}, "visible": map[string]any{},
	"trusted": map[string]any{}, "commit": map[string]any{"hash": "", "clean": false},
}

// adoptions are inputs for adopting a candidate, with the fields that policies look at; %[1]s is a branch.
var adoptions = []string{
	`{"bootstrap":true,"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}}}`,
	`{"bootstrap":true,"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"tests":{"failed":1,"failures":["x"]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}}}`,
	`{"bootstrap":false,"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}}}`,
	`{"bootstrap":true,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"tests":{"failed":1,"failures":["x"]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"tests":{"failed":2,"failures":["x","y"]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s,"c"],"visible":{%[1]s:["t"],"c":["t"]}},"candidate":{"branches":[%[1]s,"c"],"visible":{%[1]s:[],"c":["t"]}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s,"c"],"visible":{%[1]s:["t","u"],"c":["t"]}},"candidate":{"branches":[%[1]s,"c"],"visible":{%[1]s:["t"],"c":["t"]}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[%[1]s],"visible":{}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:[]}},"candidate":{"branches":[%[1]s],"visible":{%[1]s:[]}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s,"c"],"visible":{%[1]s:["t"],"c":["t"]}},"candidate":{"branches":["c"],"visible":{"c":["t"]}},"changes":{"branches_removed":[%[1]s]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s],"visible":{%[1]s:["t"]}},"candidate":{"branches":[],"visible":{}},"changes":{"branches_removed":[%[1]s]}}`,
	`{"bootstrap":false,"serving":{"branches":[],"visible":{}},"candidate":{"branches":[],"visible":{}}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s]},"candidate":{"branches":[%[1]s],"tools":["t","u"]},"changes":{"tools_added":["u"]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s]},"candidate":{"branches":[%[1]s],"servers":["s"],"trusted":{"s":"s"}},"changes":{"servers_added":["s"],"trust_gained":[{"name":"s","trust":"s","labels":{}}]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s]},"candidate":{"branches":[%[1]s]},"changes":{"policy_changed":true}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s]},"candidate":{"branches":[%[1]s]},"changes":{"visibility_gained":[{"branch":%[1]s,"tool":"u","effect":"write","server":""}]}}`,
	`{"bootstrap":false,"serving":{"branches":[%[1]s]},"candidate":{"branches":[%[1]s],"commit":{"hash":"0a0a0a","clean":true}}}`,
}
