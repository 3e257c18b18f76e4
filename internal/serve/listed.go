package serve

import "github.com/catalogd/catalogd/registry"

// Listed is a tool as tools/list shows it, for encoding as JSON.
func Listed(t registry.Tool) any { return listTool(&t) }
