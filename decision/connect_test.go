package decision_test

import (
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
)

// trusting is an engine with the policy of this repository and these trust entries.
func trusting(t *testing.T, entries string) *decision.Engine {
	t.Helper()
	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	fsys["policy/trust/data.yaml"] = file(entries)
	return load(t, fsys)
}

// askCommand asks about a command line by the name that its program has.
func askCommand(t *testing.T, engine *decision.Engine, line string) decision.Decision {
	t.Helper()
	words := strings.Fields(line)
	_, d := engine.Connect(t.Context(), decision.ConnectInput{
		Subject: decision.Subject{Kind: "server", Name: "s"},
		Target: trust.Target{Kind: trust.Stdio, Command: &trust.Command{
			Declared: words[0], Path: path.Join("/usr/bin", words[0]), Args: words[1:],
		}},
	})
	return d
}

// What fetches the program that it runs must say exactly which, or its trust entry must say unpinned: true.
func packagesArePinned(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0a", 32)
	var plain, meant strings.Builder
	plain.WriteString("entries:\n")
	meant.WriteString("entries:\n")
	for _, name := range []string{"npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "docker", "podman", "node", "python3"} {
		plain.WriteString("  " + name + ": {command: [" + name + "]}\n")
		meant.WriteString("  " + name + ": {command: [" + name + "], unpinned: true}\n")
	}
	strict, lenient := trusting(t, plain.String()), trusting(t, meant.String())
	for line, pinned := range map[string]bool{
		"npx -y x":                               false,
		"npx x@latest":                           false,
		"npx x@1":                                false,
		"npx x@^1.2.3":                           false,
		"npx -y @scope/x":                        false,
		"npx x":                                  false,
		"npx x@1.2.3":                            true,
		"npx -y @scope/x@1.2.3-beta.1":           true,
		"npx --package=x@1.2.3 x":                true,
		"npx -p x@1.2.3 -p y x":                  false,
		"npx --no-install x":                     true,
		"npm exec -- x@1.2.3":                    true,
		"npm exec x":                             false,
		"pnpm dlx x":                             false,
		"yarn dlx x@2.0.0":                       true,
		"bunx x":                                 false,
		"uvx x":                                  false,
		"uvx x@latest":                           false,
		"uvx x==1.2.3":                           true,
		"uvx --from x==1.2.3 y":                  true,
		"uvx --from git+https://example.com/x y": false,
		"uv tool run x":                          false,
		"pipx run x==1.2.3":                      true,
		"docker run img":                         false,
		"docker run img:1.2.3":                   false,
		"docker run --rm -i img:latest":          false,
		"docker run --rm -i -e A img" + digest:   true,
		"docker run img" + digest[:len(digest)-1]:     false,
		"docker run -e img" + digest + " img":         false,
		"podman create registry.example/img" + digest: true,
		"node ./x.js":  true,
		"python3 -m x": true,
	} {
		d := askCommand(t, strict, line)
		if d.Allow != pinned || !pinned && !strings.Contains(d.String(), "unpinned: true") {
			t.Errorf("%s: %s, want pinned %v", line, d, pinned)
		}
		if d := askCommand(t, lenient, line); !d.Allow {
			t.Errorf("%s where it is meant: %s", line, d)
		}
	}
}

// What runs code or commands that it is given needs an entry that says interpreter: true.
func commandsThatRunCode(t *testing.T) {
	t.Parallel()
	var plain, meant strings.Builder
	plain.WriteString("entries:\n")
	meant.WriteString("entries:\n")
	for _, name := range []string{"sh", "bash", "env", "xargs", "cmd", "python3", "node", "perl", "sudo", "npx", "uv"} {
		plain.WriteString("  " + name + ": {command: [" + name + "], unpinned: true}\n")
		meant.WriteString("  " + name + ": {command: [" + name + "], unpinned: true, interpreter: true}\n")
	}
	strict, lenient := trusting(t, plain.String()), trusting(t, meant.String())
	for line, harmless := range map[string]bool{
		"sh -c date": false, "sh": false, "bash -lc date": false, "bash -e tool.sh": true, "env date": false, "xargs date": false, "cmd /c dir": false,
		"python3 -c 1": false, "python3 -": false, "python3 -u server.py": true, "node -e 1": false, "node --eval=1": false, "node server.js -e": true,
		"node {script}": false, "perl -e 1": false, "sudo date": false, "npx -c date": false, "npx x@1.0.0": true, "uv run x": false,
	} {
		d := askCommand(t, strict, line)
		if d.Allow != harmless || !harmless && !strings.Contains(d.String(), "interpreter: true") {
			t.Errorf("%s: %s, want harmless %v", line, d, harmless)
		}
		if d := askCommand(t, lenient, line); !d.Allow {
			t.Errorf("%s where it is meant: %s", line, d)
		}
	}
}

// What was observed decides nothing about what is granted: a host whose addresses change is the same target on the same
// terms, so that its connection goes on. A policy that looks at the addresses is asked with the new ones.
func addressesThatChange(t *testing.T) {
	t.Parallel()
	engine := trusting(t, "entries:\n  api: {host: api.example.com, addresses: [10.0.0.0/8]}\n")
	in := decision.ConnectInput{Target: trust.Target{Kind: trust.HTTP, URL: &trust.URL{
		Scheme: "https", Host: "api.example.com", Port: 443, Path: "/", Segments: []string{},
	}}}
	first, d := engine.Connect(t.Context(), in)
	if !d.Allow {
		t.Fatal(d)
	}
	for _, addresses := range [][]string{nil, {"10.0.0.1"}, {"10.0.0.2", "8.8.8.8"}} {
		in.Observed.Addresses = addresses
		again, d := engine.Connect(t.Context(), in)
		if !d.Allow || again.Covers(in.Target) != nil || !reflect.DeepEqual(again, first) {
			t.Errorf("%v: %v, %+v", addresses, d, again)
		}
	}

	fsys := fstest.MapFS{}
	if err := fillFrom(fsys, "../policy"); err != nil {
		t.Fatal(err)
	}
	fsys["policy/trust/data.yaml"] = file("entries:\n  api: {host: api.example.com}\n")
	fsys["policy/connect.rego"] = file(string(fsys["policy/connect.rego"].Data) + `
deny contains sprintf("%s is not ours", [address]) if {
	some address in input.observed.addresses
	not startswith(address, "10.")
}
`)
	engine = load(t, fsys)
	for _, test := range []struct {
		addresses []string
		ok        bool
	}{{nil, true}, {[]string{"10.0.0.1"}, true}, {[]string{"10.0.0.1", "8.8.8.8"}, false}} {
		in.Observed.Addresses = test.addresses
		if _, d := engine.Connect(t.Context(), in); d.Allow != test.ok {
			t.Errorf("%v: %s", test.addresses, d)
		}
	}
}
