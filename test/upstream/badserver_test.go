package upstream

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// misbehaving serves a catalog with a server for each fault, and returns the folder of their journals.
func misbehaving(t *testing.T) (*harness.Daemon, string) {
	t.Helper()
	journals := t.TempDir()
	program := harness.Program(t, "./testdata/badserver")
	at := badWeb(t, program, journals)
	var catalog, entries strings.Builder
	fmt.Fprintf(&entries, "  children: {command: [%s, stdio], rest: true}\n", program)
	for _, name := range []string{"http", "nobody", "tls-expired", "tls-other-host", "tls-unknown-ca", "tls-1.0"} {
		host, port, _ := strings.Cut(at[name], ":")
		scheme := "http"
		if strings.HasPrefix(name, "tls") {
			scheme = "https"
		}
		fmt.Fprintf(&entries, "  %s: {scheme: %s, host: %s, port: %s, addresses: [127.0.0.0/8]}\n", strings.ReplaceAll(name, ".", "-"), scheme, host, port)
	}
	locked := &lockfile.File{}
	all := append([]misbehaviour{{fault: "none", over: both}}, misbehaviours...)
	for _, m := range all {
		for _, over := range m.over {
			name := m.name(over)
			transport := fmt.Sprintf("stdio: {command: %q, args: [\"stdio\", %q, %q]}", program, m.fault, filepath.Join(journals, name))
			if over == "http" {
				address := "http://" + at["http"]
				if m.fault == "nobody" || strings.HasPrefix(m.fault, "tls") {
					address = map[bool]string{true: "https://", false: "http://"}[m.fault != "nobody"] + at[m.fault]
				}
				transport = fmt.Sprintf("http: url: %q", address+"/"+m.fault)
			}
			fmt.Fprintf(&catalog, "servers: %[1]s: {transport: %[2]s, prefix: \"%[3]s_\", connectTimeout: %[4]q, initializeTimeout: %[4]q, callTimeout: %[5]q", name, transport, name,
				cmp.Or(m.initialize, "60s"), cmp.Or(m.call, "60s"))
			if m.discovers {
				catalog.WriteString(", discover: {}}\n")
				locked.Put(lockedBad(name))
				continue
			}
			catalog.WriteString("}\n")
			for _, tool := range []string{"bad", "good"} {
				fmt.Fprintf(&catalog, "tools: %s_%s: {description: \"A tool.\", effect: \"read\", strictness: \"open\", timeout: \"60s\", binding: mcp: {server: %q, tool: %q}}\n", name, tool, name, tool)
			}
		}
	}
	return upstreams(t, catalog.String(), entries.String(), locked), journals
}

// upstreams serves a catalog of servers with their trust entries and what is locked of them. Whoever calls hears no log
// messages, but at the branch loud.
func upstreams(t *testing.T, catalog, entries string, locked *lockfile.File) *harness.Daemon {
	t.Helper()
	dir := harness.Assemble(t, "testdata/conformance")
	if err := os.Remove(filepath.Join(dir, "catalog/conformance.cue")); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(dir, "catalog/servers.cue"), "package catalog\n\nbranches: {default: {}, loud: {}}\n\n"+catalog)
	harness.WriteFile(t, filepath.Join(dir, "policy/trust/data.yaml"), "entries:\n"+entries)
	harness.WriteFile(t, filepath.Join(dir, "policy/access/data.yaml"), "branches:\n  default: {tools: [\"*\"]}\n  loud: {tools: [\"*\"], relay: {logging: [\"*\"]}}\n")
	harness.WriteFile(t, filepath.Join(dir, lockfile.Name), string(locked.Marshal()))
	r := harness.Serve(t, catalogd.Config{Dir: dir})
	for _, w := range r.Status().Warnings {
		t.Error(w)
	}
	return r
}

// lockedBad is what a bad server offered when it was well.
func lockedBad(name string) lockfile.Server {
	const definition = `{"name":%q,"description":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	return lockedAs(name, fmt.Sprintf(definition, "bad", "Has the fault."), fmt.Sprintf(definition, "good", "Answers."))
}

// lockedAs locks tools of a server that calls itself bad, all as reads.
func lockedAs(name string, definitions ...string) lockfile.Server {
	var raw []json.RawMessage
	for _, d := range definitions {
		raw = append(raw, json.RawMessage(d))
	}
	every := func(string) bool { return true }
	s, _ := lockfile.Merge(lockfile.Server{Name: name}, lockfile.ReadOffer(lockfile.Identity{Name: "bad", Version: "1", Protocol: "2025-06-18"}, raw), every, every, time.Unix(0, 0))
	return s
}

// badWeb starts the bad servers over HTTP and returns where they are.
func badWeb(t *testing.T, program, journals string) (at map[string]string) {
	t.Helper()
	cmd := exec.Command(program, "http", journals)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the bad servers ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &at); err != nil {
		t.Fatal(err)
	}
	return at
}
