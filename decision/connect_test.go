package decision_test

import (
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
	"github.com/catalogd/catalogd/internal/commandline"
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

// askCommand asks about a command line by the name that its program has, with what is recognised of it.
func askCommand(t *testing.T, engine *decision.Engine, line string) decision.Decision {
	t.Helper()
	words := strings.Fields(line)
	command := trust.Command{Declared: words[0], Path: path.Join("/usr/bin", words[0]), Args: words[1:]}
	runs := commandline.Recognise(command.Declared, command.Path, command.Args)
	_, d := engine.Connect(t.Context(), decision.ConnectInput{
		Subject:  decision.Subject{Kind: "server", Name: "s"},
		Target:   trust.Target{Kind: trust.Stdio, Command: &command},
		Observed: trust.Observed{RunsCode: runs.RunsCode, Unpinned: runs.Unpinned},
	})
	return d
}

// What fetches the program that it runs must say exactly which, or its trust entry must say unpinned: true;
// and what runs code that it is given needs interpreter: true. (internal/commandline has the table of what is
// which.)
func whatIsRecognisedMustBeMeant(t *testing.T) {
	t.Parallel()
	for line, needs := range map[string][]string{
		"npx -y x":                  {"unpinned"},
		"npx -y x@1.2.3":            nil,
		"docker run img:1.2.3":      {"unpinned"},
		"sh -c date":                {"interpreter"},
		"sh -e tool.sh":             nil,
		"npm --yes exec x":          {"interpreter", "unpinned"},
		"uvx --with y x==1.2.3":     {"interpreter", "unpinned"},
		"docker run img sh -c date": {"interpreter", "unpinned"},
		"date -u":                   nil,
	} {
		for _, says := range [][]string{nil, {"interpreter"}, {"unpinned"}, {"interpreter", "unpinned"}} {
			words, err := json.Marshal(strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			entry := "entries:\n  e:\n    command: " + string(words) + "\n"
			for _, field := range says {
				entry += "    " + field + ": true\n"
			}
			d := askCommand(t, trusting(t, entry), line)
			enough := true
			for _, field := range needs {
				if !slices.Contains(says, field) {
					enough = false
					if !strings.Contains(d.String(), field+": true") {
						t.Errorf("%s with %v: %s does not name %s: true", line, says, d, field)
					}
				}
			}
			if d.Allow != enough {
				t.Errorf("%s with %v: %s, want allow %v", line, says, d, enough)
			}
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
