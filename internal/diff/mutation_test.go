package diff_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/diff"
)

// TestMutations changes policies at random and holds `diff` to what an oracle sees each change do: one that changes any
// decision over the oracle's population is reported with the right class. Half of the changes are made to the
// shipped policy, half to one that a house has added rules and data to. CATALOGD_MUTATIONS says how many
// there are, CATALOGD_SEED where they begin, CATALOGD_MUTATION (with the seed) is one of them.
func TestMutations(t *testing.T) {
	if raced && os.Getenv("CATALOGD_MUTATIONS") == "" {
		t.Skip("each takes a second or two of processor time: `make test` runs them without the race detector")
	}
	t.Parallel()
	n, seed := 6, 1
	n, seed = setting(t, "CATALOGD_MUTATIONS", n), setting(t, "CATALOGD_SEED", seed)
	bases := []*mutated{newMutated(t, nil, seed), newMutated(t, house, seed)}
	if number := setting(t, "CATALOGD_MUTATION", -1); number >= 0 { // one that failed
		t.Log(bases[number%len(bases)].once(t, number))
		return
	}
	tally := map[string]int{}
	for i := range n {
		tally[bases[i%len(bases)].once(t, seed*100_000+i)]++
		if i%25 == 24 {
			t.Logf("%d of %d: %v", i+1, n, tally)
		}
	}
	t.Logf("%d mutations from seed %d: %v", n, seed, tally)
}

// setting is a number of the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// mutated is a policy that is changed, again and again from the same.
type mutated struct {
	dir        string
	policy     oracle
	population []asked
	verdicts   []verdict
}

const inhabitants = 400 // of each point

func newMutated(t *testing.T, more map[string]string, seed int) *mutated {
	t.Helper()
	m := &mutated{dir: filepath.Join(t.TempDir(), "base"), population: inhabit(t, rand.New(rand.NewPCG(uint64(seed), 2)), inhabitants)}
	write(t, m.dir, more)
	var err error
	if m.policy, err = newOracle(t.Context(), m.dir); err != nil {
		t.Fatal(err)
	}
	yes := map[string]int{}
	for _, q := range m.population {
		v := m.policy.ask(t.Context(), q.point, q.input)
		m.verdicts = append(m.verdicts, v)
		if v.yes {
			yes[q.point]++
		}
	}
	t.Logf("of %d questions each are answered yes: %v", inhabitants, yes)
	for _, point := range oraclePoints {
		if n := yes[point]; n < inhabitants/50 || n > inhabitants*49/50 {
			t.Fatalf("%d of %d questions of %s are answered yes: such a population shows little of what a change does", n, inhabitants, point)
		}
	}
	return m
}

// openAccess lets the branches show what the questions are about.
const openAccess = `branches:
  default:
    declared_reads: ["*"]
    tools: ["*_*"]
  research:
    tools: ["*"]
hide: []
`

// write makes a catalog of the starter and of further files.
func write(t *testing.T, dir string, more map[string]string) {
	t.Helper()
	err := os.CopyFS(dir, catalogd.Starter())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policy/access/data.yaml"), []byte(openAccess), 0o600)
	}
	for name, text := range more {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// once makes one change, and says how it came out.
func (m *mutated) once(t *testing.T, seed int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	dir := filepath.Join(t.TempDir(), "changed")
	var what, file string
	var changed oracle
	var d *diff.Difference
	for changed == nil || d == nil {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(m.dir)); err != nil {
			t.Fatal(err)
		}
		if what, file = mutate(t, r, dir); what == "" {
			continue
		}
		var err error
		if changed, err = newOracle(t.Context(), dir); err != nil {
			continue
		}
		d, err = catalogd.Diff(t.Context(), catalogd.Config{Dir: dir}, m.dir, dir, nil)
		var refused *catalogd.RefusedError
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("mutation %d (%s): %v", seed, what, err)
		}
	}
	if len(d.Changes) == 0 {
		t.Errorf("mutation %d (%s): nothing is reported", seed, what)
		return "missed"
	}
	got := diff.Neutral
	for _, class := range []diff.Class{diff.Narrowing, diff.Unclassified, diff.Widening} {
		if slices.ContainsFunc(d.Changes, func(c diff.Change) bool { return c.Class == class }) {
			got = class
		}
	}
	wider, narrower, example := m.effect(t.Context(), changed, touched(file))
	want := diff.Neutral
	switch {
	case wider:
		want = diff.Widening
	case narrower:
		want = diff.Narrowing
	}
	switch {
	case want == diff.Neutral:
		return "no decision changes, said to be " + string(got)
	case got == want:
		return "right"
	case got == diff.Widening && m.proven(t.Context(), changed, d):
		return "right, by an example that the oracle had not asked"
	}
	t.Errorf("mutation %d (%s): %s, and the oracle saw it to be %s: %s", seed, what, got, want, example)
	return "wrong"
}

// touched are the points that a change of a file may concern: a point's own module is no other's.
func touched(file string) []string {
	for _, point := range oraclePoints {
		if name := filepath.Base(file); name == point+".rego" || name == "house_"+point+".rego" {
			return []string{point}
		}
	}
	return oraclePoints
}

// effect is what another policy does to the population.
func (m *mutated) effect(ctx context.Context, changed oracle, points []string) (wider, narrower bool, example string) {
	for i, q := range m.population {
		if !slices.Contains(points, q.point) {
			continue
		}
		w, n := apart(m.verdicts[i], changed.ask(ctx, q.point, q.input))
		if w && !wider || n && !narrower && !wider {
			b, _ := json.Marshal(q.input)
			example = q.point + " " + string(b)
		}
		wider, narrower = wider || w, narrower || n
	}
	return wider, narrower, example
}

// proven reports whether an example of a change that is said to widen does so to the oracle.
func (m *mutated) proven(ctx context.Context, changed oracle, d *diff.Difference) bool {
	for _, c := range d.Changes {
		for _, x := range c.Examples {
			dec := json.NewDecoder(strings.NewReader(string(x.Input)))
			dec.UseNumber()
			var input map[string]any
			if dec.Decode(&input) != nil {
				continue
			}
			point := string(x.Point)
			if wider, _ := apart(m.policy.ask(ctx, point, input), changed.ask(ctx, point, input)); wider {
				return true
			}
		}
	}
	return false
}

var operators = map[string]*ast.Builtin{
	"eq": ast.NotEqual, "equal": ast.NotEqual, "neq": ast.Equal, "lt": ast.GreaterThanEq, "gt": ast.LessThanEq, "lte": ast.GreaterThan, "gte": ast.LessThan,
	"startswith": ast.EndsWith, "endswith": ast.Contains, "contains": ast.StartsWith, "upper": ast.Lower, "lower": ast.Upper,
	"union": ast.Intersection, "intersection": ast.Union, "plus": ast.Minus, "minus": ast.Plus, "max": ast.Min, "min": ast.Max,
}

// conditions are added to rules.
var conditions = []string{
	`input.principal.admin`, `"staff" in input.principal.groups`, `not "guests" in input.principal.groups`, `input.tool.effect == "read"`, `input.branch.name == "default"`,
	`input.tool.name != "slugify"`, `count(input.arguments) > 0`, `input.bootstrap`, `input.observed.in_tree`, `input.target.url.scheme == "https"`, `false`, `input.change == "new"`,
	`input.tool.effect == "write"`, `input.intent.attempt == 1`, `"ops" in input.intent.approval.by.groups`,
}

// house is what a house adds to the shipped policy.
var house = map[string]string{
	"policy/house_call.rego": `package catalogd.call

deny contains "titles are short" if {
	input.tool.name == "slugify"
	count(input.arguments.title) > 20
}

deny contains "not at night" if {
	input.tool.name == "text_stats"
	time.clock(time.parse_rfc3339_ns(input.time))[0] < 6
}

deny contains "guests change nothing" if {
	input.tool.effect == "write"
	"guests" in input.principal.groups
	not "staff" in input.principal.groups
}

deny contains "no force" if {
	input.arguments.force == true
	not input.principal.admin
}

deny contains "at most ten" if input.arguments.n > 10

timeout := "5s" if input.tool.effect == "write"

rate_limit := {"calls": 20, "per": "1m"} if "guests" in input.principal.groups

relay contains "logging" if input.tool.server == "wiki"
`,
	"policy/house_list.rego": `package catalogd.list

deny contains "guests see no admin tools" if {
	startswith(input.tool.name, "admin_")
	"guests" in input.principal.groups
}

deny contains "ann has left" if input.principal.name == "ann"
`,
	"policy/house_result.rego": `package catalogd.result

redact contains "/email" if not "staff" in input.principal.groups

redact contains "/name" if input.branch.name == "research"

max_bytes := 65536 if input.tool.name == "text_stats"

deny contains "a secret" if {
	some text in input.result.text
	contains(text, "secret")
}
`,
	"policy/house_release.rego": `package catalogd.release

import future.keywords.not

deny contains "it is too old" if input.intent.age > 3600

deny contains "nobody approves its own call" if input.intent.approval.by.name == input.principal.name

deny contains "one attempt of what may not be repeated" if {
	input.intent.attempt > 1
	not input.intent.repeatable
}
`,
	"policy/house_discover.rego": `package catalogd.discover

quarantine if count(input.findings) > 0

deny contains "it says that it is another" if input.server.offered.name != input.server.locked.name
`,
	"policy/trust/data.yaml": `entries:
  clock: {command: [date, -u], rest: true}
  system: {command: [uname, [-s, -m]], env: [HOME, "LANG=C"]}
  fetch: {command: [npx, -y, x@1.2.3], max_connections: 2}
  image: {command: [docker, run, x], unpinned: true}
  shell: {command: [sh, -c, id], interpreter: true, dir: tools}
  scripts: {command: [node, server.js], in_tree: true}
  files: {command: [cat, "{path}"], from_call: [path], sha256: "` + strings.Repeat("0a", 32) + `"}
  filter: {command: [jq, .], stdin: true}
  wheels: {command: [uvx, x==1.0], env: [API_KEY], secrets: ["env:OTHER"]}
  api: {host: api.example.com, path: /v1, headers: [Accept], secrets: ["file:key.txt"]}
  near: {host: localhost, scheme: http, port: 8080, addresses: [127.0.0.0/8]}
`,
	"policy/access/data.yaml": `branches:
  default:
    tools: ["*"]
    deny: ["admin_*"]
    relay: {logging: ["book_*"], elicitation: ["*"]}
    elicitation_hosts: [login.example.com]
    approve: {"book_*": {groups: [ops], expires: 4h}}
    resources: {wiki: ["wiki://*"]}
    prompts: {wiki: ["*"]}
  research:
    tools: [slugify, text_stats, "book_*"]
    effects: [read]
hide:
  - {labels: {audience: public}, tags: [internal, text]}
`,
}
