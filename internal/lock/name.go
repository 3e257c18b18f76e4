package lock

import "github.com/catalogd/catalogd/registry"

// LocalName is the name in the catalog of a server's tool: what `discover` calls it, or its own name behind the server's
// prefix.
func LocalName(s registry.Server, tool string) string {
	if s.Discover != nil {
		if name := s.Discover.Tools[tool].Rename; name != "" {
			return name
		}
	}
	return s.Prefix + tool
}
