package egress_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/decision/trusttest"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/secret"
)

// waysAroundTheInterpreterGuard are command lines that run code which is in their arguments, or comes on
// standard input, while they look like an interpreter with a script file. (internal/commandline has the full
// table.)
func waysAroundTheInterpreterGuard(t *testing.T) {
	t.Parallel()
	check := func(line []string, terms trust.Terms) error {
		target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: line[0], Path: "/x", Args: line[1:]}}
		return egress.Check(trusttest.New(target, terms), target, false)
	}
	for _, line := range [][]string{
		{"sh", "+c", "x"}, {"bash", "-u", "+ec", "x"}, {"rbash", "-c", "x"},
		{"sh", "/dev/stdin"}, {"sh", "//dev/./stdin"}, {"sh", "/dev/../dev/stdin"}, {"sh", "../../dev/stdin"},
		{"python3", "/proc/self/fd/0"}, {"python3", "-u", "/dev/fd/0"}, {"python3", "-m", "-"},
		{"deno", "run", "data:text/javascript,x"}, {"deno", "run", "https://evil.example/x.ts"}, {"node", "inspect"},
		{"npx", "-yc", "x"}, {"npx", "--cal=x"}, {"npm", "exec", "--call", "x"}, {"pnpm", "exec", "x"}, {"uv", "run", "x"},
		{"/lib64/ld-linux-x86-64.so.2", "/bin/sh"}, {"taskset", "1", "sh"}, {"ssh", "-oProxyCommand=x", "h"}, {"node", ""}, {"pwsh", "-e", "ZQBjAGgAbwA="},
	} {
		if err := check(line, trust.Terms{Unpinned: true}); err == nil || !strings.Contains(err.Error(), "interpreter: true") {
			t.Errorf("%q: %v, want an error that names interpreter: true", line, err)
		}
		if err := check(line, trust.Terms{Unpinned: true, Interpreter: true}); err != nil {
			t.Errorf("%q where it is meant: %v", line, err)
		}
	}
	for _, line := range [][]string{
		{"sh", "-e", "x.sh"}, {"node", "/home/dev/server.js"}, {"node", "fd/server.js"}, {"python3", "-m", "server"},
		{"deno", "run", "./x.ts"}, {"npx", "--no-install", "x"}, {"npm", "run", "x"}, {"uv", "--version"}, {"date"},
	} {
		if err := check(line, trust.Terms{}); err != nil {
			t.Errorf("%q is refused: %v", line, err)
		}
	}
}

// A policy that forgets that what is fetched is pinned lets nothing start that is not.
func unpinnedMustBeMeant(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{{"npx", "-y", "x"}, {"uvx", "x"}, {"docker", "run", "x:latest"}, {"npm", "--yes", "exec", "x"}} {
		target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: line[0], Path: "/x", Args: line[1:]}}
		err := egress.Check(trusttest.New(target, trust.Terms{Entry: "e", Interpreter: true}), target, false)
		if err == nil || !strings.Contains(err.Error(), `trust entry "e" would have to say unpinned: true`) {
			t.Errorf("%q: %v", line, err)
		}
		if err := egress.Check(trusttest.New(target, trust.Terms{Interpreter: true, Unpinned: true}), target, false); err != nil {
			t.Errorf("%q where it is meant: %v", line, err)
		}
	}
}

// maskKnowsHowASecretIsWritten: in a URL, and in JSON of encoders that escape & and those that don't.
func maskKnowsHowASecretIsWritten(t *testing.T) {
	t.Setenv("MASK_WRITTEN", `a"b&c/d e+f`)
	mask := secret.MaskerFor(map[string]secret.Value{"A": {Secret: "env:MASK_WRITTEN"}}, "")
	for _, in := range []string{
		`a"b&c/d e+f`, `a\"b&c/d e+f`, `a\"b\u0026c/d e+f`, `a%22b%26c%2Fd+e%2Bf`, `a%22b&c%2Fd%20e+f`, `YSJiJmMvZCBlK2Y=`,
	} {
		if got := mask.Replace("<" + in + ">"); got != "<***>" {
			t.Errorf("%s is shown as %s", in, got)
		}
	}
}

// TestSecretsAreNamed: a Trust that doesn't name a reference of the declaration is not enough, whoever made it.
func TestSecretsAreNamed(t *testing.T) {
	t.Parallel()
	values := map[string]secret.Value{
		"A": {Secret: "env:A"}, "B": {Secret: "env:OTHER"}, "C": {Secret: "file:key"}, "D": {Literal: "x"}, "E": {Secret: "env:OTHER"},
	}
	refs := secret.References(values)
	if want := []string{"env:OTHER", "file:key"}; !slices.Equal(refs, want) {
		t.Fatalf("references %v, want %v", refs, want)
	}
	u, err := egress.ParseURL("https://x.example/")
	if err != nil {
		t.Fatal(err)
	}
	target := trust.Target{Kind: trust.HTTP, URL: &u, Secrets: refs}
	for _, granted := range [][]string{nil, {"env:OTHER"}, {"env:A", "file:key"}} {
		if err := egress.Check(trusttest.New(target, trust.Terms{Secrets: granted}), target, false); err == nil {
			t.Errorf("%v is enough", granted)
		}
	}
	if err := egress.Check(trusttest.New(target, trust.Terms{Secrets: refs}), target, false); err != nil {
		t.Error(err)
	}
}

// TestHeadersAreNamed: beyond the base, a Trust that doesn't name a header lets no declaration send it.
func TestHeadersAreNamed(t *testing.T) {
	t.Parallel()
	u, err := egress.ParseURL("https://x.example/")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sent, granted []string
		lacks         string
	}{
		{[]string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}, nil, ""},
		{[]string{"Authorization"}, nil, "Authorization"},
		{[]string{"Accept", "Cookie", "X-Team"}, []string{"X-Team"}, "Cookie"},
		{[]string{"X-Team"}, []string{"X-Tea", "X-Team-Id", "X-Team: a", "*", "", " X-Team"}, "X-Team"},
		{[]string{"Accept-Encoding", "Accept-Languages", "Agent"}, []string{"Accept"}, "Accept-Encoding, Accept-Languages, Agent"},
		{[]string{"Authorization", "X-Team"}, []string{"x-TEAM", "authorization"}, ""},
		{nil, nil, ""},
	} {
		target := trust.Target{Kind: trust.HTTP, URL: &u, Headers: test.sent}
		err := egress.Check(trusttest.New(target, trust.Terms{Entry: "e", Headers: test.granted}), target, false)
		if test.lacks == "" && err != nil || test.lacks != "" && (err == nil || !strings.Contains(err.Error(), "sends the headers "+test.lacks+"; ")) {
			t.Errorf("%v with %v: %v", test.sent, test.granted, err)
		}
	}
}

// TestBaseHeadersAreThePolicys: the shipped policy lets exactly the headers be sent unnamed that reach lets be sent.
func TestBaseHeadersAreThePolicys(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../policy/catalogd/entries.rego")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^base_headers := \{(.*)\}$`).FindSubmatch(source)
	var policy []string
	if found == nil || json.Unmarshal(slices.Concat([]byte("["), found[1], []byte("]")), &policy) != nil {
		t.Fatalf("no base_headers in\n%s", source)
	}
	if got := egress.BaseHeaders(); !slices.Equal(got, policy) {
		t.Errorf("got %v, the policy has %v", got, policy)
	}
}

// TestStandardInputIsMeant: a Trust that doesn't say so lets no call write to a command's standard input.
func TestStandardInputIsMeant(t *testing.T) {
	t.Parallel()
	target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "cat", Path: "/usr/bin/cat", Stdin: true}}
	if err := egress.Check(trusttest.New(target, trust.Terms{Entry: "e"}), target, false); err == nil {
		t.Error("nothing is said of standard input, and it is enough")
	}
	if err := egress.Check(trusttest.New(target, trust.Terms{Entry: "e", Stdin: true}), target, false); err != nil {
		t.Error(err)
	}
}

// TestOwnTreeIsMeant: a Trust that doesn't say so starts nothing in the catalog's tree, also where what it was granted
// for lay elsewhere then.
func TestOwnTreeIsMeant(t *testing.T) {
	t.Parallel()
	root, outside := realDir(t), realDir(t)
	put(t, filepath.Join(root, "tool"), "#!/bin/sh\npwd\n")
	link := filepath.Join(outside, "link")
	command := func(name string, args ...string) trust.Target {
		path, err := egress.Resolve(name, root)
		if err != nil {
			t.Fatal(err)
		}
		target := trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: name, Path: path, Args: args}}
		target.Command.Script = egress.Script(*target.Command, root)
		return target
	}
	at := command("pwd")
	at.Command.Dir = link
	try := func(target trust.Target, terms trust.Terms) error {
		_, err := egress.Run(t.Context(), trusttest.New(target, terms), target, egress.Command{Root: root, Args: target.Command.Args}, nil, 1000)
		return err
	}
	leads := func(to string) {
		t.Helper()
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	leads(outside)
	if err := try(at, trust.Terms{}); err != nil {
		t.Error(err)
	}
	leads(root)
	for _, target := range []trust.Target{command("./tool"), command("sh", "tool"), at} {
		if err := try(target, trust.Terms{Entry: "e"}); err == nil || !strings.Contains(err.Error(), `trust entry "e" would have to say in_tree: true`) {
			t.Errorf("%s: %v", target, err)
		}
		if err := try(target, trust.Terms{InTree: true}); err != nil {
			t.Errorf("%s, meant: %v", target, err)
		}
	}
}
