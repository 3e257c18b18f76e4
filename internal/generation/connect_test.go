package generation_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/servetest"
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
		{"T8/named variables alone", namedVariablesAlone},
		{"T8/another HOME's configuration", configurationOfAnotherHome},
		{"T7/what lies in the root is not found", rootIsNoWorkingDirectory},
		{"T7/what calls write must be named", callsWriteWhatIsNamed},
		{"T8/a policy that says yes", yesGrantsNothing},
		{"T9/http in the clear", httpReachesLoopbackOnly},
	} {
		t.Run(row.name, row.test)
	}
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

// A command is given the base and what its trust entry names, of whatever shape the names of the others are;
// /status and `catalogd trust` have each variable with its origin.
func namedVariablesAlone(t *testing.T) {
	for _, name := range []string{"NAMED_TOKEN", "named_key", "NAMED_TOKEN_2", "APP_MODE", "LC_SECRET", "KEY", "LD_LIBRARY_PATH", "A-B", "1A", "BASH_FUNC_f%%"} {
		t.Setenv(name, "leaks")
	}
	t.Setenv("LC_ALL", "C")
	h := servetest.NewHouse(t)
	h.Set("catalog/home.cue", environmentCUE+stays)
	entry := func(env string) {
		h.Set("policy/trust/data.yaml", "entries:\n  environment: {command: [env], interpreter: true, env: "+env+"}\n")
	}
	entry(`[DECLARED, NAMED_TOKEN, named_key, UNSET_TOKEN, "FIXED=a=b"]`)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	for name, value := range h.Variables(t) {
		switch name {
		case "HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ":
		default:
			if want := map[string]string{"DECLARED": "declared", "NAMED_TOKEN": "leaks", "named_key": "leaks", "FIXED": "a=b"}[name]; value != want {
				t.Errorf("%s is %q, want %q", name, value, want)
			}
		}
	}
	origins := map[string]egress.Origin{}
	for _, v := range h.Reaches()["tool environment"].Variables {
		origins[v.Name] = v.From
		if v.Value != "" && v.Value != "a=b" {
			t.Errorf("%s is shown as %q", v.Name, v.Value)
		}
	}
	for name, want := range map[string]egress.Origin{
		"HOME": egress.FromBase, "PATH": egress.FromBase, "LC_ALL": egress.FromBase, "NAMED_TOKEN": egress.FromDaemon, "DECLARED": egress.FromDeclaration,
		"FIXED": egress.FromEntry, "UNSET_TOKEN": "", "APP_MODE": "",
	} {
		if origins[name] != want {
			t.Errorf("%s comes from %q, want %q", name, origins[name], want)
		}
	}

	// A declaration that sets what the entry does not name is denied, and the reason has the line that would let it.
	entry(`[NAMED_TOKEN, declared]`)
	h.MustReload(t, "adopted")
	if got := h.Call(t, "default", "environment", `{}`); got != "unknown_tool" {
		t.Errorf("not named: %s", got)
	}
	if why := h.Reasons("environment"); !strings.Contains(why, `in policy/trust/data.yaml would have to say env: ["NAMED_TOKEN","declared","DECLARED"]`) {
		t.Errorf("reasons: %s", why)
	}
}

// No declaration makes git read a configuration that the trust entry doesn't name, by whichever variable.
func configurationOfAnotherHome(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	repo, evil := t.TempDir(), t.TempDir()
	ran := filepath.Join(evil, "ran")
	config := fmt.Sprintf("[core]\n\tfsmonitor = \"touch %s; false\"\n", ran)
	for _, file := range []string{".gitconfig", "git/config", "global"} {
		path := filepath.Join(evil, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(config), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	evilEnv := map[string]string{
		"HOME": evil, "XDG_CONFIG_HOME": evil, "GIT_CONFIG_GLOBAL": filepath.Join(evil, "global"), "GIT_CONFIG_SYSTEM": filepath.Join(evil, "global"),
	}
	h := servetest.NewHouse(t)
	var tools strings.Builder
	tools.WriteString("package catalog\n\nbranches: default: {}\n")
	declare := func(tool, env string) {
		fmt.Fprintf(&tools, "tools: %s: {description: \"Status.\", effect: \"read\", binding: exec: {command: \"git\", argv: [\"status\"], cwd: %q, env: {%s}}}\n", tool, repo, env)
	}
	declare("plain", "")
	declare("counted", fmt.Sprintf(`GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.fsmonitor", GIT_CONFIG_VALUE_0: "touch %s; false"`, ran))
	for name, value := range evilEnv {
		declare(name, fmt.Sprintf("%s: %q", name, value))
	}
	h.Set("catalog/home.cue", tools.String())
	entry := func(env string) {
		h.Set("policy/trust/data.yaml", fmt.Sprintf("entries:\n  status: {command: [git, status], dir: %q, env: [%s]}\n", repo, env))
	}
	entry("")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	// The daemon's own are not the child's either.
	for name, value := range evilEnv {
		t.Setenv(name, value)
	}
	if got := h.Call(t, "default", "plain", `{}`); !strings.Contains(got, "No commits yet") {
		t.Errorf("plain: %s", got)
	}
	for _, tool := range append(slices.Collect(maps.Keys(evilEnv)), "counted") {
		if got := h.Call(t, "default", tool, `{}`); got != "unknown_tool" {
			t.Errorf("%s: %s", tool, got)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("the command of a configuration ran")
	}
	// Each is what the entry would grant by naming it, so the test can fail.
	for name := range evilEnv {
		if name == "GIT_CONFIG_SYSTEM" && os.Getenv("GIT_CONFIG_NOSYSTEM") != "" {
			continue
		}
		entry(name)
		h.MustReload(t, "adopted")
		h.Call(t, "default", name, `{}`)
		if err := os.Remove(ran); err != nil {
			t.Errorf("named %s: %v", name, err)
		}
	}
}

// Without a cwd of the declaration and dir and in_tree of the entry, no program finds what lies in the
// catalog's root: neither a package that npx prefers to the pinned one, nor a shell of .npmrc, nor a module
// that Python prefers to its own.
func rootIsNoWorkingDirectory(t *testing.T) {
	for _, program := range []string{"npx", "python3", "pwd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	h := servetest.NewHouse(t)
	h.Root = t.TempDir()
	copied, shell, module := filepath.Join(h.Root, "copied"), filepath.Join(h.Root, "shelled"), filepath.Join(h.Root, "imported")
	for name, content := range map[string]string{
		"node_modules/some-pkg/package.json": `{"name": "some-pkg", "version": "1.2.3", "bin": "run.js"}`,
		"node_modules/some-pkg/run.js":       fmt.Sprintf("#!/usr/bin/env node\nrequire('fs').writeFileSync(%q, '')\n", copied),
		"node_modules/.bin/some-pkg":         fmt.Sprintf("#!/bin/sh\ntouch %q\n", copied),
		"package.json":                       `{"dependencies": {"some-pkg": "1.2.3"}}`,
		".npmrc":                             "script-shell=" + filepath.Join(h.Root, "shell") + "\n",
		"shell":                              fmt.Sprintf("#!/bin/sh\ntouch %q\nexec sh \"$@\"\n", shell),
		"argparse.py":                        fmt.Sprintf("open(%q, 'w')\n", module),
		"where.js":                           "console.log(__filename + ' in ' + process.cwd())\n",
	} {
		path := filepath.Join(h.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	declare := func(cwd string) string {
		return fmt.Sprintf(`package catalog

branches: default: {}
tools: [!="stays"]: {description: "Run.", effect: "read"}
tools: npx: binding: exec: {command: "npx", argv: ["-y", "some-pkg@1.2.3"]%[1]s}
tools: zip: binding: exec: {command: "python3", argv: ["-m", "zipfile", "--help"]%[1]s}
tools: pwd: binding: exec: {command: "pwd", argv: ["-P"]%[1]s}
tools: where: binding: exec: {command: "node", argv: ["where.js"]%[1]s}
`, cwd) + stays
	}
	entries := func(dir string) {
		h.Set("policy/trust/data.yaml", fmt.Sprintf(`entries:
  npx: {command: [npx, "-y", some-pkg@1.2.3], env: ["npm_config_registry=http://127.0.0.1:9", npm_config_fetch_retries=0]%[1]s}
  zip: {command: [python3, -m, zipfile, --help]%[1]s}
  pwd: {command: [pwd, -P]%[1]s}
  where: {command: [node, where.js], in_tree: true%[2]s}
`, dir, strings.TrimSuffix(dir, ", in_tree: true")))
	}
	h.Set("catalog/home.cue", declare(""))
	entries("")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	if got := h.Call(t, "default", "pwd", `{}`); !filepath.IsAbs(got) || strings.HasPrefix(got, h.Root) {
		t.Errorf("the working directory is %s", got)
	}
	if got := h.Call(t, "default", "where", `{}`); !strings.HasPrefix(got, filepath.Join(h.Root, "where.js")+" in /") || strings.Contains(got, " in "+h.Root) {
		t.Errorf("a script of the root: %s", got)
	}
	ran := func() (found []string) {
		for _, tool := range []string{"npx", "zip"} {
			h.Call(t, "default", tool, `{}`)
		}
		for _, mark := range []string{copied, shell, module} {
			if os.Remove(mark) == nil {
				found = append(found, filepath.Base(mark))
			}
		}
		return found
	}
	if found := ran(); found != nil {
		t.Errorf("what lies in the root ran: %v", found)
	}

	// With a cwd in or above the tree, the entry has to say both. Then it runs, so that the test can fail.
	h.Set("catalog/home.cue", declare(`, cwd: "."`))
	h.MustReload(t, "adopted")
	if why := h.Reasons("pwd"); !strings.Contains(why, `covers the command ["pwd","-P"], dir: "."`) {
		t.Errorf("without dir: %s", why)
	}
	entries(`, dir: "."`)
	h.MustReload(t, "adopted")
	if why := h.Reasons("pwd"); !strings.Contains(why, "in policy/trust/data.yaml would have to say in_tree: true") {
		t.Errorf("without in_tree: %s", why)
	}
	if found := ran(); found != nil {
		t.Errorf("what lies in the root ran: %v", found)
	}
	entries(`, dir: ".", in_tree: true`)
	h.MustReload(t, "adopted")
	if found := ran(); !slices.Equal(found, []string{"copied", "shelled", "imported"}) {
		t.Errorf("with dir and in_tree only %v ran", found)
	}
}

// No argument of a call reaches a command line that its entry doesn't name, whatever the program would make
// of it; entries that were the beginning of a command line cover nothing that calls fill in.
func callsWriteWhatIsNamed(t *testing.T) {
	for _, program := range []string{"git", "python3", "sed", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	if out, err := exec.Command("sh", "-c", "cd "+dir+" && git init -q . && echo x >file && tar cf file.tar file").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	attacks := map[string]struct {
		argv  []string
		value string
		args  int // of the entry that is a beginning of it
	}{
		"sed":     {[]string{"-n", "{x}", "file"}, "1e touch " + ran, 1},
		"git":     {[]string{"-c", "{x}", "status"}, "core.fsmonitor=touch " + ran + "; false", 1},
		"tar":     {[]string{"--to-command={x}", "-xf", "file.tar"}, "touch " + ran, 0},
		"python3": {[]string{"-m", "timeit", "-n1", "{x}"}, "open('" + ran + "', 'w')", 2},
	}
	var tools strings.Builder
	tools.WriteString("package catalog\n\nbranches: default: {}\n" + stays)
	for program, a := range attacks {
		fmt.Fprintf(&tools, "tools: %s: {description: \"Run.\", effect: \"read\", args: x!: string, binding: exec: {command: %[1]q, argv: %s, joined: true, cwd: %q}}\n", program, asJSON(t, a.argv), dir)
	}
	h := servetest.NewHouse(t)
	h.Set("catalog/home.cue", tools.String())
	entries := func(fields string, args func(program string) []string) {
		var b strings.Builder
		b.WriteString("entries:\n")
		for program := range attacks {
			fmt.Fprintf(&b, "  %s: {command: %s, dir: %q, interpreter: true%s}\n", program, asJSON(t, append([]string{program}, args(program)...)), dir, fields)
		}
		h.Set("policy/trust/data.yaml", b.String())
	}
	denied := func(as, want string) {
		t.Helper()
		for program, a := range attacks {
			got := h.Call(t, "default", program, asJSON(t, map[string]string{"x": a.value}))
			if got != "unknown_tool" || !strings.Contains(h.Reasons(program), want) {
				t.Errorf("%s, %s: %s; %s", program, as, got, h.Reasons(program))
			}
		}
		if os.Remove(ran) == nil {
			t.Errorf("%s: what a call wrote ran", as)
		}
	}
	whole := func(program string) []string { return attacks[program].argv }
	beginning := func(program string) []string { return attacks[program].argv[:attacks[program].args] }

	entries("", beginning)
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	denied("a beginning", "no trust entry covers the command")
	entries(", rest: true, from_call: [x]", beginning)
	h.MustReload(t, "adopted")
	denied("a beginning, with rest", "no trust entry covers the command")
	entries("", whole)
	h.MustReload(t, "adopted")
	denied("the command line alone", `in policy/trust/data.yaml would have to say from_call: ["x"]`)

	// It is what from_call grants, so the test can fail.
	entries(", from_call: [x]", whole)
	h.MustReload(t, "adopted")
	for program, a := range attacks {
		got := h.Call(t, "default", program, asJSON(t, map[string]string{"x": a.value}))
		if err := os.Remove(ran); err != nil {
			t.Errorf("%s, named: %v; %s", program, err, got)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What runs from the catalog's own directory, a command or a script, is hidden until its trust entry says so.
func ownTreeMustBeMeant(t *testing.T) {
	h := servetest.NewHouse(t)
	h.Root = t.TempDir()
	script := []byte("#!/bin/sh\necho from the tree\n")
	if err := os.WriteFile(filepath.Join(h.Root, "tool"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	h.Set("catalog/home.cue", `package catalog

branches: default: {}
tools: command: {description: "A command.", effect: "read", binding: exec: {command: "./tool", argv: []}}
tools: script: {description: "A script.", effect: "read", binding: exec: {command: "sh", argv: ["tool"]}}
`)
	h.Set("policy/trust/data.yaml", "entries:\n  command: {command: [./tool]}\n  script: {command: [sh, tool]}\n")
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"command", "script"} {
		if got := h.Call(t, "default", tool, `{}`); got != "unknown_tool" {
			t.Errorf("%s: %s", tool, got)
		}
		if why := h.Reasons(tool); !strings.Contains(why, "in_tree: true") {
			t.Errorf("%s: %s", tool, why)
		}
		if !h.Reaches()["tool "+tool].Observed.InTree {
			t.Errorf("%s is not seen in the tree", tool)
		}
	}
	h.Set("policy/trust/data.yaml", "entries:\n  command: {command: [./tool], in_tree: true}\n  script: {command: [sh, tool], in_tree: true}\n")
	h.MustReload(t, "adopted")
	for _, tool := range []string{"command", "script"} {
		if got := h.Call(t, "default", tool, `{}`); strings.TrimSpace(got) != "from the tree" {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

// A pinned command is refused once its file has changed: by the call that would start it, and by the next build.
func pinnedCommandIsHeld(t *testing.T) {
	h := servetest.NewHouse(t)
	h.Root = t.TempDir()
	put := func(word string) string {
		content := []byte("#!/bin/sh\necho " + word + "\n")
		if err := os.WriteFile(filepath.Join(h.Root, "tool"), content, 0o755); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	good := put("good")
	h.Set("catalog/home.cue", `package catalog

branches: default: {}
tools: pinned: {description: "A pinned command.", effect: "read", binding: exec: {command: "./tool", argv: []}}
`+stays)
	h.Set("policy/trust/data.yaml", fmt.Sprintf("entries:\n  tool: {command: [./tool], in_tree: true, sha256: %q}\n", good))
	if err := h.Open(t); err != nil {
		t.Fatal(err)
	}
	if r := h.Reaches()["tool pinned"]; r.Observed.SHA256 != good || !r.Pinned {
		t.Errorf("%+v", r)
	}
	if got := h.Call(t, "default", "pinned", `{}`); strings.TrimSpace(got) != "good" {
		t.Errorf("as pinned: %s", got)
	}
	evil := put("evil")
	if got := h.Call(t, "default", "pinned", `{}`); got != "binding_failed" {
		t.Errorf("changed: %s", got)
	}
	h.Set("policy/trust/data.yaml", h.Get("policy/trust/data.yaml")+"  other: {command: [other]}\n")
	h.MustReload(t, "adopted")
	if got := h.Call(t, "default", "pinned", `{}`); got != "unknown_tool" {
		t.Errorf("changed, in the next build: %s", got)
	}
	if why := h.Reasons("pinned"); !strings.Contains(why, evil) || !strings.Contains(why, "renew the pin") {
		t.Errorf("reasons: %s", why)
	}
	h.Replace(t, "policy/trust/data.yaml", good, evil)
	h.MustReload(t, "adopted")
	if got := h.Call(t, "default", "pinned", `{}`); strings.TrimSpace(got) != "evil" {
		t.Errorf("with the pin renewed: %s", got)
	}
}
