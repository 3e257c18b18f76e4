package generation_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/servetest"
	"github.com/catalogd/catalogd/problem"
)

// declarations are servers and tools of every kind that reaches out, in CUE, made by chance: programs that
// are and are not recognised, placeholders, directories, variables, addresses of all sorts.
func declarations(rng *rand.Rand, dir string, n int) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	maybe := func(text string) string { return pick("", text) }
	var b strings.Builder
	b.WriteString("package catalog\n\nbranches: default: {}\n")
	for i := range n {
		env := "env: {" + maybe(`COLOR: "1", `) + maybe(`API_KEY: {secret: "env:X"}, `) + maybe(`LD_PRELOAD: "x", `) + maybe(`HOME: "/"`) + "}"
		cwd := maybe(fmt.Sprintf(`cwd: %q, `, pick(dir, ".", "scripts", os.TempDir())))
		command := pick(
			`"date", ARGS: ["-u"]`, `"date", ARGS: []`, `"uname", ARGS: ["-s", "-m"]`, `"sh", ARGS: ["scripts/run.sh"]`,
			`"sh", ARGS: ["-c", "date"]`, `"sh", ARGS: ["-e", "`+dir+`/outside.sh", "a b", "c: d", "#e", "true", "1e3", "", "ü\t\"\\"]`,
			`"./scripts/run.sh", ARGS: []`, `"/bin/sh", ARGS: ["scripts/run.sh"]`, `"env", ARGS: ["date"]`,
			`"npx", ARGS: ["-y", "server"]`, `"npx", ARGS: ["-y", "server@1.2.3"]`, `"npx", ARGS: ["--unknown", "server@1.2.3"]`,
			`"uvx", ARGS: ["--from", "x==1.2.3", "y"]`, `"uvx", ARGS: ["x"]`, `"docker", ARGS: ["run", "-i", "--rm", "x:latest"]`,
			`"docker", ARGS: ["run", "x@sha256:`+strings.Repeat("0a", 32)+`"]`,
		)
		address := pick("https://api.example.com", "https://api.example.com:8443", "http://localhost:8080", "http://127.0.0.1:81", "https://[::1]", "https://10.0.0.7",
			"https://Other.Example.org") + pick("", "/", "/v1", "/v1/x", "/v1/x/y", "/v2/")
		headers := "headers: {" + maybe(`"X-Team": "a", `) + maybe(`"accept-language": "pt", `) + maybe(`"X-Site": "b"`) + "}"
		switch rng.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "servers: s%d: transport: stdio: {command: %s, %s %s}\n", i, strings.Replace(command, "ARGS", "args", 1), cwd, env)
		case 1:
			fmt.Fprintf(&b, "servers: s%d: transport: http: {url: %q, %s}\n", i, address, headers)
		case 2, 3:
			argv := strings.Replace(command, "ARGS", "argv", 1)
			if rng.IntN(2) == 0 { // what a model writes
				argv = strings.Replace(strings.Replace(argv, "]", `, "{place}"]`, 1), "[, ", "[", 1)
			}
			fmt.Fprintf(&b, "tools: t%d: {description: \"A tool.\", effect: \"read\", args: place!: string, binding: exec: {command: %s, %s %s}}\n", i, argv, cwd, env)
		case 4:
			if strings.Count(address, "/") == 2 {
				address += "/"
			}
			url := address + pick("{?place}", "/{place}", "-{place}")
			fmt.Fprintf(&b, "tools: t%d: {description: \"A tool.\", effect: \"read\", args: place!: string, binding: http: {url: %q, %s}}\n", i, url, headers)
		}
	}
	return b.String()
}

// Whatever is declared, the entries that are proposed for all of it let all of it be reached that the policy
// can let be reached; and each field that grants is needed: without it the policy denies.
func TestProposalsAreEnoughAndLeast(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"npx", "uvx", "docker"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "outside.sh"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 11))
		h := servetest.NewHouse(t)
		h.Set("catalog/home.cue", declarations(rng, outside, 24)+stays)
		h.Root = t.TempDir()
		if err := os.Mkdir(filepath.Join(h.Root, "scripts"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.Root, "scripts/run.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		h.Set("policy/trust/data.yaml", "entries: {}\n")
		if err := h.Open(t); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		proposals := h.Proposals(t, "")
		if len(proposals) < 5 {
			t.Fatalf("seed %d: %d proposals", seed, len(proposals))
		}
		hopeless := map[string]bool{}
		data := "entries:\n"
		for _, p := range proposals {
			if len(p.Denied) > 0 {
				for _, r := range p.For {
					hopeless[r.Kind+" "+r.Name] = true
					if strings.Contains(r.Target.String()[len("https://"):], "//") {
						continue // no entry covers a path that is not plain
					}
					t.Errorf("seed %d: %s: %v\n%s", seed, r.Target, p.Denied, p.Entry.YAML())
				}
				continue
			}
			data += p.Entry.YAML()
		}
		h.Set("policy/trust/data.yaml", data)
		h.MustReload(t, "adopted")
		for name, r := range h.Reaches() {
			if !r.Decision.Allow && !hopeless[name] {
				t.Errorf("seed %d: %s with what was proposed: %v\n%s", seed, r.Target, r.Decision.Reasons, data)
			}
		}
		if warned := h.Warnings(t, problem.UntrustedServer, problem.UntrustedBinding, problem.UnusedTrust); len(hopeless) == 0 && len(warned) > 0 {
			t.Errorf("seed %d: %v\n%s", seed, warned, data)
		}
		eachFieldIsNeeded(t, h, proposals)
	}
}

// eachFieldIsNeeded takes one field after the other out of the entries, each time alone.
func eachFieldIsNeeded(t *testing.T, h *servetest.House, proposals []generation.Proposal) {
	t.Helper()
	// Without these an entry covers more, or has what is the default.
	narrows := []string{"path"}
	g, release := h.Pin()
	defer release()
	for _, p := range proposals {
		if len(p.Denied) > 0 {
			continue
		}
		for _, f := range p.Entry.Fields {
			entry := maps.Clone(p.Entry.Value())
			delete(entry, f.Key)
			denied, err := g.Denies(t.Context(), map[string]any{p.Entry.Name: entry}, p.For)
			if err != nil {
				t.Fatal(err)
			}
			if !denied && !slices.Contains(narrows, f.Key) && f.Key != "addresses" {
				t.Errorf("%s is not needed:\n%s", f.Key, p.Entry.YAML())
			}
		}
	}
}

// Where an entry covers the target already, or would be covered twice, the proposal replaces it, and lets be reached
// all that was.
func TestProposalsBesideEntries(t *testing.T) {
	t.Parallel()
	const date = `tools: t: {description: "A tool.", effect: "read", binding: exec: {command: "date", argv: ["-u"], env: {A: "1", B: "2"}}}`
	const team = `tools: t: {description: "A tool.", effect: "read", binding: http: {url: "https://api.example.com/", headers: {Accept: "text/plain", "X-Team": "a", "X-Site": "b"}}}`
	fetch := func(name, path string) string {
		return fmt.Sprintf("tools: %s: {description: \"A tool.\", effect: \"read\", binding: http: url: %q}\n", name, "https://api.example.com"+path)
	}
	for name, test := range map[string]struct {
		catalog, entries string
		replaces         []string
		has              string
	}{
		"it lacks a variable": {date, "mine: {command: [date, -u], env: [A]}", []string{"mine"}, "env: [A, B]"},
		"it fixes a variable": {date, `mine: {command: [date, -u], env: ["A=3"]}`, []string{"mine"}, `env: [A=3, B]`},
		"its pin is old":      {date, `mine: {command: [date, -u], env: [A, B], sha256: "` + strings.Repeat("0", 64) + `"}`, []string{"mine"}, "renews the pin"},
		"more may follow":     {date, "mine: {command: [date], rest: true, env: [A]}", []string{"mine"}, "rest: true"},
		"two cover it":        {date, "a: {command: [date, -u], env: [A, B]}\n  b: {command: [date], rest: true, env: [A, B]}", []string{"a", "b"}, "  a:\n"},
		"another directory":   {date, "mine: {command: [date, -u], dir: x, env: [A, B]}", []string{"mine"}, "command: [date, -u]"},
		"another port":        {fetch("t", "/v1"), "mine: {host: api.example.com, port: 444}", []string{"mine"}, "host: api.example.com\n"},
		"another host":        {fetch("t", "/v1"), "mine: {host: api.other.org}", nil, "  t:\n"},
		"a taken name":        {date, "t: {command: [uname]}", nil, "  t_2:\n"},
		"it lacks a header":   {team, "mine: {host: api.example.com, headers: [x-team]}", []string{"mine"}, "headers: [x-team, X-Site]"},
		"it lacks headers":    {team, "mine: {host: api.example.com}", []string{"mine"}, "headers: [X-Site, X-Team]"},
		"a path below":        {fetch("t", "/v1") + fetch("u", "/v1/x"), "mine: {host: api.example.com, path: /v1/x, headers: []}", []string{"mine"}, "path: /v1\n"},
		"a path beside":       {fetch("t", "/v1/y") + fetch("u", "/v1/x"), "mine: {host: api.example.com, path: /v1/x}", nil, "path: /v1/y\n"},
		"the whole host":      {fetch("t", "/") + fetch("u", "/v1/x") + fetch("v", "/v2"), "a: {host: api.example.com, path: /v1/x}\n  b: {host: api.example.com, path: /v2}", []string{"a", "b"}, "host: api.example.com\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.NewHouse(t)
			h.Set("catalog/home.cue", "package catalog\n\nbranches: default: {}\n"+test.catalog+"\n"+stays)
			h.Set("policy/trust/data.yaml", "entries:\n  "+test.entries+"\n")
			if err := h.Open(t); err != nil {
				t.Fatal(err)
			}
			proposals := h.Proposals(t, "t")
			if len(proposals) != 1 || len(proposals[0].Denied) > 0 {
				t.Fatalf("%+v", proposals)
			}
			var replaces []string
			lines := "entries:\n"
			for _, r := range proposals[0].Replaces {
				replaces = append(replaces, r.Name)
			}
			for _, line := range strings.Split(test.entries, "\n") {
				if name, _, _ := strings.Cut(strings.TrimSpace(line), ":"); !slices.Contains(replaces, name) {
					lines += "  " + strings.TrimSpace(line) + "\n"
				}
			}
			entry := proposals[0].Entry.YAML()
			if !slices.Equal(replaces, test.replaces) || !strings.Contains(entry, test.has) {
				t.Errorf("replaces %v, want %v, with %q in\n%s", replaces, test.replaces, test.has, entry)
			}
			h.Set("policy/trust/data.yaml", lines+entry)
			h.MustReload(t, "adopted")
			for name, r := range h.Reaches() {
				if !r.Decision.Allow {
					t.Errorf("%s: %v\n%s", name, r.Decision.Reasons, lines+entry)
				}
			}
		})
	}
}
