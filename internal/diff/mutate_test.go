package diff_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.yaml.in/yaml/v3"
)

// mutate changes one rule or one value below dir/policy, and says what and in which file; empty where that
// came to nothing.
func mutate(t *testing.T, r *rand.Rand, dir string) (what, file string) {
	t.Helper()
	var modules, data []string
	err := filepath.WalkDir(filepath.Join(dir, "policy"), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() || strings.HasSuffix(name, "_test.rego"):
		case filepath.Ext(name) == ".rego":
			modules = append(modules, name)
		default:
			data = append(data, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(3) == 0 {
		file = pick(r, data...)
		return mutateData(t, r, file), file
	}
	file = pick(r, modules...)
	return mutateModule(t, r, file), file
}

func mutateModule(t *testing.T, r *rand.Rand, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	module, err := ast.ParseModuleWithOpts(name, string(content), ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		t.Fatal(err)
	}
	rule := pick(r, module.Rules...)
	before := string(rule.Location.Text)
	at := rule.Location.Offset
	if rule.Default { // whose location is the keyword
		before, _, _ = strings.Cut(string(content[at:]), "\n")
	}
	if string(content[at:at+len(before)]) != before {
		return ""
	}
	after, how := "", "remove"
	switch r.IntN(10) {
	case 0:
	case 1:
		how = "add an output"
		after = before + "\n\n" + someOutput(r, module.Package.Path.String())
	default:
		copied := rule.Copy()
		copied.Module = module
		if how = mutateRule(r, copied); how == "" {
			return ""
		}
		after = copied.String()
		if r.IntN(4) == 0 {
			how, after = how+", beside the old rule", before+"\n\n"+after
		}
	}
	text := string(content[:at]) + after + string(content[at+len(before):])
	if after == before || os.WriteFile(name, []byte(text), 0o600) != nil {
		return ""
	}
	return fmt.Sprintf("%s in %s: %s -> %s", how, filepath.Base(name), before, after)
}

// mutateRule changes a condition, a literal, an operator or the value of a rule.
func mutateRule(r *rand.Rand, rule *ast.Rule) (how string) {
	body := rule.Body
	switch r.IntN(6) {
	case 0:
		if len(body) < 2 {
			return ""
		}
		i := r.IntN(len(body))
		rule.Body = slices.Delete(slices.Clone(body), i, i+1)
		for i := range rule.Body {
			rule.Body[i].Index = i
		}
		return "take out a condition"
	case 1:
		x := body[r.IntN(len(body))]
		if x.IsAssignment() || x.IsSome() {
			return ""
		}
		x.Negated = !x.Negated
		return "negate"
	case 2:
		if extra := pick(r, conditions...); len(body) > 0 {
			parsed, err := ast.ParseBodyWithOpts(extra, ast.ParserOptions{RegoVersion: ast.RegoV1})
			if err != nil {
				return ""
			}
			for _, x := range parsed {
				rule.Body.Append(x)
			}
			return "one more condition"
		}
	case 3:
		var found []*ast.Term
		ast.WalkTerms(rule, func(t *ast.Term) bool {
			if ref, ok := t.Value.(ast.Ref); ok && operators[ref.String()] != nil {
				found = append(found, t)
			}
			return false
		})
		for _, x := range body {
			if terms, ok := x.Terms.([]*ast.Term); ok && operators[terms[0].String()] != nil {
				found = append(found, terms[0])
			}
		}
		if len(found) == 0 {
			return ""
		}
		t := pick(r, found...)
		t.Value = operators[t.Value.String()].Ref()
		return "another operator"
	}
	return mutateLiteral(r, rule)
}

func someOutput(r *rand.Rand, pkg string) string {
	if !slices.Contains([]string{"data.catalogd.call", "data.catalogd.result", "data.catalogd.connect", "data.catalogd.discover", "data.catalogd.list", "data.catalogd.release", "data.catalogd.adopt"}, pkg) {
		return ""
	}
	output := pick(r, `deny contains "no"`, `deny contains "no"`, "allow")
	switch pkg {
	case "data.catalogd.call":
		output = pick(r, output, `timeout := "2s"`, `rate_limit := {"calls": 5, "per": "1m"}`, `relay contains "sampling"`, `elicitation_hosts contains "x.example.com"`,
			`require_approval := {"groups": ["ops"]}`, `require_approval := {"self": true, "expires": "1h"}`)
	case "data.catalogd.result":
		output = pick(r, output, `redact contains "/slug"`, `redact_patterns contains "[0-9]+"`, `max_bytes := 100`)
	case "data.catalogd.discover":
		output = pick(r, output, "quarantine")
	}
	return output + " if " + pick(r, conditions...)
}

// mutateLiteral changes one literal, or takes one out of a collection.
func mutateLiteral(r *rand.Rand, rule *ast.Rule) string {
	var found []*ast.Term
	visit := func(t *ast.Term) bool {
		switch t.Value.(type) {
		case ast.String, ast.Number, ast.Boolean, ast.Set, *ast.Array:
			found = append(found, t)
		case ast.Ref:
			return true // its parts are names
		}
		return false
	}
	for _, x := range rule.Body {
		ast.WalkTerms(x, visit)
	}
	for _, t := range []*ast.Term{rule.Head.Key, rule.Head.Value} {
		if t != nil {
			ast.WalkTerms(t, visit)
		}
	}
	if len(found) == 0 {
		return ""
	}
	t := pick(r, found...)
	switch v := t.Value.(type) {
	case ast.String:
		t.Value = ast.String(pick(r, string(v)+"x", "default", "local", "guests", "*", "", strings.ToUpper(string(v))))
	case ast.Number:
		i, _ := v.Int()
		t.Value = ast.Number(strconv.Itoa(pick(r, i+1, i-1, 0, i*10)))
	case ast.Boolean:
		t.Value = !v
	case ast.Set:
		if v.Len() == 0 {
			return ""
		}
		out, without := ast.NewSet(), r.IntN(v.Len())
		for i, elem := range v.Slice() {
			if i != without {
				out.Add(elem)
			}
		}
		t.Value = out
	case *ast.Array:
		if v.Len() == 0 {
			return ""
		}
		out, without := ast.NewArray(), r.IntN(v.Len())
		for i := range v.Len() {
			if i != without {
				out = out.Append(v.Elem(i))
			}
		}
		t.Value = out
	}
	return "another literal"
}

// mutateData changes one value of a data file, takes one out or adds one.
func mutateData(t *testing.T, r *rand.Rand, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var data map[string]any
	if err := yaml.Unmarshal(content, &data); err != nil {
		t.Fatal(err)
	}
	how := mutateValue(r, data, filepath.Base(filepath.Dir(name)))
	text, err := yaml.Marshal(data)
	if how == "" || err != nil || os.WriteFile(name, text, 0o600) != nil {
		return ""
	}
	return how + " in " + name
}

func mutateValue(r *rand.Rand, data map[string]any, area string) string {
	type place struct {
		in  map[string]any
		key string
	}
	var places []place
	var walk func(m map[string]any)
	walk = func(m map[string]any) {
		for _, key := range sorted(m) {
			places = append(places, place{m, key})
			switch v := m[key].(type) {
			case map[string]any:
				walk(v)
			case []any:
				for _, x := range v {
					if below, ok := x.(map[string]any); ok {
						walk(below)
					}
				}
			}
		}
	}
	walk(data)
	if len(places) == 0 {
		return ""
	}
	at := pick(r, places...)
	v := at.in[at.key]
	switch v := v.(type) {
	case map[string]any:
		if r.IntN(4) > 0 {
			return addTo(r, v, at.key, area)
		}
	case []any:
		if len(v) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(v))
			at.in[at.key] = slices.Delete(slices.Clone(v), i, i+1)
			return fmt.Sprintf("%s loses %v", at.key, v[i])
		}
		added := any(pick(r, "*", "x", "slugify", "admin_*", "guests", "-u", "TOKEN", "AWS_SECRET_ACCESS_KEY", "env:OTHER", "10.0.0.0/8", "read", "write", "default"))
		if at.key == "hide" {
			added = map[string]any{"labels": map[string]any{"audience": "public"}, "tags": []any{pick(r, "text", "internal", "everyday")}}
		}
		at.in[at.key] = append(slices.Clone(v), added)
		return fmt.Sprintf("%s gains %v", at.key, added)
	case string:
		at.in[at.key] = pick(r, v+"x", "default", "/", "tools", "http", "localhost")
		return fmt.Sprintf("%s: %s -> %v", at.key, v, at.in[at.key])
	case bool:
		at.in[at.key] = !v
		return at.key + " flipped"
	case int:
		at.in[at.key] = pick(r, v+1, v-1, v*10)
		return fmt.Sprintf("%s: %d -> %v", at.key, v, at.in[at.key])
	}
	delete(at.in, at.key)
	return at.key + " removed"
}

func addTo(r *rand.Rand, m map[string]any, key, area string) string {
	fields := map[string]any{}
	switch {
	case area == "trust" && key == "entries":
		fields["new"] = map[string]any{"command": []any{pick(r, "sh", "cat", "env", "npx", "date")}}
		fields["net"] = map[string]any{"host": "evil.example.com"}
	case area == "trust":
		fields = map[string]any{
			"env": []any{pick(r, "AWS_SECRET_ACCESS_KEY", "TZ=UTC", "HOME")}, "interpreter": true, "unpinned": true, "in_tree": true, "rest": true, "stdin": true,
			"from_call": []any{pick(r, "format", "path", "x")}, "secrets": []any{pick(r, "env:OTHER", "file:key.txt")}, "sha256": strings.Repeat(pick(r, "0a", "0c"), 32), "dir": "tools", "max_connections": 3,
		}
		if m["host"] != nil {
			fields = map[string]any{"addresses": []any{"10.0.0.0/8"}, "headers": []any{"Accept"}, "secrets": []any{pick(r, "env:OTHER", "file:key.txt")}, "path": "/v1", "port": 8080, "scheme": "http", "max_connections": 3}
		}
	case area == "access" && key == "branches":
		fields["other"] = map[string]any{"tools": []any{pick(r, "*", "slugify")}}
	case area == "access" && key == "approve":
		fields[pick(r, "*", "admin_reset", "book_*")] = map[string]any{"self": true}
	case area == "access" && (m["groups"] != nil || m["self"] != nil): // what an entry of approve asks for
		fields = map[string]any{"groups": []any{"staff"}, "self": true, "reason": "why", "expires": pick(r, "1h", "48h")}
	case area == "access":
		fields = map[string]any{
			"deny": []any{pick(r, "slugify", "admin_*", "*")}, "effects": []any{pick(r, "read", "write")}, "relay": map[string]any{"logging": []any{"*"}},
			"approve":           map[string]any{pick(r, "*", "book_*", "slugify"): map[string]any{"groups": []any{pick(r, "ops", "staff")}}},
			"elicitation_hosts": []any{"x.example.com"}, "resources": map[string]any{"wiki": []any{"*"}}, "prompts": map[string]any{"wiki": []any{"*"}},
		}
	}
	if len(fields) == 0 {
		return ""
	}
	field := pick(r, sorted(fields)...)
	if m[field] != nil {
		return ""
	}
	m[field] = fields[field]
	return fmt.Sprintf("%s gains the field %s: %v", key, field, fields[field])
}

func sorted(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
