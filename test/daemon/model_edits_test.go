package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd/test/internal/harness"
)

// entry is what the tests look at in a line of the log.
type entry struct {
	Msg, Generation string
	Changed         []string
}

// adoptions are the generations that the log says were adopted, in order.
func adoptions(t testing.TB, j *harness.Log) (all []entry) {
	t.Helper()
	for line := range strings.Lines(j.String()) {
		if !strings.Contains(line, `"generation adopted"`) {
			continue
		}
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// save writes a file in one of the ways in which editors do, the two that are not one step included.
func (w *model) save(t *testing.T, file, content string) {
	t.Helper()
	name := filepath.Join(w.Dir, file)
	w.open(time.Now())
	how := w.random.IntN(4)
	if how >= 2 {
		// Between its two steps the file is empty or gone, which a snapshot may see.
		for key := range w.spans {
			if tools, ok := w.files[file]; !ok || tools[key[strings.LastIndexByte(key, '/')+1:]].version > 0 {
				w.mayAnswer(key, harness.Absent, time.Now())
			}
		}
	}
	switch how {
	default:
		harness.WriteFile(t, name, content)
	case 2:
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	case 3:
		if err := os.Rename(name, name+"~"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name + "~"); err != nil {
			t.Fatal(err)
		}
	}
}

// step makes one edit, or a few at once, and waits until it is served or refused.
func (w *model) step(t *testing.T, i, n int) {
	t.Helper()
	count := 1
	if w.random.IntN(10) == 0 {
		count = 4
	}
	var did []string
	for range count {
		did = append(did, w.edit(t, i == n-1))
	}
	what := fmt.Sprintf("edit %d (%s)", i, strings.Join(did, ", "))
	wrote := time.Now()
	served := w.Settled(t)
	if served != (len(w.broken) == 0) {
		t.Fatalf("%s: served %v with these files broken: %v; %+v", what, served, slices.Collect(maps.Keys(w.broken)), w.Status().Failed)
	}
	if served {
		w.adopted(t, what, count)
		w.latency = append(w.latency, time.Since(wrote))
		w.compareLists(t, "after "+what)
	} else {
		w.refused(t, what)
	}
}

// adopted checks what clients learn of the files as they stand, and settles the model.
func (w *model) adopted(t *testing.T, what string, count int) {
	t.Helper()
	shown, answers := w.visible()
	var changed []string
	for _, branch := range []string{"default", "research"} {
		if !maps.Equal(shown[branch], w.shown[branch]) {
			changed = append(changed, branch)
		}
	}
	w.shown = shown
	var logged []entry
	harness.Await(t, "the log line", func() bool {
		logged = adoptions(t, w.Log)
		return len(logged) > 0 && logged[len(logged)-1].Generation == w.Status().Generation.ID
	})
	if news := logged[w.seen:]; len(news) == 1 && count == 1 && !slices.Equal(news[0].Changed, changed) {
		t.Errorf("%s: the log says that %v changed, want %v", what, news[0].Changed, changed)
	}
	for _, a := range logged[w.seen:] {
		for _, l := range w.clients {
			if slices.Contains(a.Changed, l.Branch) {
				w.heard[l]++
			}
		}
	}
	w.seen = len(logged)
	for _, l := range w.clients {
		harness.Await(t, fmt.Sprintf("the %v to hear of %s", l, what), func() bool { return l.ListChanged.Load() >= w.heard[l] })
	}
	w.settle(answers)
	w.noMoreNotifications(t, what)
}

// noMoreNotifications checks that no client heard more than it must have.
func (w *model) noMoreNotifications(t *testing.T, what string) {
	t.Helper()
	for _, l := range w.clients {
		if got := l.ListChanged.Load(); got != w.heard[l] {
			t.Errorf("%s: the %v has heard %d list_changed, want %d", what, l, got, w.heard[l])
		}
	}
}

// refused checks that a broken edit is reported with its place and changes nothing.
func (w *model) refused(t *testing.T, what string) {
	t.Helper()
	failed := w.Status().Failed
	for file := range w.broken {
		placed := false
		for _, p := range failed.Problems {
			// YAML errors have no column, and broken data keep the rules from being looked at.
			data := filepath.Ext(p.File) == ".yaml"
			for _, also := range p.Also {
				placed = placed || also.File == file && also.Line > 0 && also.Col > 0
			}
			placed = placed || (p.File == file || data && strings.HasPrefix(file, "policy/")) && p.Line > 0 && (p.Col > 0 || data)
		}
		if !placed {
			t.Errorf("%s: no problem is placed in %s: %v", what, file, failed.Problems)
		}
	}
	if len(adoptions(t, w.Log)) != w.seen {
		t.Logf("%s: a step in between was served", what)
		return
	}
	w.noMoreNotifications(t, what)
	w.compareLists(t, "after "+what)
}

// edit changes the files once and the model with them, and says what it did. The last edit leaves nothing broken.
func (w *model) edit(t *testing.T, last bool) string {
	t.Helper()
	if len(w.broken) > 0 && (last || w.random.IntN(2) == 0) {
		return w.repair(t)
	}
	file := slices.Sorted(maps.Keys(w.files))[w.random.IntN(len(w.files))]
	for w.broken[file] != "" {
		file = slices.Sorted(maps.Keys(w.files))[w.random.IntN(len(w.files))]
	}
	tools := w.files[file]
	names := slices.Sorted(maps.Keys(tools))
	kind := w.random.IntN(20)
	switch {
	case last:
		kind = 9
	case len(names) == 0:
		kind = 0
	}
	what := ""
	switch kind {
	case 0, 1, 2, 3:
		what = "add"
		tools[w.free()] = w.newTool()
	case 4, 5:
		what = "remove"
		delete(tools, names[0])
	case 6, 7:
		what = "rename"
		old := names[w.random.IntN(len(names))]
		renamed := w.free()
		tools[renamed] = tools[old]
		delete(tools, old)
	case 8, 9, 10:
		what = "describe"
		name := names[w.random.IntN(len(names))]
		tool := tools[name]
		w.version++
		tool.description = fmt.Sprintf("Described at %d.", w.version)
		tools[name] = tool
	case 11, 12:
		what = "change the answer"
		name := names[w.random.IntN(len(names))]
		tool := tools[name]
		w.version++
		tool.version = w.version
		tools[name] = tool
	case 13:
		what = "rewrite"
	case 14, 15, 16:
		if w.broken[harness.AccessFile] != "" {
			return w.repair(t)
		}
		branch := []string{"default", "research"}[w.random.IntN(2)]
		w.deny[branch] = nil
		for i := range liveNames {
			if w.random.IntN(4) == 0 {
				w.deny[branch] = append(w.deny[branch], liveName(i))
			}
		}
		w.count["access"]++
		w.save(t, harness.AccessFile, w.accessData())
		return "access"
	default:
		if last || len(w.broken) > 1 {
			return w.repair(t)
		}
		return w.breakFile(t, file)
	}
	w.count[what]++
	w.save(t, file, w.cue(file))
	return what
}

// free is the name of a live tool that is in no file.
func (w *model) free() string {
	for i := w.random.IntN(liveNames); ; i++ {
		name := liveName(i % liveNames)
		taken := false
		for _, tools := range w.files {
			taken = taken || tools[name].version > 0
		}
		if !taken {
			return name
		}
		if i > 3*liveNames {
			// Every name is in use: one more than clients call.
			w.version++
			return fmt.Sprintf("more_%d", w.version)
		}
	}
}

// breakFile breaks CUE, Rego or data. What is broken changes nothing until it is fixed.
func (w *model) breakFile(t *testing.T, file string) string {
	t.Helper()
	kind := w.random.IntN(4)
	if kind >= 2 {
		file = []string{"policy/list.rego", harness.AccessFile}[kind-2]
	}
	if w.broken[file] != "" {
		return w.repair(t)
	}
	good := harness.ReadFile(t, filepath.Join(w.Dir, file))
	w.broken[file] = good
	bad := good + []string{
		"tools: live_00: {description: 1\n",
		"tools: current_time: effect: \"sometimes\"\n",
		"\nallow if input.nothing_of_the_kind\n",
		"branches: [\n",
	}[kind]
	w.count["break "+filepath.Ext(file)]++
	harness.WriteFile(t, filepath.Join(w.Dir, file), bad)
	return "break " + file
}

func (w *model) repair(t *testing.T) string {
	t.Helper()
	file := slices.Sorted(maps.Keys(w.broken))[0]
	good := w.broken[file]
	delete(w.broken, file)
	w.count["mend"]++
	w.open(time.Now())
	harness.WriteFile(t, filepath.Join(w.Dir, file), good)
	return "mend " + file
}
