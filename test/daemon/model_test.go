package daemon

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// liveNames is how many tools the edits make and unmake.
const liveNames = 12

func liveName(i int) string { return fmt.Sprintf("live_%02d", i) }

// liveTool is a tool that the edits change. It answers its version.
type liveTool struct {
	version     int
	description string
	tags        []string
}

func (l liveTool) cue(name string) string {
	return fmt.Sprintf("tools: %s: {\n\tdescription: %q\n\teffect: \"read\"\n\ttags: [%s]\n\tbinding: jq: program: \"\\\"v%d\\\"\"\n}\n",
		name, l.description, quoted(l.tags), l.version)
}

func quoted(words []string) string {
	var q []string
	for _, w := range words {
		q = append(q, strconv.Quote(w))
	}
	return strings.Join(q, ", ")
}

// span is a time in which a tool could answer in one way.
type span struct {
	answer   string
	from, to time.Time // to is zero while it lasts
}

// model is the model: what stands in the files, what must be served of it, and what could be answered when.
type model struct {
	*harness.Daemon
	clients []*harness.Client
	random  *rand.Rand
	fixed   map[string]map[string]string // branch -> what it shows of the starter catalog

	files  map[string]map[string]liveTool // file -> its tools
	deny   map[string][]string            // branch -> names that the policy data deny
	broken map[string]string              // file -> its last good content; broken now
	access string                         // the starter's access data

	spans   map[string][]span            // branch/tool
	shown   map[string]map[string]string // branch -> what its list must show now
	heard   map[*harness.Client]int64    // what each client must have heard by now
	seen    int                          // adoptions in the log that are accounted for
	version int
	latency []time.Duration
	count   map[string]int
}

func newModel(t *testing.T, dir string) *model {
	harness.Edit(t, dir, "catalog/branches.cue", `may use."`, "may use.\"\n\thide: tags: [\"later\"]")
	w := &model{
		random: rand.New(rand.NewPCG(2, 3)),
		files:  map[string]map[string]liveTool{},
		deny:   map[string][]string{}, broken: map[string]string{}, access: harness.ReadFile(t, filepath.Join(dir, harness.AccessFile)),
		spans: map[string][]span{}, heard: map[*harness.Client]int64{}, count: map[string]int{},
	}
	// One file beside the starter's, one in a package of its own, and one two levels down.
	for i, file := range []string{"catalog/live.cue", "catalog/one/live.cue", "catalog/two/deep/live.cue"} {
		w.files[file] = map[string]liveTool{}
		for j := range liveNames / 4 {
			w.files[file][liveName(i*liveNames/4+j)] = w.newTool()
		}
		harness.WriteFile(t, filepath.Join(dir, file), w.cue(file))
	}
	return w
}

// newTool is a tool that default, research, both or none of them shows.
func (w *model) newTool() liveTool {
	w.version++
	tags := [][]string{{"any"}, {"any", "numbers"}, {"any", "text"}, {"later"}, {"later", "text"}}[w.random.IntN(5)]
	return liveTool{w.version, fmt.Sprintf("Live since %d.", w.version), tags}
}

func (w *model) cue(file string) string {
	text := "package catalog\n\n"
	for _, name := range slices.Sorted(maps.Keys(w.files[file])) {
		text += w.files[file][name].cue(name)
	}
	return text
}

func (w *model) accessData() string {
	text := "branches:\n"
	for _, branch := range []string{"default", "research"} {
		text += fmt.Sprintf("  %s:\n    tools: [\"*\"]\n    deny: [%s]\n", branch, quoted(w.deny[branch]))
	}
	return text + "hide: []\n"
}

// visible is what the files as they stand would show to each branch; the live tools' versions with it.
func (w *model) visible() (shown map[string]map[string]string, answers map[string]string) {
	shown, answers = map[string]map[string]string{}, map[string]string{}
	for _, branch := range []string{"default", "research"} {
		shown[branch] = maps.Clone(w.fixed[branch])
		for _, tools := range w.files {
			for name, l := range tools {
				admitted := !slices.Contains(l.tags, "later")
				if branch == "research" {
					admitted = !slices.Contains(l.tags, "text")
				}
				if admitted && !slices.Contains(w.deny[branch], name) {
					shown[branch][name] = l.description
					answers[branch+"/"+name] = fmt.Sprintf("v%d", l.version)
				}
			}
		}
	}
	return shown, answers
}

// begin makes an edit of which every client hears, and starts the model from there.
func (w *model) begin(t *testing.T) {
	w.fixed = map[string]map[string]string{}
	for _, l := range w.clients {
		shown := l.Listing(t)
		maps.DeleteFunc(shown, func(name, _ string) bool { return strings.HasPrefix(name, "live_") })
		w.fixed[l.Branch] = shown
	}
	w.version++
	harness.WriteFile(t, filepath.Join(w.Dir, "catalog/warm.cue"), "package catalog\n\n"+liveTool{w.version, "Warm.", []string{"any"}}.cue("warm"))
	if !w.Settled(t) {
		t.Fatalf("the first edit is refused: %+v", w.Status().Failed)
	}
	for _, l := range w.clients {
		w.heard[l] = 1
		harness.Await(t, fmt.Sprintf("the %v to hear of the first edit", l), func() bool { return l.ListChanged.Load() >= w.heard[l] })
		w.fixed[l.Branch]["warm"] = "Warm."
	}
	w.seen = len(adoptions(t, w.Log))
	w.shown, _ = w.visible()
	w.open(time.Now())
	w.compareLists(t, "before the first edit")
}

// open notes that from now on calls may be answered as the files stand.
func (w *model) open(from time.Time) {
	_, answers := w.visible()
	for _, branch := range []string{"default", "research"} {
		for i := range liveNames {
			key := branch + "/" + liveName(i)
			w.mayAnswer(key, cmp.Or(answers[key], harness.Absent), from)
		}
	}
}

func (w *model) mayAnswer(key, answer string, from time.Time) {
	spans := w.spans[key]
	if !slices.ContainsFunc(spans, func(s span) bool { return s.to.IsZero() && s.answer == answer }) {
		w.spans[key] = append(spans, span{answer: answer, from: from})
	}
}

// settle notes that only what is served now can be answered from here on.
func (w *model) settle(served map[string]string) {
	now := time.Now()
	for key, spans := range w.spans {
		for i, s := range spans {
			if s.to.IsZero() && s.answer != cmp.Or(served[key], harness.Absent) {
				spans[i].to = now
			}
		}
	}
}

// checkCalls holds every call against the model.
func (w *model) checkCalls(t *testing.T, records []record) {
	answers := map[string]int{}
	for _, r := range records {
		answers[strings.TrimRight(r.answer, "0123456789")]++
		if r.tool == "current_time" {
			if _, err := time.Parse(time.RFC3339, strings.TrimSpace(r.answer)); err != nil {
				t.Errorf("%s through %s: %s", r.tool, r.branch, r.answer)
			}
			continue
		}
		explained := slices.ContainsFunc(w.spans[r.branch+"/"+r.tool], func(s span) bool {
			return s.answer == r.answer && !s.from.After(r.to) && (s.to.IsZero() || !s.to.Before(r.from))
		})
		if !explained {
			t.Errorf("%s through %s answered %q, which no edit explains: %v to %v of %v", r.tool, r.branch, r.answer, r.from, r.to, w.spans[r.branch+"/"+r.tool])
		}
	}
	t.Logf("%d calls: %d answered by a live tool, %d for one that is not there", len(records), answers["v"], answers[harness.Absent])
	if answers["v"] == 0 || answers[harness.Absent] == 0 {
		t.Errorf("got %d answers of live tools and %d of absent ones, want some of each", answers["v"], answers[harness.Absent])
	}
}

func (w *model) compareLists(t *testing.T, when string) {
	t.Helper()
	for _, l := range w.clients {
		if got := l.Listing(t); !maps.Equal(got, w.shown[l.Branch]) {
			t.Errorf("%s, the %v lists\n%v, want\n%v", when, l, got, w.shown[l.Branch])
		}
	}
}
