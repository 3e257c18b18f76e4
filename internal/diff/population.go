package diff

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/registry"
)

// population generates the questions by which two policies are compared: every declared subject for each
// principal, then variations on both sides of what the policies look at (lint.Hint), and other values
// that a part of the input can have (decision.Policy.Values). It is deterministic.
type population struct {
	from, to   *generation.Generation
	principals []any
	seeds      map[decision.Point][]question
	// allowed are the seeds that either policy allows: a narrowing can show only in these.
	allowed   map[decision.Point][]question
	hints     map[decision.Point][]lint.Hint
	contracts map[string][]*registry.Entry
	known     map[string]bool   // declared tools and branches, and the principals, as JSON
	answers   map[string]answer // of the old policy
}

// Limits on the number of questions for each point and change.
const (
	maxSeeds    = 400 // of declared subjects
	maxTried    = 200 // of each kind of subject, to find allowed ones
	maxFound    = 24  // allowed ones of each kind of subject
	maxOfNamed  = 200 // of declared subjects that a changed rule names
	perHint     = 3   // with one part of a seed replaced by a hint
	perValue    = 4   // with one part of an allowed seed, or of any seed, replaced by a possible value
	maxCombined = 600 // with all parts that a changed rule looks at
	maxRandom   = 800 // with some parts chosen at random
)

func newPopulation(ctx context.Context, from, to *generation.Generation, principals []decision.Principal) (*population, error) {
	p := &population{
		from: from, to: to, seeds: map[decision.Point][]question{}, allowed: map[decision.Point][]question{}, hints: map[decision.Point][]lint.Hint{},
		contracts: map[string][]*registry.Entry{}, known: map[string]bool{}, answers: map[string]answer{},
	}
	for _, who := range principals {
		p.principals = append(p.principals, asData(who))
		p.known["principal"+jsonText(asData(who))] = true
	}
	for _, g := range []*generation.Generation{from, to} {
		for _, e := range g.Registry().Entries() {
			p.contracts[e.Name()] = append(p.contracts[e.Name()], e)
		}
		all := g.Subjects()
		for _, t := range all.Tools {
			for _, b := range all.Branches {
				if d, err := decision.Document(decision.List, decision.ListInput{Tool: t, Branch: b}); err == nil {
					p.known["tool"+jsonText(d["tool"])], p.known["branch"+jsonText(d["branch"])] = true, true
				}
			}
		}
	}
	for _, point := range decision.Points() {
		p.hints[point] = union(from.Engine().Policy().Hints(string(point)), to.Engine().Policy().Hints(string(point)))
		if from.Engine().Reads(point, "time") || to.Engine().Reads(point, "time") {
			p.hints[point] = append(p.hints[point], instants()...)
		}
		p.seeds[point] = p.declared(point)
		if err := p.explore(ctx, point); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// explore finds allowed questions: the allowed seeds, and more of each kind of subject, which may be allowed
// only if several parts coincide.
func (p *population) explore(ctx context.Context, point decision.Point) error {
	kinds, byKind := []string{}, map[string][]question{}
	seen := map[string]bool{}
	for _, q := range p.seeds[point] {
		kind := kindOf(q)
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], q)
		seen[q.key] = true
		yes, err := p.allows(ctx, q)
		if err != nil {
			return err
		}
		if yes {
			p.allowed[point] = append(p.allowed[point], q)
		}
	}
	rnd := rand.New(rand.NewPCG(11, 11))
	for _, kind := range kinds {
		seeds, found := byKind[kind], 0
		byPath, paths := byPath(fitting(seeds[0], p.hints[point]))
		for tried := 0; tried < maxTried && found < maxFound && len(paths) > 0; tried++ {
			var chosen []lint.Hint
			for _, path := range paths {
				if rnd.IntN(2) == 0 {
					chosen = append(chosen, pick(rnd, byPath[path]))
				}
			}
			q, ok := p.vary(pick(rnd, seeds), chosen...)
			if !ok || seen[q.key] {
				continue
			}
			seen[q.key] = true
			yes, err := p.allows(ctx, q)
			if err != nil {
				return err
			}
			if yes {
				found++
				p.seeds[point], p.allowed[point] = append(p.seeds[point], q), append(p.allowed[point], q)
			}
		}
	}
	return nil
}

// kindOf returns the kind of a question's subject; subjects of one kind have the same parts.
func kindOf(q question) string {
	for _, field := range []string{"resource", "prompt", "command", "url"} {
		if q.data[field] != nil || mapping(q.data["target"])[field] != nil {
			return field
		}
	}
	return ""
}

// allows reports whether either policy allows.
func (p *population) allows(ctx context.Context, q question) (bool, error) {
	old, err := p.before(ctx, q)
	if err != nil || old.allow {
		return old.allow, err
	}
	now, err := q.ask(ctx, p.to.Engine())
	return now.allow, err
}

// before returns the old policy's answer, which is cached.
func (p *population) before(ctx context.Context, q question) (answer, error) {
	if old, known := p.answers[q.key]; known {
		return old, nil
	}
	old, err := q.ask(ctx, p.from.Engine())
	if err == nil {
		p.answers[q.key] = old
	}
	return old, err
}

func pick[T any](rnd *rand.Rand, all []T) T { return all[rnd.IntN(len(all))] }

// fitting returns the hints about parts that the seed has.
func fitting(seed question, hints []lint.Hint) (out []lint.Hint) {
	for _, h := range hints {
		if fits(seed, h) {
			out = append(out, h)
		}
	}
	return out
}

func union(a, b []lint.Hint) (out []lint.Hint) {
	seen := map[string]bool{}
	for _, h := range slices.Concat(a, b) {
		if !seen[h.Key()] {
			seen[h.Key()] = true
			out = append(out, h)
		}
	}
	return out
}

// instants returns every hour of a Monday, and every day of a week.
func instants() (out []lint.Hint) {
	monday := time.Date(2026, 1, 5, 0, 30, 0, 0, time.UTC)
	for i := range 24 {
		out = append(out, lint.Hint{Path: []string{"time"}, Value: monday.Add(time.Duration(i) * time.Hour).Format(time.RFC3339)})
	}
	for i := range 7 {
		out = append(out, lint.Hint{Path: []string{"time"}, Value: monday.AddDate(0, 0, i).Add(12 * time.Hour).Format(time.RFC3339)})
	}
	return out
}

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC).Format(time.RFC3339)

// declared returns the questions about what both catalogs declare.
func (p *population) declared(point decision.Point) (out []question) {
	seen := map[string]bool{}
	add := func(data map[string]any, real bool) {
		if q, ok := asking(point, data); ok && !seen[q.key] {
			seen[q.key] = true
			q.real = real
			if exact, err := decision.Document(point, q.input); err == nil {
				q.data = exact
			}
			out = append(out, q)
		}
	}
	from, to := p.from.Subjects(), p.to.Subjects()
	switch point {
	case decision.Connect:
		for _, in := range slices.Concat(from.Reached, to.Reached) {
			add(asData(in).(map[string]any), true)
		}
		for _, e := range []*decision.Engine{p.from.Engine(), p.to.Engine()} {
			for _, data := range covered(e.Data()) {
				add(data, false)
			}
		}
		return out
	case decision.Discover, decision.Adopt:
		var names []string
		for _, h := range p.hints[point] {
			if name, ok := h.Value.(string); ok && len(names) < 8 {
				names = append(names, name)
			}
		}
		for _, data := range scenarios(point, names) {
			add(data, false)
		}
		return out
	}
	for _, branch := range append(slices.Concat(from.Branches, to.Branches), decision.Branch{Name: "elsewhere", Labels: map[string]string{}}) {
		for _, tool := range slices.Concat(from.Tools, to.Tools, madeUp, p.approvable()) {
			if point == decision.Release && tool.Effect != "write" {
				continue // this is never evaluated
			}
			for _, who := range p.principals {
				data := map[string]any{"branch": asData(branch), "tool": asData(tool), "principal": who}
				real := branch.Name != "elsewhere" && p.contracts[tool.Name] != nil
				if point == decision.List {
					add(data, real)
					continue
				}
				data["time"] = noon
				for _, args := range p.arguments(tool.Name) {
					with := cloned(data).(map[string]any)
					with["arguments"] = args
					switch point {
					case decision.Release:
						for _, intent := range intents {
							about := merged(with, map[string]any{"intent": intent})
							add(about, real && p.accepts(tool.Name, args))
						}
						continue
					case decision.Result:
						with["result"] = map[string]any{"is_error": false, "bytes": json.Number("10"), "structured": map[string]any{"x": "x"}, "text": []any{"x"}, "types": []any{"text"}}
					}
					add(with, real && p.accepts(tool.Name, args))
				}
			}
		}
	}
	out = thinned(out, maxSeeds)
	if point == decision.List || point == decision.Call {
		for _, branch := range append(slices.Concat(from.Branches, to.Branches), decision.Branch{Name: "elsewhere", Labels: map[string]string{}}) {
			for _, what := range forwarded {
				data := map[string]any{"branch": asData(branch), "tool": asData(decision.Tool{Tags: []string{}}), "principal": p.principals[0]}
				if point == decision.Call {
					data["time"], data["arguments"] = noon, map[string]any{}
				}
				add(merged(data, what), false)
			}
		}
	}
	return out
}

// madeUp are tools for rules about undeclared tools.
var madeUp = []decision.Tool{
	{Name: "another", Effect: "read", Tags: []string{}, Binding: "jq"}, {Name: "another_write", Effect: "write", Tags: []string{}, Binding: "http"},
}

// maxApprovable caps the tools that are made up for approve entries.
const maxApprovable = 8

// approvable returns tools that match the approve entries of the data, because the catalog may have none yet.
func (p *population) approvable() (tools []decision.Tool) {
	seen := map[string]bool{}
	for _, g := range []*generation.Generation{p.from, p.to} {
		branches := mapping(mapping(g.Engine().Data()["access"])["branches"])
		for _, branch := range keys(branches) {
			for _, pattern := range keys(mapping(mapping(branches[branch])["approve"])) {
				if name := strings.ReplaceAll(pattern, "*", "x"); !seen[name] && p.contracts[name] == nil && len(tools) < maxApprovable {
					seen[name] = true
					tools = append(tools, decision.Tool{Name: name, Effect: "write", Tags: []string{}, Binding: "http"})
				}
			}
		}
	}
	return tools
}

// intents are a new one, and one that was approved and is attempted again.
var intents = []map[string]any{
	{"id": "x", "staged": noon, "age": json.Number("0"), "attempt": json.Number("1"), "repeatable": false, "keyed": false, "policy_changed": false},
	{
		"id": "x", "staged": noon, "age": json.Number("60"), "attempt": json.Number("2"), "repeatable": true, "keyed": true, "policy_changed": true,
		"approval": map[string]any{
			"asked": map[string]any{"groups": []any{"x"}, "reason": "x", "self": false},
			"by":    map[string]any{"name": "x", "groups": []any{"x"}}, "at": noon,
		},
	},
}

// forwarded are a passthrough resource, template and prompt.
var forwarded = []map[string]any{
	{"resource": map[string]any{"name": "x", "uri": "x://x", "template": "", "server": "x", "trust": "x", "action": "read"}},
	{"resource": map[string]any{"name": "x", "uri": "", "template": "x://{x}", "server": "x", "trust": "x", "action": "list"}},
	{"prompt": map[string]any{"name": "x", "server": "x", "trust": "x", "action": "get"}},
}

func merged(a, b map[string]any) map[string]any {
	out := cloned(a).(map[string]any)
	for k, v := range b {
		out[k] = cloned(v)
	}
	return out
}

// thinned selects at most n questions at even intervals.
func thinned(all []question, n int) []question {
	if len(all) <= n {
		return all
	}
	out := make([]question, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

func (p *population) arguments(tool string) (out []any) {
	for _, e := range p.contracts[tool] {
		for _, args := range sample(e.Declared()) {
			out = append(out, any(args))
		}
	}
	if out == nil {
		out = []any{map[string]any{}}
	}
	return out
}

// accepts reports whether a contract of the tool accepts the arguments.
func (p *population) accepts(tool string, args any) bool {
	raw := json.RawMessage(jsonText(args))
	return slices.ContainsFunc(p.contracts[tool], func(e *registry.Entry) bool {
		_, violations, err := e.Contract().Check(context.Background(), raw)
		return err == nil && len(violations) == 0
	})
}

// vary returns a seed with some parts replaced by hints; ok is false if that changes nothing.
func (p *population) vary(seed question, hints ...lint.Hint) (q question, ok bool) {
	data := cloned(seed.data).(map[string]any)
	changed := false
	for _, h := range hints {
		if fits(seed, h) {
			changed = put(data, h.Path, cloned(h.Value)) || changed
		}
	}
	if !changed {
		return q, false
	}
	tidy(seed.point, data)
	if q, ok = asking(seed.point, data); ok {
		q.real = p.real(q)
	}
	return q, ok
}

// questions returns the questions of a point that concern the hints in focus, which may be empty.
func (p *population) questions(point decision.Point, focus []lint.Hint) []question {
	seeds := p.seeds[point]
	if len(seeds) == 0 {
		return nil
	}
	rnd := rand.New(rand.NewPCG(11, uint64(len(focus))))
	out, seen := slices.Clone(seeds), map[string]bool{}
	for _, q := range seeds {
		seen[q.key] = true
	}
	vary := func(seed question, hints ...lint.Hint) {
		if q, ok := p.vary(seed, hints...); ok && !seen[q.key] {
			seen[q.key] = true
			out = append(out, q)
		}
	}
	// What is declared and allowed, and has a part as a changed rule names it, with each of the rule's other parts.
	for _, seed := range p.allowed[point] {
		if !seed.real || !slices.ContainsFunc(focus, seed.has) || len(out) > len(seeds)+maxOfNamed {
			continue
		}
		for _, h := range focus {
			vary(seed, h)
		}
	}
	// Every second seed is an allowed one, if there are any.
	draws := 0
	draw := func(of func(question) bool) (question, bool) {
		draws++
		from := seeds
		if allowed := p.allowed[point]; draws%2 == 0 && len(allowed) > 0 {
			from = allowed
		}
		for range 8 {
			if q := pick(rnd, from); of(q) {
				return q, true
			}
		}
		from = slices.DeleteFunc(slices.Clone(from), func(q question) bool { return !of(q) })
		if len(from) == 0 {
			return question{}, false
		}
		return pick(rnd, from), true
	}
	every := func(question) bool { return true }
	all := p.hints[point]
	for _, h := range slices.Concat(focus, all) {
		for range perHint {
			if seed, ok := draw(func(q question) bool { return fits(q, h) }); ok {
				vary(seed, h)
			}
		}
	}
	for _, h := range p.from.Engine().Policy().Values(string(point)) {
		for _, from := range [][]question{p.allowed[point], seeds} {
			from = slices.DeleteFunc(slices.Clone(from), func(q question) bool { return !fits(q, h) })
			for _, seed := range thinned(from, perValue) {
				vary(seed, h)
			}
		}
	}
	byPath, paths := byPath(focus)
	if len(paths) > 0 {
		for range maxCombined {
			var chosen []lint.Hint
			for _, path := range paths {
				if rnd.IntN(4) > 0 {
					chosen = append(chosen, pick(rnd, byPath[path]))
				}
			}
			seed, _ := draw(every)
			vary(seed, chosen...)
		}
	}
	everywhere, places := leaves(all, focus)
	for range maxRandom {
		if len(places) == 0 {
			break
		}
		var chosen []lint.Hint
		for range 1 + rnd.IntN(4) {
			chosen = append(chosen, pick(rnd, everywhere[pick(rnd, places)]))
		}
		seed, _ := draw(every)
		vary(seed, chosen...)
	}
	return out
}

func byPath(hints []lint.Hint) (of map[string][]lint.Hint, paths []string) {
	of = map[string][]lint.Hint{}
	for _, h := range hints {
		path := strings.Join(h.Path, "\x00")
		of[path] = append(of[path], h)
	}
	return of, keys(of)
}

// leaves groups the hints by path.
func leaves(all, focus []lint.Hint) (map[string][]lint.Hint, []string) {
	return byPath(slices.Concat(all, focus))
}

// fits reports whether a hint is about a part that the seed has: a question about a tool has no resource.
func fits(seed question, h lint.Hint) bool {
	switch h.Path[0] {
	case "resource", "prompt":
		return seed.data[h.Path[0]] != nil
	case "tool":
		return seed.point == decision.Discover || seed.data["resource"] == nil && seed.data["prompt"] == nil
	case "intent":
		intent, _ := seed.data["intent"].(map[string]any)
		return intent != nil && (len(h.Path) < 2 || h.Path[1] != "approval" || intent["approval"] != nil)
	case "target":
		target, _ := seed.data["target"].(map[string]any)
		return len(h.Path) < 3 || target[h.Path[1]] != nil || h.Path[1] == "headers"
	}
	_, known := seed.data[h.Path[0]]
	return known
}

// has reports whether the question has a part, such as the name of the tool, as the hint has it.
func (q question) has(h lint.Hint) bool {
	value, ok := h.Value.(string)
	return ok && len(h.Path) == 2 && mapping(q.data[h.Path[0]])[h.Path[1]] == value
}

// real reports whether the catalog declares the subject of a varied question.
func (p *population) real(q question) bool {
	switch q.point {
	case decision.List, decision.Call, decision.Result, decision.Release:
		tool, _ := q.data["tool"].(map[string]any)
		branch, _ := q.data["branch"].(map[string]any)
		return p.known["tool"+jsonText(tool)] && p.known["branch"+jsonText(branch)] && p.known["principal"+jsonText(q.data["principal"])] &&
			(q.point == decision.List || p.accepts(word(tool["name"]), q.data["arguments"]))
	}
	return false
}

// tidy makes dependent parts of the input consistent.
func tidy(point decision.Point, data map[string]any) {
	if point != decision.Connect {
		return
	}
	target, _ := data["target"].(map[string]any)
	if u, ok := target["url"].(map[string]any); ok {
		path := word(u["path"])
		segments := []any{}
		for s := range strings.SplitSeq(path, "/") {
			if s != "" {
				segments = append(segments, s)
			}
		}
		u["segments"] = segments
	}
}
