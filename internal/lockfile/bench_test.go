package lockfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/registry"
)

// BenchmarkJoin makes tools of the largest list of a public server.
func BenchmarkJoin(b *testing.B) {
	raw, err := os.ReadFile(filepath.FromSlash("../../testdata/tool-lists/mongodb-mcp-server.json"))
	if err != nil {
		b.Fatal(err)
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		b.Fatal(err)
	}
	locked, _ := lockfile.Merge(lockfile.Server{Name: "up"}, lockfile.ReadOffer(lockfile.Identity{Name: "up", Version: "1", Protocol: "2025-11-25"}, list.Tools), every, none, noon)
	f := &lockfile.File{}
	f.Put(locked)
	build := &registry.Build{Servers: []registry.Server{server("up", "", registry.Discover{})}}
	for b.Loop() {
		if j := lockfile.Join(build, f); len(j.Tools) != len(list.Tools) {
			b.Fatal(j.Problems)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(list.Tools)), "us/tool")
}

// BenchmarkCheck checks a call of a discovered tool.
func BenchmarkCheck(b *testing.B) {
	c, err := contract.New(contract.Spec{
		Upstream: true, NoFill: true, Strictness: contract.Closed, Fields: []contract.Field{{Name: "city", Required: true}, {Name: "units"}, {Name: "limit"}},
		Schema: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"city":{"type":"string","minLength":1},` +
			`"units":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["city"],"additionalProperties":false}`),
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, found, err := c.Check(b.Context(), []byte(`{"city":"Berlin","units":"celsius","limit":5}`)); found != nil || err != nil {
			b.Fatal(found, err)
		}
	}
}
