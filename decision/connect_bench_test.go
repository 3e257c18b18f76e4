package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/trust"
)

// BenchmarkConnect asks the shipped policy about one new target after the other, as a build with many targets does: an
// address that no entry covers, or one of 1 or 100; and a command.
func BenchmarkConnect(b *testing.B) {
	const clock = "  clock: {command: [date, -u]}\n  system: {command: [uname, -sm]}\n"
	var many strings.Builder
	for i := range 98 {
		fmt.Fprintf(&many, "  host%d: {host: host%d.example.com, path: /v1}\n  command%d: {command: [program, \"%d\"]}\n", i, i, i, i)
	}
	const api = "  api: {host: api.example.com, secrets: [\"env:KEY\"], addresses: [10.0.0.0/8]}\n"
	address := func(i int) trust.Target {
		first := fmt.Sprint(i / 100)
		second := fmt.Sprint(i % 100)
		return trust.Target{Kind: trust.HTTP, URL: &trust.URL{
			Scheme: "https", Host: "api.example.com", Port: 443, Path: "/" + first + "/" + second + "/", Segments: []string{first, second}, Template: true,
			TLS: &trust.TLS{MinVersion: "1.2", ServerName: "api.example.com", Verified: true},
		}}
	}
	command := func(int) trust.Target {
		return trust.Target{Kind: trust.Exec, Command: &trust.Command{Declared: "date", Path: "/usr/bin/date", Args: []string{"-u"}, Env: []string{}}}
	}
	for _, bench := range []struct {
		name, entries string
		target        func(int) trust.Target
		allow         bool
	}{
		{"uncovered", clock, address, false},
		{"covered", clock + api, address, true},
		{"covered-of-200", clock + many.String() + api, address, true},
		{"uncovered-of-200", clock + many.String(), address, false},
		{"command", clock + api, command, true},
		{"command-of-200", clock + many.String() + api, command, true},
	} {
		fsys := fstest.MapFS{}
		if err := fillFrom(fsys, "../policy"); err != nil {
			b.Fatal(err)
		}
		fsys["policy/trust/data.yaml"] = file("entries:\n" + bench.entries)
		engine := load(b, fsys)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				in := decision.ConnectInput{
					Subject: decision.Subject{Kind: "tool", Name: "t", Effect: "read"}, Target: bench.target(i),
				}
				if _, d := engine.ConnectAnew(b.Context(), in); d.Allow != bench.allow {
					b.Fatal(d)
				}
			}
		})
	}
}
