package lockfile_test

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/registry"
)

// A tool whose arguments can't be mirrored in headers is left out, with its reason, where they would have to
// be: over HTTP from 2026-07-28 on. Its siblings are served.
func TestInvalidHeaderAnnotation(t *testing.T) {
	t.Parallel()
	const odd = `{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}}`
	for _, c := range []struct {
		http     bool
		protocol string
		leftOut  bool
	}{{true, "2026-07-28", true}, {true, "2025-11-25", false}, {false, "2026-07-28", false}} {
		s := server("up", "", registry.Discover{})
		if c.http {
			s.HTTP = &registry.HTTPAddress{URL: "https://mcp.example.com/"}
		}
		offered := offer(t, odd, put)
		offered.Identity.Protocol = c.protocol
		locked, _ := lockfile.Merge(lockfile.Server{Name: s.Name}, offered, every, none, noon)
		f := &lockfile.File{}
		f.Put(locked)
		j := lockfile.Join(&registry.Build{Servers: []registry.Server{s}}, f)
		if c.leftOut != (len(j.Degraded) == 1) || len(j.Tools)+len(j.Degraded) != 2 {
			t.Errorf("%+v: %d tools, left out %+v", c, len(j.Tools), j.Degraded)
		}
		if c.leftOut && !strings.Contains(j.Degraded[0].Reason, "x-mcp-header at /a: its type is array") {
			t.Errorf("the reason is %q", j.Degraded[0].Reason)
		}
	}
}
