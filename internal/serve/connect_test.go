package serve_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/serve"
)

// TestThreatConnect finds the tests of what the connect decision lets be reached, with the engine, the shipped policy and
// real commands. They set the environment of the process, so none runs beside another.
func TestThreatConnect(t *testing.T) {
	for _, row := range []struct {
		name string
		test func(*testing.T)
	}{
		{"T7/one engine decides for all", oneEngineDecides},
		{"T7/the catalog's own tree", ownTreeMustBeMeant},
		{"T7/a pinned command", pinnedCommandIsHeld},
		{"T8/shapes of names", shapesOfNames},
		{"T8/declared secrets", declaredSecretsMustBeMeant},
		{"T9/http in the clear", httpReachesLoopbackOnly},
	} {
		t.Run(row.name, row.test)
	}
}

// reaches are the ways out of the generation that is serving, by kind and name.
func (h *house) reaches() map[string]serve.Reach {
	g, release := h.Pin()
	defer release()
	found := map[string]serve.Reach{}
	for _, r := range g.Reaches() {
		found[r.Kind+" "+r.Name] = r
	}
	return found
}

// reasons are why a tool may not reach what it reaches.
func (h *house) reasons(tool string) string {
	return strings.Join(h.reaches()["tool "+tool].Decision.Reasons, "; ")
}

// stays keeps a branch from losing its last tool, which the adoption policy would refuse.
const stays = "tools: stays: {description: \"Stays.\", effect: \"read\", binding: jq: program: \".\"}\n"

const environmentCUE = `package catalog

branches: default: {}
tools: environment: {
	description: "Print the environment."
	effect:      "read"
	binding: exec: {command: "env", argv: [], env: DECLARED: "declared"}
}
`

// Of more than 30 shapes of names, a command is given those that a pattern matches and that hold no secret by their name, and those
// that are written out.
func shapesOfNames(t *testing.T) {
	passed := map[string]bool{
		// A word that means a secret, alone, in any case, in front, behind, within, with digits and underscores.
		"KEY": false, "key": false, "API_KEY": false, "apiKey": false, "APIKEY2": false, "KEY_1": false, "_KEY": false, "KEYS": false,
		"TOKEN": false, "GITHUB_TOKEN": false, "token2": false, "Token": false, "NPM_TOKEN_": false, "__token__": false, "GHTOKEN1X": false,
		"SECRET": false, "CLIENT_SECRET_ID": false, "mySecret": false, "PASSWORD": false, "DB_PASSWORD_FILE": false, "PGPASSFILE": false,
		"DB_PWD": false, "GOOGLE_APPLICATION_CREDENTIALS": false, "aws_credential": false, "AUTH": false, "XAUTHORITY": false, "OAUTH2": false,
		"COOKIE": false, "sessionCookie": false, "JWT": false, "SENTRY_DSN": false, "DATABASE_URL": false,
		// What only looks like one.
		"TOKE_N": true, "KE_Y": true, "SECRE7": true, "COLOR": true, "a": true, "_A1": true, "Z9_": true, "LC_X": true,
		// Written out, exactly so.
		"NAMED_TOKEN": true, "named_key": true, "Named_Token": false, "NAMED_TOKEN_2": false,
		// No pattern passes what is no plain name.
		"A-B": false, "A.B": false, "BASH_FUNC_f%%": false, "1A": false,
	}
	for name := range passed {
		t.Setenv(name, "value of "+name)
	}
	h := newHouse(t)
	h.set("catalog/home.cue", environmentCUE)
	h.set("policy/trust/data.yaml", `entries:
  environment: {command: [env], exact: true, interpreter: true, env: ["*", NAMED_TOKEN, named_key, UNSET_TOKEN]}
`)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for line := range strings.Lines(h.call(t, "default", "environment", `{}`)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		given[name] = value
	}
	if given["DECLARED"] != "declared" {
		t.Fatalf("the child printed %v", given)
	}
	r := h.reaches()["tool environment"]
	for name, want := range passed {
		value, got := given[name]
		if got != want || got && value != "value of "+name {
			t.Errorf("%s: passed %v (%q), want %v", name, got, value, want)
		}
		if slices.Contains(r.Decision.Env, name) != want {
			t.Errorf("%s: the decision says that it is passed: %v", name, !want)
		}
		plain := !strings.ContainsAny(name, "-.%") && name != "1A"
		if slices.Contains(r.Decision.Withheld, name) != (!want && plain) {
			t.Errorf("%s: withheld by the decision: %v", name, want)
		}
	}
	if _, ok := given["UNSET_TOKEN"]; ok {
		t.Error("a variable that catalogd does not have was passed on")
	}

	// Which words mean a secret is the policy's to say.
	h.set("policy/env/data.yaml", "sensitive: [colo]\n")
	h.reload(t, "adopted")
	printed := h.call(t, "default", "environment", `{}`)
	if !strings.Contains(printed, "\nKEY=value of KEY\n") || strings.Contains(printed, "COLOR=") {
		t.Errorf("with another list: %s", printed)
	}
	// And without the list no pattern passes anything.
	delete(h.files, "policy/env/data.yaml")
	h.replace(t, "catalog/home.cue", `, env: DECLARED: "declared"`, "")
	h.reload(t, "adopted")
	printed = h.call(t, "default", "environment", `{}`)
	if lines := slices.Sorted(strings.Lines(printed)); len(lines) != 2 || !strings.HasPrefix(lines[0], "NAMED_TOKEN=") || !strings.HasPrefix(lines[1], "named_key=") {
		t.Errorf("without the list: %s", printed)
	}
}

// A declaration may not set what may be a secret by its name until the trust entry writes the name out; a pattern is not
// enough.
func declaredSecretsMustBeMeant(t *testing.T) {
	h := newHouse(t)
	h.set("catalog/home.cue", strings.Replace(environmentCUE, "DECLARED", "Api_Token", 1))
	entry := func(env string) {
		h.set("policy/trust/data.yaml", "entries:\n  environment: {command: [env], interpreter: true, env: "+env+"}\n")
	}
	entry(`["*", api_token]`)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	if got := h.call(t, "default", "environment", `{}`); got != "unknown_tool" {
		t.Errorf("not written out: %s", got)
	}
	if why := h.reasons("environment"); !strings.Contains(why, "sets Api_Token") || !strings.Contains(why, "name it in env") {
		t.Errorf("reasons: %s", why)
	}
	entry(`[Api_Token]`)
	h.reload(t, "adopted")
	if got := h.call(t, "default", "environment", `{}`); strings.TrimSpace(got) != "Api_Token=declared" {
		t.Errorf("written out: %s", got)
	}
}

// What runs from the catalog's own directory, a command or a script, is hidden until its trust entry says so.
func ownTreeMustBeMeant(t *testing.T) {
	h := newHouse(t)
	h.root = t.TempDir()
	script := []byte("#!/bin/sh\necho from the tree\n")
	if err := os.WriteFile(filepath.Join(h.root, "tool"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	h.set("catalog/home.cue", `package catalog

branches: default: {}
tools: command: {description: "A command.", effect: "read", binding: exec: {command: "./tool", argv: []}}
tools: script: {description: "A script.", effect: "read", binding: exec: {command: "sh", argv: ["tool"]}}
`)
	h.set("policy/trust/data.yaml", "entries:\n  command: {command: [./tool]}\n  script: {command: [sh]}\n")
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"command", "script"} {
		if got := h.call(t, "default", tool, `{}`); got != "unknown_tool" {
			t.Errorf("%s: %s", tool, got)
		}
		if why := h.reasons(tool); !strings.Contains(why, "in_tree: true") {
			t.Errorf("%s: %s", tool, why)
		}
		if !h.reaches()["tool "+tool].Observed.InTree {
			t.Errorf("%s is not seen in the tree", tool)
		}
	}
	h.set("policy/trust/data.yaml", "entries:\n  command: {command: [./tool], in_tree: true}\n  script: {command: [sh], in_tree: true}\n")
	h.reload(t, "adopted")
	for _, tool := range []string{"command", "script"} {
		if got := h.call(t, "default", tool, `{}`); strings.TrimSpace(got) != "from the tree" {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

// A pinned command is refused once its file has changed: by the call that would start it, and by the next build.
func pinnedCommandIsHeld(t *testing.T) {
	h := newHouse(t)
	h.root = t.TempDir()
	put := func(word string) string {
		content := []byte("#!/bin/sh\necho " + word + "\n")
		if err := os.WriteFile(filepath.Join(h.root, "tool"), content, 0o755); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	good := put("good")
	h.set("catalog/home.cue", `package catalog

branches: default: {}
tools: pinned: {description: "A pinned command.", effect: "read", binding: exec: {command: "./tool", argv: []}}
`+stays)
	h.set("policy/trust/data.yaml", fmt.Sprintf("entries:\n  tool: {command: [./tool], in_tree: true, sha256: %q}\n", good))
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	if r := h.reaches()["tool pinned"]; r.Observed.SHA256 != good || !r.Pinned {
		t.Errorf("%+v", r)
	}
	if got := h.call(t, "default", "pinned", `{}`); strings.TrimSpace(got) != "good" {
		t.Errorf("as pinned: %s", got)
	}
	evil := put("evil")
	if got := h.call(t, "default", "pinned", `{}`); got != "binding_failed" {
		t.Errorf("changed: %s", got)
	}
	h.set("policy/trust/data.yaml", h.get("policy/trust/data.yaml")+"  other: {command: [other]}\n")
	h.reload(t, "adopted")
	if got := h.call(t, "default", "pinned", `{}`); got != "unknown_tool" {
		t.Errorf("changed, in the next build: %s", got)
	}
	if why := h.reasons("pinned"); !strings.Contains(why, evil) || !strings.Contains(why, "renew the pin") {
		t.Errorf("reasons: %s", why)
	}
	h.replace(t, "policy/trust/data.yaml", good, evil)
	h.reload(t, "adopted")
	if got := h.call(t, "default", "pinned", `{}`); strings.TrimSpace(got) != "evil" {
		t.Errorf("with the pin renewed: %s", got)
	}
}

// Servers, commands and addresses of tools are asked about at one decision, with their declaration's place, and each answer
// is logged once, with the generation, the entry and where that is written, until the question is another.
func oneEngineDecides(t *testing.T) {
	h := newHouse(t)
	h.set("catalog/home.cue", `package catalog

branches: default: {}
tools: clock: {description: "The time.", effect: "read", binding: exec: {command: "date", argv: ["-u"]}}
tools: page: {description: "A page.", effect: "read", binding: http: url: "https://127.0.0.1:9/page"}
servers: child: transport: stdio: command: "date"
servers: far: transport: http: url: "http://127.0.0.1:9/mcp"
`)
	h.set("policy/trust/data.yaml", `entries:
  clock: {command: [date, -u]}
  page: {host: 127.0.0.1, port: 9, path: /page, addresses: [127.0.0.0/8]}
  far: {scheme: http, host: 127.0.0.1, port: 9, path: /mcp, addresses: [127.0.0.0/8]}
`)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	g, release := h.Pin()
	first := g.ID
	release()
	found := h.reaches()
	if len(found) != 4 {
		t.Errorf("%v", found)
	}
	for name, want := range map[string]string{
		"tool clock": "clock policy/trust/data.yaml:2:3 catalog/home.cue:4:8", "tool page": "page policy/trust/data.yaml:3:3 catalog/home.cue:5:8",
		"server far": "far policy/trust/data.yaml:4:3 catalog/home.cue:7:10", "server child": " - catalog/home.cue:6:10",
	} {
		r := found[name]
		written := "-"
		if r.Written.Line > 0 {
			written = r.Written.String()
		}
		if got := fmt.Sprintf("%s %s %s", r.Trust, written, r.Pos); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := found["tool page"].Observed.Addresses; !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("addresses %v", got)
	}
	if got := found["tool clock"].Observed.SHA256; len(got) != 64 {
		t.Errorf("digest %q", got)
	}
	if tls := found["tool page"].Target.URL.TLS; tls == nil || tls.MinVersion != "1.2" || tls.ServerName != "127.0.0.1" || !tls.Verified {
		t.Errorf("TLS %+v", tls)
	}
	if tls := found["server far"].Target.URL.TLS; tls != nil {
		t.Errorf("TLS %+v", tls)
	}

	logged := func() (lines []string) {
		for line := range strings.Lines(h.log.String()) {
			if strings.Contains(line, `msg="connect decision"`) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	// A change of another tool asks nothing again; one of the policy asks all.
	h.set("catalog/home.cue", h.get("catalog/home.cue")+stays)
	h.reload(t, "adopted")
	if lines := logged(); len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), lines)
	}
	for _, line := range logged() {
		if !strings.Contains(line, "generation="+first) {
			t.Errorf("no generation: %s", line)
		}
	}
	h.set("policy/trust/data.yaml", h.get("policy/trust/data.yaml")+"  child: {command: [date], exact: true}\n")
	before := len(logged())
	h.reload(t, "adopted")
	if lines := logged()[before:]; len(lines) != 4 || !slices.ContainsFunc(lines, func(l string) bool {
		return strings.Contains(l, "name=child allow=true trust=child written=policy/trust/data.yaml:5:3")
	}) {
		t.Errorf("after the policy: %s", lines)
	}

	x, err := json.Marshal(h.reaches()["server child"])
	if err != nil || !strings.Contains(string(x), `"sha256":"`) {
		t.Errorf("as JSON: %s, %v", x, err)
	}
}

// http goes to this machine only, whatever a trust entry says.
func httpReachesLoopbackOnly(t *testing.T) {
	h := newHouse(t)
	h.set("catalog/home.cue", `package catalog

branches: default: {}
tools: far: {description: "Far.", effect: "read", binding: http: url: "http://service.invalid/x"}
tools: near: {description: "Near.", effect: "read", binding: http: url: "http://localhost:9/x"}
tools: sure: {description: "Sure.", effect: "read", binding: http: url: "https://service.invalid/x"}
servers: private: transport: http: url: "http://10.0.0.1/mcp"
`)
	h.set("policy/trust/data.yaml", `entries:
  far: {scheme: http, host: service.invalid}
  near: {scheme: http, host: localhost, port: 9, addresses: ["127.0.0.0/8", "::1/128"]}
  sure: {host: service.invalid}
  private: {scheme: http, host: 10.0.0.1, addresses: [10.0.0.0/8]}
`)
	if err := h.open(t); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"tool far": false, "tool near": true, "tool sure": true, "server private": false} {
		d := h.reaches()[name].Decision
		if d.Allow != want || !want && !strings.Contains(strings.Join(d.Reasons, "; "), "in the clear") {
			t.Errorf("%s: %s", name, d)
		}
	}
}
