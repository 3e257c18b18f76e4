package diff_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/rego"
)

// The oracle of TestMutations: stock OPA, asked about a population of its own. It shares nothing with what it judges.

// oracle is one policy.
type oracle map[string]rego.PreparedEvalQuery

var oraclePoints = []string{"connect", "discover", "list", "call", "result", "release", "adopt"}

// newOracle compiles a policy as `opa eval` would; an error says that it is none.
func newOracle(ctx context.Context, dir string) (oracle, error) {
	read, err := loader.NewFileLoader().Filtered([]string{dir + "/policy"}, func(path string, _ fs.FileInfo, _ int) bool {
		return strings.Contains(path, "_test.")
	})
	if err != nil {
		return nil, err
	}
	compiler, err := read.Compiler()
	if err != nil {
		return nil, err
	}
	store, err := read.Store()
	if err != nil {
		return nil, err
	}
	o := oracle{}
	for _, point := range oraclePoints {
		q, err := rego.New(rego.Query("x = data.catalogd."+point), rego.Compiler(compiler), rego.Store(store), rego.StrictBuiltinErrors(true)).PrepareForEval(ctx)
		if err != nil {
			return nil, err
		}
		o[point] = q
	}
	return o, nil
}

// verdict is what a point answers: yes or no, and what comes with a yes.
type verdict struct {
	yes bool
	out map[string]any
}

var outputsOf = map[string][]string{
	"connect": {
		"trust", "env", "from_call", "stdin", "headers", "secrets", "max_connections", "interpreter", "unpinned", "in_tree", "addresses", "sha256",
	},
	"discover": {"quarantine"},
	"list":     {"allow_resource", "allow_prompt"}, "result": {"redact", "redact_patterns", "max_bytes"},
	"call":  {"allow_resource", "allow_prompt", "timeout", "require_approval", "rate_limit", "relay", "elicitation_hosts"},
	"adopt": {}, "release": {},
}

func (o oracle) ask(ctx context.Context, point string, input map[string]any) verdict {
	rs, err := o[point].Eval(ctx, rego.EvalInput(input))
	if err != nil || len(rs) == 0 {
		return verdict{}
	}
	out, ok := rs[0].Bindings["x"].(map[string]any)
	if !ok {
		return verdict{}
	}
	yes := "allow"
	if input["resource"] != nil {
		yes = "allow_resource"
	} else if input["prompt"] != nil {
		yes = "allow_prompt"
	}
	deny, isSet := out["deny"].([]any)
	if out["deny"] == nil {
		isSet = true
	}
	v := verdict{out[yes] == true && isSet && len(deny) == 0 && wellFormed(point, out), out}
	if tool, _ := input["tool"].(map[string]any); point == "call" && out["require_approval"] != nil && (yes != "allow" || tool["effect"] != "write") {
		v.yes = false
	}
	if point == "discover" && out["quarantine"] == true {
		v.yes = false
	}
	return v
}

var (
	envNames  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(=.*)?$`)
	digests   = regexp.MustCompile(`^([0-9a-f]{64})?$`)
	hostNames = regexp.MustCompile(`^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]+)?$`)
)

// wellFormed reports whether outputs are such that docs/policy.md has them carried out; else the answer is no.
func wellFormed(point string, out map[string]any) bool {
	for name, v := range out {
		if name != "allow" && name != "deny" && !slices.Contains(outputsOf[point], name) {
			return false
		}
		switch name {
		case "allow", "allow_resource", "allow_prompt", "stdin", "interpreter", "unpinned", "in_tree", "quarantine":
			if _, ok := v.(bool); !ok {
				return false
			}
		case "timeout":
			text, _ := v.(string)
			if d, err := time.ParseDuration(text); err != nil || d <= 0 {
				return false
			}
		case "env", "from_call", "headers", "secrets", "addresses", "relay", "elicitation_hosts", "redact", "redact_patterns", "deny":
			list, ok := v.([]any)
			if !ok {
				return false
			}
			for _, x := range list {
				s, ok := x.(string)
				if !ok {
					return false
				}
				_, err := netip.ParsePrefix(s)
				switch {
				case name == "env" && !envNames.MatchString(s), name == "addresses" && err != nil,
					name == "relay" && !slices.Contains([]string{"elicitation", "logging", "roots", "sampling"}, s),
					name == "elicitation_hosts" && !hostNames.MatchString(s), name == "redact" && s != "" && !strings.HasPrefix(s, "/"):
					return false
				}
			}
		case "max_connections", "max_bytes":
			n, ok := v.(json.Number)
			if i, err := n.Int64(); !ok || err != nil || i < 0 {
				return false
			}
		case "sha256":
			if s, ok := v.(string); !ok || !digests.MatchString(s) {
				return false
			}
		case "trust":
			if s, ok := v.(string); !ok || s == "" {
				return false
			}
		case "require_approval":
			if !someoneMayApprove(v) {
				return false
			}
		case "rate_limit":
			m, ok := v.(map[string]any)
			per, _ := m["per"].(string)
			d, err := time.ParseDuration(per)
			n, _ := m["calls"].(json.Number)
			if calls, err2 := n.Int64(); !ok || err != nil || err2 != nil || len(m) != 2 || d < time.Second || d > time.Hour || calls < 1 || calls > 10_000 {
				return false
			}
		}
	}
	return point != "connect" || out["trust"] != nil
}

// someoneMayApprove reports whether an approval is one that docs/policy.md knows.
func someoneMayApprove(v any) bool {
	m, ok := v.(map[string]any)
	for name, field := range m {
		text, isText := field.(string)
		switch name {
		case "groups":
			list, isList := field.([]any)
			ok = ok && isList && !slices.ContainsFunc(list, func(x any) bool { s, isText := x.(string); return !isText || s == "" })
		case "self":
			_, isBool := field.(bool)
			ok = ok && isBool
		case "reason":
			ok = ok && isText
		case "expires":
			d, err := time.ParseDuration(text)
			ok = ok && err == nil && d > 0 && d <= 720*time.Hour
		default:
			ok = false
		}
	}
	groups, _ := m["groups"].([]any)
	return ok && (len(groups) > 0 || m["self"] == true)
}

// apart says whether the second of two verdicts lets more through, and less.
func apart(a, b verdict) (wider, narrower bool) {
	switch {
	case !a.yes && !b.yes:
		return false, false
	case !a.yes:
		return true, false
	case !b.yes:
		return false, true
	}
	more := func(w, n bool) { wider, narrower = wider || w, narrower || n }
	for _, name := range []string{"env", "from_call", "headers", "secrets", "relay", "elicitation_hosts", "addresses"} {
		more(beyond(b.out[name], a.out[name]), beyond(a.out[name], b.out[name]))
	}
	for _, name := range []string{"redact", "redact_patterns"} {
		more(beyond(a.out[name], b.out[name]), beyond(b.out[name], a.out[name]))
	}
	for _, name := range []string{"stdin", "interpreter", "unpinned", "in_tree"} {
		more(b.out[name] == true && a.out[name] != true, a.out[name] == true && b.out[name] != true)
	}
	before, after := fmt.Sprint(a.out["sha256"]), fmt.Sprint(b.out["sha256"])
	if a.out["sha256"] == nil {
		before = ""
	}
	if b.out["sha256"] == nil {
		after = ""
	}
	if before != after {
		more(before != "", after != "")
	}
	asked, wasAsked := a.out["require_approval"].(map[string]any)
	asks, isAsked := b.out["require_approval"].(map[string]any)
	switch {
	case wasAsked != isAsked:
		more(wasAsked, isAsked)
	case isAsked:
		expires := func(m map[string]any) float64 {
			if m["expires"] == nil {
				return float64(24 * time.Hour)
			}
			return length(m["expires"])
		}
		more(beyond(asks["groups"], asked["groups"]), beyond(asked["groups"], asks["groups"]))
		more(asks["self"] == true && asked["self"] != true, asked["self"] == true && asks["self"] != true)
		more(expires(asks) > expires(asked), expires(asks) < expires(asked))
	}
	limit := func(old, now float64) { // 0 is none
		if old != now {
			more(now == 0 || old != 0 && now > old, old == 0 || now != 0 && now < old)
		}
	}
	limit(count(a.out["max_connections"]), count(b.out["max_connections"]))
	limit(count(a.out["max_bytes"]), count(b.out["max_bytes"]))
	limit(length(a.out["timeout"]), length(b.out["timeout"]))
	oldRate, hadRate := a.out["rate_limit"].(map[string]any)
	newRate, hasRate := b.out["rate_limit"].(map[string]any)
	switch {
	case hadRate && !hasRate:
		more(true, false)
	case hasRate && !hadRate:
		more(false, true)
	case hasRate:
		more(count(newRate["calls"]) > count(oldRate["calls"]) || length(newRate["per"]) < length(oldRate["per"]),
			count(newRate["calls"]) < count(oldRate["calls"]) || length(newRate["per"]) > length(oldRate["per"]))
	}
	return wider, narrower
}

func beyond(a, b any) bool {
	has, _ := b.([]any)
	all, _ := a.([]any)
	return slices.ContainsFunc(all, func(x any) bool { return !slices.Contains(has, x) })
}

func count(v any) float64 {
	n, _ := v.(json.Number)
	f, _ := n.Float64()
	return f
}

func length(v any) float64 {
	s, _ := v.(string)
	d, _ := time.ParseDuration(s)
	return float64(d)
}

// asked is one input.
type asked struct {
	point string
	input map[string]any
}

// jsonOf is JSON as the oracle and a policy see it.
func jsonOf(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// inhabit makes a population: n inputs a point.
func inhabit(t *testing.T, r *rand.Rand, n int) (all []asked) {
	t.Helper()
	for range n {
		all = append(all,
			asked{"connect", jsonOf(t, someConnect(r))}, asked{"discover", jsonOf(t, someDiscover(r))}, asked{"list", jsonOf(t, someAccess(r, ""))},
			asked{"call", jsonOf(t, someAccess(r, `,"time":"`+someTime(r)+`","rate":{"minute":`+pick(r, "0", "1", "30")+`,"hour":`+pick(r, "0", "2", "500")+`}`))},
			asked{"result", jsonOf(t, someAccess(r, `,"time":"`+someTime(r)+`","result":`+someResult(r)))}, asked{"release", jsonOf(t, someRelease(r))}, asked{"adopt", jsonOf(t, someAdopt(r))})
	}
	return all
}

func someTime(r *rand.Rand) string {
	return fmt.Sprintf("2026-01-%02dT%02d:%02d:00Z", 1+r.IntN(28), r.IntN(24), r.IntN(60))
}

func someRelease(r *rand.Rand) string {
	approval := pick(r, "", fmt.Sprintf(`,"approval":{"asked":{"groups":%s,"reason":"","self":%s},"by":{"name":"%s","groups":%s},"at":"%s"}`, pick(r, `["ops"]`, `[]`), pick(r, "true", "false"),
		pick(r, "local", "ann", "eve"), pick(r, `["ops"]`, `["staff","ops"]`, `[]`), someTime(r)))
	intent := fmt.Sprintf(`{"id":"0a","staged":"%s","age":%s,"attempt":%s,"repeatable":%s,"keyed":%s,"policy_changed":%s%s}`, someTime(r), pick(r, "0", "30", "4000"), pick(r, "1", "2", "5"),
		pick(r, "true", "false"), pick(r, "true", "false"), pick(r, "true", "false"), approval)
	for {
		if asked := someAccess(r, `,"time":"`+someTime(r)+`","intent":`+intent); strings.Contains(asked, `"effect":"write"`) { // of others nobody asks
			return asked
		}
	}
}

func someResult(r *rand.Rand) string {
	return fmt.Sprintf(`{"is_error":%s,"bytes":%s,"structured":%s,"text":["%s"],"types":["text"]}`, pick(r, "true", "false"), pick(r, "3", "1000", "70000"),
		pick(r, `null`, `{}`, `{"name":"ann","email":"a@b"}`, `{"slug":"x"}`), pick(r, "", "x", "secret"))
}

// someCommands are command lines: the command, its arguments, the variables that are set, and what calls fill in.
var someCommands = []string{
	`"date",["-u","+%Y-%m-%dT%H:%M:%SZ"]`, `"date",["-u","+%Y-%m-%dT%H:%M:%SZ"]`, `"date",["-u","+%Y-%m-%dT%H:%M:%SZ"]`,
	`"uname",["-sm"]`, `"uname",["-sm"]`, `"uname",["-sm"]`, `"date",["-u"]`, `"date",[]`, `"date",["-u","+%s"]`,
	`"date",["-u","{format}"]`, `"date",["-v"]`, `"uname",["-s"]`, `"uname",["-m"]`, `"uname",["-a"]`, `"npx",["-y","x@1.2.3"]`, `"npx",["-y","x"]`, `"npx",["x@1.2.3","-c","id"]`,
	`"sh",["-c","id"]`, `"sh",["run.sh"]`, `"node",["server.js"]`, `"node",["-e","1"]`, `"python3",["-m","http"]`, `"docker",["run","x"]`,
	`"docker",["run","x@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"]`, `"env",["x"]`, `"uvx",["x==1.0"]`, `"uvx",["x"]`, `"cat",[]`, `"cat",["{path}"]`,
	`"jq",["."]`, `"pinned",[]`,
}

// mostly is the first of all, or now and then another one.
func mostly(r *rand.Rand, all ...string) string {
	if r.IntN(8) > 0 {
		return all[0]
	}
	return pick(r, all[1:]...)
}

var placeholders = regexp.MustCompile(`\{([a-z]+)\}`)

func someConnect(r *rand.Rand) string {
	target := ""
	if r.IntN(3) > 0 {
		declared, args, _ := strings.Cut(pick(r, someCommands...), ",")
		fromCall := "[]"
		if m := placeholders.FindStringSubmatch(args); m != nil {
			fromCall = mostly(r, `["`+m[1]+`"]`, `["`+m[1]+`","x"]`)
		}
		dir := mostly(r, "", "tools")
		if declared == `"sh"` {
			dir = mostly(r, "tools", "")
		}
		target = fmt.Sprintf(`"target":{"kind":"%s","headers":[],"secrets":%s,"command":{"declared":%s,"path":"/usr/bin/%s","args":%s,"script":"","dir":"%s","from_call":%s,"stdin":%s,"env":%s}}`,
			pick(r, "exec", "stdio"), mostly(r, `[]`, `["env:OTHER"]`, `["file:key.txt"]`), declared, strings.Trim(declared, `"`), args, dir, fromCall, mostly(r, "false", "true"),
			mostly(r, `[]`, `["TZ"]`, `["LD_PRELOAD"]`, `["API_KEY"]`, `["HOME"]`, `["LANG"]`))
	} else {
		path := pick(r, "/", "/v1", "/v1", "/v1/x", "/v10", "/v1/../x", "/other")
		var segments []string
		for s := range strings.SplitSeq(path, "/") {
			if s != "" {
				segments = append(segments, `"`+s+`"`)
			}
		}
		scheme, host, port := "https", pick(r, "api.example.com", "api.example.com", "localhost", "127.0.0.1", "evil.example.com"), "443"
		if host == "localhost" {
			scheme, port = "http", "8080"
		}
		target = fmt.Sprintf(`"target":{"kind":"http","headers":%s,"secrets":%s,"url":{"scheme":"%s","host":"%s","port":%s,"path":"%s","segments":[%s],"template":%s}}`,
			mostly(r, `[]`, `["Accept"]`, `["Authorization"]`), mostly(r, `[]`, `["env:OTHER"]`, `["file:key.txt"]`), mostly(r, scheme, "https", "http"), host,
			mostly(r, port, "443", "80", "8080"), path, strings.Join(segments, ","), mostly(r, "false", "true"))
	}
	return fmt.Sprintf(`{"subject":{"kind":"%s","name":"%s","effect":"%s","pos":{"file":"catalog/x.cue","line":1,"col":1}},%s,`+
		`"observed":{"sha256":"%s","in_tree":%s,"unpinned":"%s","runs_code":"%s","addresses":[]}}`,
		pick(r, "tool", "server"), pick(r, "x", "clock"), pick(r, "read", "write", ""), target, mostly(r, strings.Repeat("0a", 32), "", strings.Repeat("0b", 32)),
		mostly(r, "false", "true"), mostly(r, "", "not pinned"), mostly(r, "", "runs code"))
}

func someDiscover(r *rand.Rand) string {
	identity := func() string {
		return fmt.Sprintf(`{"name":"%s","version":"1","protocol":"2025-11-25"}`, pick(r, "x", "x", "y"))
	}
	return fmt.Sprintf(`{"server":{"name":"%s","trust":"%s","locked":%s,"offered":%s},"tool":{"name":"t","catalog":"s_t","effect":"%s"},"change":"%s","from":"%s","details":[],"findings":%s}`,
		pick(r, "s", "wiki"), pick(r, "", "s"), identity(), identity(), pick(r, "read", "write", ""),
		pick(r, "identical", "identical", "identical", "identical", "new", "removed", "arguments_widened", "arguments_narrowed", "result_changed", "description_only", "annotation_lowered", "renamed", "unusable"),
		pick(r, "", "old"), pick(r, `[]`, `[]`, `["instructions: do"]`, `["hidden_unicode: x"]`, `["look_alike: x"]`))
}

var someTools = []string{
	`{"name":"slugify","effect":"read","tags":["everyday","text"],"binding":"jq","server":"","trust":"","deprecated":false,"discovered":false}`,
	`{"name":"text_stats","effect":"read","tags":["everyday","text"],"binding":"jq","server":"","trust":"","deprecated":false,"discovered":false}`,
	`{"name":"current_time","effect":"read","tags":["everyday","time"],"binding":"exec","server":"","trust":"clock","deprecated":false,"discovered":false}`,
	`{"name":"admin_reset","effect":"write","tags":["internal"],"binding":"http","server":"","trust":"api","deprecated":true,"discovered":false}`,
	`{"name":"book_flight","effect":"write","tags":[],"binding":"mcp","server":"wiki","trust":"wiki","deprecated":false,"discovered":false}`,
}

func someAccess(r *rand.Rand, more string) string {
	tool, extra := pick(r, someTools...), ""
	if !strings.Contains(more, `"result"`) && !strings.Contains(more, `"intent"`) && r.IntN(4) == 0 {
		tool = `{"name":"","effect":"","tags":[],"binding":"","server":"","trust":"","deprecated":false,"discovered":false}`
		extra = pick(r,
			`,"resource":{"name":"wiki_a","uri":"wiki://pages/a","template":"","server":"wiki","trust":"wiki","action":"read"}`,
			`,"resource":{"name":"wiki_b","uri":"","template":"wiki://pages/{x}","server":"wiki","trust":"wiki","action":"list"}`,
			`,"resource":{"name":"admin_c","uri":"other://c","template":"","server":"other","trust":"other","action":"subscribe"}`,
			`,"prompt":{"name":"admin_p","server":"wiki","trust":"wiki","action":"get"}`, `,"prompt":{"name":"p","server":"other","trust":"other","action":"list"}`)
	}
	args := ""
	if more != "" {
		args = `,"arguments":` + pick(r, `{}`, `{"title":"short"}`, `{"title":"a title that is much longer than twenty"}`, `{"text":"secret"}`, `{"force":true}`, `{"n":5}`, `{"n":50}`,
			`{"url":"https://data.example.com/x"}`, `{"url":"https://data.example.com@evil.example.com/"}`)
	}
	return fmt.Sprintf(`{"branch":%s,"tool":%s,"principal":{%s}%s%s%s}`,
		pick(r, `{"name":"default","labels":{}}`, `{"name":"default","labels":{"audience":"public"}}`, `{"name":"research","labels":{"team":"research"}}`, `{"name":"other","labels":{}}`),
		tool, pick(r, `"name":"local","groups":[],"admin":true,"local":true`, someBearer(r), someBearer(r)), extra, args, more)
}

func someBearer(r *rand.Rand) string {
	return fmt.Sprintf(`"name":"%s","groups":%s,"admin":%s,"local":false`, pick(r, "local", "ann", "bob"), pick(r, `[]`, `["staff"]`, `["guests"]`, `["staff","guests"]`), pick(r, "true", "false"))
}

func someAdopt(r *rand.Rand) string {
	side := func() string {
		branches := pick(r, `[]`, `["default"]`, `["default","research"]`)
		return fmt.Sprintf(`{"generation":"a","policy":"%s","tools":["t"],"servers":[],"branches":%s,"visible":%s,"trusted":{},"commit":{"hash":"","clean":false}}`,
			pick(r, "p", "q"), branches, pick(r, `{}`, `{"default":["t"]}`, `{"default":["t"],"research":["t"]}`, `{"default":[],"research":["t"]}`, `{"default":["t"],"research":[]}`))
	}
	serving := ""
	if r.IntN(4) > 0 {
		serving = `"serving":` + side() + ","
	}
	lists := ""
	for _, name := range []string{"tools_added", "tools_removed", "tools_changed", "servers_added", "servers_removed", "servers_changed", "branches_added", "branches_removed"} {
		lists += fmt.Sprintf(`"%s":%s,`, name, pick(r, `[]`, `[]`, `["default"]`))
	}
	tests := pick(r, `"failed":0,"failures":[]`, `"failed":0,"failures":[]`, `"failed":1,"failures":["a"]`, `"failed":2,"failures":["a","b"]`)
	return fmt.Sprintf(`{"bootstrap":%s,%s"candidate":%s,"changes":{%s"visibility_gained":[],"visibility_lost":[],"trust_gained":[],"trust_lost":[],"policy_changed":%s},`+
		`"tests":{"run":true,"passed":1,%s,"skipped":0}}`, pick(r, "true", "false", "false"), serving, side(), lists, pick(r, "true", "false"), tests)
}
