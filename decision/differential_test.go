package decision_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/catalogd/catalogd/decision"
)

// TestDifferential holds the engine to stock OPA: under random policies (generate_test.go) and inputs, what
// it evaluates, remembers and foresees is what `opa eval` answers on the same files and the input as JSON,
// read as docs/policy.md says.
//
// DIFFERENTIAL=10m runs that long from a seed of its own, DIFFERENTIAL_SEED=N one policy again. The short run
// is the same each time.
func TestDifferential(t *testing.T) {
	t.Parallel()
	d := differential{answers: map[string]int{}}
	if seed := os.Getenv("DIFFERENTIAL_SEED"); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		d.policy(t, n)
		return
	}
	first, until := uint64(1), time.Time{}
	if long := os.Getenv("DIFFERENTIAL"); long != "" {
		length, err := time.ParseDuration(long)
		if err != nil {
			t.Fatal(err)
		}
		until, first = time.Now().Add(length), rand.Uint64()>>16
	}
	const short = 60
	for seed := first; seed < first+short || time.Now().Before(until); seed++ {
		if d.policy(t, seed); t.Failed() {
			break
		}
	}
	t.Logf("%d policies, of which %d were refused; %d questions, answers %v; %d foreseen of %d, %d of them denied", d.policies, d.refused, d.questions, d.answers,
		d.foreseen, d.asked, d.foreseenDenied)
	if d.refused*2 > d.policies || d.foreseen*20 < d.asked || d.foreseen == d.asked {
		t.Error("the generator does not make what this test is about")
	}
	for _, code := range []decision.ReasonCode{decision.Allowed, decision.Denied, decision.PolicyError, decision.BadDecisionType} {
		if d.answers[string(code)]*200 < d.questions {
			t.Errorf("only %d answers are %s", d.answers[string(code)], code)
		}
	}
	if d.answers[string(decision.UnsupportedObligation)] == 0 || d.answers["approval"] == 0 {
		t.Error("no call asked for an approval")
	}
}

type differential struct {
	policies, refused, questions    int
	foreseen, foreseenDenied, asked int
	answers                         map[string]int
}

// policy compares one random policy over random inputs.
func (x *differential) policy(t *testing.T, seed uint64) {
	x.policies++
	r := rand.New(rand.NewPCG(seed, 2024))
	files, data := generate(r)
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	fsys["policy/cfg/data.json"] = &fstest.MapFile{Data: raw}
	engine, problems := decision.Load(t.Context(), fsys, decision.Config{Deadline: time.Minute})
	if engine == nil {
		x.refused++ // such as a comparison of types that never fit
		if os.Getenv("DIFFERENTIAL_SEED") != "" {
			t.Logf("refused: %v\n%s", problems.Err(), shown(files))
		}
		return
	}
	stock := map[decision.Point]rego.PreparedEvalQuery{}
	for _, point := range []decision.Point{decision.List, decision.Call, decision.Result, decision.Release} {
		options := []func(*rego.Rego){
			rego.Query("data.catalogd." + string(point)), rego.StrictBuiltinErrors(true), rego.Store(inmem.NewFromObject(map[string]any{"cfg": data})),
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			options = append(options, rego.Module(name, files[name]))
		}
		prepared, err := rego.New(options...).PrepareForEval(t.Context())
		if err != nil {
			t.Fatalf("seed %d: stock OPA refuses what the engine takes: %v\n%s", seed, err, shown(files))
		}
		stock[point] = prepared
	}
	ask := func(point decision.Point, input map[string]any) expected {
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		var document any // numbers as opa eval reads them
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&document); err != nil {
			t.Fatal(err)
		}
		results, err := stock[point].Eval(t.Context(), rego.EvalInput(document))
		if err != nil {
			return expected{code: decision.PolicyError}
		}
		if len(results) == 0 {
			return expected{code: decision.Undefined}
		}
		return interpret(point, input, results[0].Expressions[0].Value)
	}
	fail := func(how string, point decision.Point, input map[string]any, got decision.Decision, want expected) {
		raw, _ := json.Marshal(input)
		t.Errorf("DIFFERENTIAL_SEED=%d: %s: %s answers %+v, stock OPA %+v, about\n%s\n%s", seed, how, point, got, want, raw, shown(files))
	}

	// Two questions, and such as differ in one thing from them, so that what is remembered of one is what the
	// next is answered by wherever that thing is forgotten; each twice, in any order.
	calls := []decision.CallInput{randomCall(r), randomCall(r)}
	for range 22 {
		calls = append(calls, changed(r, calls[r.IntN(2)]))
	}
	calls = append(calls, calls...)
	r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	for _, in := range calls {
		if t.Failed() {
			return
		}
		doc := callDocument(in)
		want := ask(decision.Call, doc)
		x.count(want)
		if d := engine.Call(t.Context(), in); !want.is(d) {
			fail("a remembered call", decision.Call, doc, d, want)
		}
		if e, err := engine.Explain(t.Context(), decision.Call, in); err != nil || !want.is(e.Decision) {
			fail("an evaluated call", decision.Call, doc, e.Decision, want)
		}
		x.asked++
		bare := in
		bare.Arguments, bare.Time, bare.Rate = nil, time.Time{}, decision.Rate{}
		d, known := engine.ConstantCall(t.Context(), bare)
		if known {
			x.foreseen++
			if !d.Allow {
				x.foreseenDenied++
			}
		}
		if (known || d.Code != "") && !want.is(d) {
			fail("a foreseen call", decision.Call, doc, d, want)
		}

		list := decision.ListInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal}
		doc = commonDocument(in.Branch, in.Tool, in.Principal)
		want = ask(decision.List, doc)
		x.count(want)
		if d := engine.List(t.Context(), list); !want.is(d) {
			fail("a list", decision.List, doc, d, want)
		}

		result := decision.ResultInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal, Arguments: in.Arguments, Time: in.Time, Result: randomResult(r)}
		doc = resultDocument(result)
		want = ask(decision.Result, doc)
		x.count(want)
		late := result
		late.Result = decision.ToolResult{}
		if d := engine.Result(t.Context(), late, func() decision.ToolResult { return result.Result }); !want.is(d) {
			fail("a remembered result", decision.Result, doc, d, want)
		}
		if e, err := engine.Explain(t.Context(), decision.Result, result); err != nil || !want.is(e.Decision) {
			fail("an evaluated result", decision.Result, doc, e.Decision, want)
		}
		d, known = engine.ConstantResult(t.Context(), decision.ResultInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal})
		if (known || d.Code != "") && !want.is(d) {
			fail("a foreseen result", decision.Result, doc, d, want)
		}

		release := decision.ReleaseInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal, Arguments: in.Arguments, Time: in.Time, Intent: randomIntent(r)}
		doc = releaseDocument(release)
		want = ask(decision.Release, doc)
		x.count(want)
		if d := engine.Release(t.Context(), release); !want.is(d) {
			fail("a remembered release", decision.Release, doc, d, want)
		}
		if e, err := engine.Explain(t.Context(), decision.Release, release); err != nil || !want.is(e.Decision) {
			fail("an evaluated release", decision.Release, doc, e.Decision, want)
		}
		d, known = engine.ConstantRelease(t.Context(), decision.ReleaseInput{Branch: in.Branch, Tool: in.Tool, Principal: in.Principal})
		if (known || d.Code != "") && !want.is(d) {
			fail("a foreseen release", decision.Release, doc, d, want)
		}
	}
	// Principals of the same claims are answered the same about lists, and about calls of which that is foreseen.
	for range 40 {
		a := randomCall(r)
		b := changed(r, a)
		if engine.ListClaims(a.Principal) != engine.ListClaims(b.Principal) {
			continue
		}
		b.Branch, b.Tool = a.Branch, a.Tool // who asks is all that differs
		one := ask(decision.List, commonDocument(a.Branch, a.Tool, a.Principal))
		other := ask(decision.List, commonDocument(b.Branch, b.Tool, b.Principal))
		if !reflect.DeepEqual(one, other) {
			t.Errorf("DIFFERENTIAL_SEED=%d: %+v and %+v have the same claims, and are listed %s: %+v, %+v\n%s", seed, a.Principal, b.Principal, a.Tool.Name, one, other, shown(files))
		}
		d, known := engine.ConstantCall(t.Context(), a)
		if doc := callDocument(b); known {
			if want := ask(decision.Call, doc); !want.is(d) {
				fail("a call foreseen for another of the same claims", decision.Call, doc, d, want)
			}
		}
	}
}

func (x *differential) count(want expected) {
	x.questions++
	x.answers[string(want.code)]++
	if want.approval != nil {
		x.answers["approval"]++
	}
}

func shown(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, files[name])
	}
	return b.String()
}

// expected is a decision as docs/policy.md reads the value of a point's package.
type expected struct {
	code     decision.ReasonCode
	reasons  []string
	timeout  string
	approval *decision.Approval
	redact   []string
	maxBytes int
}

// interpret reads what opa eval prints, where sets are arrays.
func interpret(point decision.Point, input map[string]any, value any) expected {
	document, _ := value.(map[string]any)
	want := expected{code: decision.Allowed}
	worst := func(code decision.ReasonCode) {
		order := []decision.ReasonCode{decision.UnsupportedObligation, decision.BadDecisionType, decision.UnknownOutput}
		if slices.Index(order, code) > slices.Index(order, want.code) {
			want = expected{code: code}
		}
	}
	texts := func(name string) (all []string) {
		list, ok := document[name].([]any)
		if document[name] != nil && !ok {
			worst(decision.BadDecisionType)
		}
		for _, v := range list {
			s, ok := v.(string)
			if !ok {
				worst(decision.BadDecisionType)
			}
			all = append(all, s)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	reasons := texts("deny")
	allow, isBool := document["allow"].(bool)
	_, hasAllow := document["allow"]
	if hasAllow && !isBool {
		worst(decision.BadDecisionType)
	}
	switch point {
	case decision.Call:
		if v, ok := document["timeout"]; ok {
			s, _ := v.(string)
			if d, err := time.ParseDuration(s); err != nil || d <= 0 {
				worst(decision.BadDecisionType)
			}
			want.timeout = s
		}
		if v, ok := document["require_approval"]; ok {
			a, ok := expectedApproval(v)
			switch effect := input["tool"].(map[string]any)["effect"]; {
			case !ok:
				worst(decision.BadDecisionType)
			case effect != "write":
				worst(decision.UnsupportedObligation)
			default:
				want.approval = &a
			}
		}
	case decision.Result:
		want.redact = texts("redact")
		if slices.ContainsFunc(want.redact, func(p string) bool { return !strings.HasPrefix(p, "/") && p != "" }) {
			worst(decision.BadDecisionType)
		}
		if v, ok := document["max_bytes"]; ok {
			n, _ := v.(json.Number)
			i, err := strconv.Atoi(string(n))
			if err != nil || i < 0 {
				worst(decision.BadDecisionType)
			}
			want.maxBytes = i
		}
	}
	switch {
	case want.code != decision.Allowed:
		return expected{code: want.code}
	case len(reasons) > 0:
		return expected{code: decision.Denied, reasons: reasons}
	case !hasAllow:
		return expected{code: decision.Undefined}
	case !allow:
		return expected{code: decision.Denied}
	}
	return want
}

// expectedApproval reads an approval; false where it is none that anybody could give.
func expectedApproval(value any) (a decision.Approval, ok bool) {
	fields, ok := value.(map[string]any)
	a.Groups, a.Expires = []string{}, 24*time.Hour
	for name, v := range fields {
		fits := false
		switch name {
		case "groups":
			var list []any
			list, fits = v.([]any)
			for _, g := range list {
				name, isText := g.(string)
				fits = fits && isText && name != ""
				a.Groups = append(a.Groups, name)
			}
		case "reason":
			a.Reason, fits = v.(string)
		case "self":
			a.Self, fits = v.(bool)
		case "expires":
			text, _ := v.(string)
			d, err := time.ParseDuration(text)
			a.Expires, fits = d, err == nil && d > 0 && d <= 30*24*time.Hour
		}
		ok = ok && fits
	}
	slices.Sort(a.Groups)
	a.Groups = slices.Compact(a.Groups)
	return a, ok && (len(a.Groups) > 0 || a.Self)
}

func (want expected) is(d decision.Decision) bool {
	if d.Code != want.code || d.Allow != (want.code == decision.Allowed) {
		return false
	}
	switch d.Code {
	case decision.Denied:
		return want.reasons == nil && len(d.Reasons) == 1 && strings.HasPrefix(d.Reasons[0], "no rule of") || slices.Equal(d.Reasons, want.reasons)
	case decision.Allowed:
		timeout := ""
		if d.Timeout > 0 {
			timeout = d.Timeout.String()
		}
		return timeout == want.timeout && reflect.DeepEqual(d.RequireApproval, want.approval) && slices.Equal(d.Redact, want.redact) && d.MaxBytes == want.maxBytes
	}
	return true
}

// The inputs as docs/policy.md describes them, written without the engine's code.

func commonDocument(b decision.Branch, tool decision.Tool, p decision.Principal) map[string]any {
	labels := map[string]any{}
	for k, v := range b.Labels {
		labels[k] = v
	}
	return map[string]any{
		"branch": map[string]any{"name": b.Name, "labels": labels},
		"tool": map[string]any{
			"name": tool.Name, "effect": tool.Effect, "tags": append([]string{}, tool.Tags...), "binding": tool.Binding, "server": tool.Server,
			"trust": tool.Trust, "deprecated": tool.Deprecated, "discovered": tool.Discovered,
		},
		"principal": map[string]any{"name": p.Name, "groups": append([]string{}, p.Groups...), "admin": p.Admin, "local": p.Local},
	}
}

func callDocument(in decision.CallInput) map[string]any {
	doc := commonDocument(in.Branch, in.Tool, in.Principal)
	doc["arguments"] = in.Arguments
	doc["time"] = in.Time.Format(time.RFC3339)
	doc["rate"] = map[string]any{"minute": in.Rate.Minute, "hour": in.Rate.Hour}
	return doc
}

func resultDocument(in decision.ResultInput) map[string]any {
	doc := commonDocument(in.Branch, in.Tool, in.Principal)
	doc["arguments"] = in.Arguments
	doc["time"] = in.Time.Format(time.RFC3339)
	doc["result"] = map[string]any{
		"is_error": in.Result.IsError, "bytes": in.Result.Bytes, "structured": in.Result.Structured, "text": append([]string{}, in.Result.Text...),
		"types": append([]string{}, in.Result.Types...),
	}
	return doc
}

func releaseDocument(in decision.ReleaseInput) map[string]any {
	doc := commonDocument(in.Branch, in.Tool, in.Principal)
	doc["arguments"] = in.Arguments
	doc["time"] = in.Time.Format(time.RFC3339)
	intent := map[string]any{
		"id": in.Intent.ID, "staged": in.Intent.Staged.Format(time.RFC3339), "age": in.Intent.Age, "attempt": in.Intent.Attempt,
		"repeatable": in.Intent.Repeatable, "keyed": in.Intent.Keyed, "policy_changed": in.Intent.PolicyChanged,
	}
	if a := in.Intent.Approval; a != nil {
		intent["approval"] = map[string]any{
			"asked": map[string]any{"groups": append([]string{}, a.Asked.Groups...), "reason": a.Asked.Reason, "self": a.Asked.Self},
			"by":    map[string]any{"name": a.By.Name, "groups": append([]string{}, a.By.Groups...)}, "at": a.At.Format(time.RFC3339),
		}
	}
	doc["intent"] = intent
	return doc
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func some(r *rand.Rand, from ...string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(string) bool { return r.IntN(2) == 0 })
}

func randomCall(r *rand.Rand) decision.CallInput {
	in := decision.CallInput{
		Branch:    decision.Branch{Name: pick(r, names[:2]...), Labels: map[string]string{}},
		Tool:      decision.Tool{Name: pick(r, names[:3]...), Effect: pick(r, "read", "write"), Binding: "jq", Server: pick(r, "", "a"), Tags: some(r, "a", "b"), Deprecated: r.IntN(4) == 0, Discovered: r.IntN(4) == 0},
		Principal: decision.Principal{Name: pick(r, names[:3]...), Groups: some(r, "a", "b", "c"), Admin: r.IntN(3) == 0, Local: r.IntN(3) == 0},
		Time:      time.Date(2026, 1, 5, 8+r.IntN(3), 0, r.IntN(2), 0, time.UTC),
		Rate:      decision.Rate{Minute: r.IntN(3), Hour: r.IntN(5)},
	}
	for _, label := range some(r, "a", "b") {
		in.Branch.Labels[label] = pick(r, names...)
	}
	in.Arguments = randomArguments(r)
	return in
}

// changed is a call with other arguments, time and rate, that differs in one more thing.
func changed(r *rand.Rand, in decision.CallInput) decision.CallInput {
	other := randomCall(r)
	in.Arguments, in.Time, in.Rate = other.Arguments, other.Time, other.Rate
	switch r.IntN(10) {
	case 9:
		in.Principal.Local = other.Principal.Local
	case 0:
		in.Branch.Name = other.Branch.Name
	case 1:
		in.Branch.Labels = other.Branch.Labels
	case 2:
		in.Tool.Name = other.Tool.Name
	case 3:
		in.Tool.Effect, in.Tool.Deprecated = other.Tool.Effect, other.Tool.Deprecated
	case 4:
		in.Tool.Server = other.Tool.Server
	case 5:
		in.Tool.Tags = other.Tool.Tags
	case 6:
		in.Principal.Name = other.Principal.Name
	case 7:
		in.Principal.Groups = other.Principal.Groups
	case 8:
		in.Principal.Admin = other.Principal.Admin
	}
	return in
}

func randomIntent(r *rand.Rand) decision.Intent {
	in := decision.Intent{
		ID: pick(r, "a", "b"), Staged: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), Age: r.IntN(3) * 60, Attempt: 1 + r.IntN(3), Repeatable: r.IntN(2) == 0,
		Keyed: r.IntN(2) == 0, PolicyChanged: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		in.Approval = &decision.IntentApproval{
			Asked: decision.AskedApproval{Groups: some(r, "a", "b"), Reason: pick(r, "a", ""), Self: r.IntN(2) == 0},
			By:    decision.Approver{Name: pick(r, names...), Groups: some(r, "a", "b", "c")}, At: in.Staged.Add(time.Minute),
		}
	}
	return in
}

func randomArguments(r *rand.Rand) json.RawMessage {
	args := map[string]any{}
	if r.IntN(3) > 0 {
		args["q"] = pick[any](r, "a", "b", "c", false, 1, nil, []string{"a"})
	}
	if r.IntN(3) > 0 {
		args["n"] = pick[any](r, 0, 1, 2, 9007199254740993, 1.50, "7", "x")
	}
	if r.IntN(2) > 0 {
		args["list"] = some(r, "a", "b", "c")
	}
	if r.IntN(2) > 0 {
		args["deep"] = map[string]any{"q": pick[any](r, "a", "b", true)}
	}
	if r.IntN(5) == 0 {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return raw
}

func randomResult(r *rand.Rand) decision.ToolResult {
	return decision.ToolResult{
		IsError: r.IntN(4) == 0, Bytes: r.IntN(200), Structured: pick(r, json.RawMessage("null"), json.RawMessage(`{"a":"b"}`), randomArguments(r)),
		Text: some(r, "a", "b and c"), Types: some(r, "image", "text"),
	}
}
