package generation

import (
	"encoding/json"

	"github.com/catalogd/catalogd/registry"
)

// listedTool is a tool in tools/list. Its fields are those of mcp-go's mcp.Tool; a new field must also be
// covered by registry.Entry.Listed.
type listedTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  any             `json:"annotations"`
	Icons        json.RawMessage `json:"icons,omitempty"`
	Meta         json.RawMessage `json:"_meta,omitempty"`
}

// annotations are those of a declared tool. Whether a write is destructive isn't declared, so there is no
// such hint.
type annotations struct {
	Title          string `json:"title,omitempty"`
	ReadOnlyHint   bool   `json:"readOnlyHint"`
	IdempotentHint bool   `json:"idempotentHint,omitempty"`
}

// AnyResult reports whether the tool's result may be other than an object, which the older revisions don't
// support.
func AnyResult(t *registry.Tool) bool { return t.Output() != nil && t.Result.Value }

// ListTool returns the tool as tools/list shows it.
func ListTool(e *registry.Entry) listedTool {
	t := e.Declared()
	listed := listedTool{
		Name: e.Name(), Title: t.Title, Description: described(t), InputSchema: t.Args.Schema, OutputSchema: e.Output(),
		Annotations: annotations{Title: t.Title, ReadOnlyHint: t.Effect == registry.Read, IdempotentHint: t.Idempotent},
	}
	if t.Annotations != nil {
		listed.Annotations, listed.Icons, listed.Meta = t.Annotations, t.Icons, t.Meta
	}
	return listed
}

// described returns the description of a tool in tools/list.
func described(t *registry.Tool) string {
	if t.Deprecated == "" {
		return t.Description
	}
	return "Deprecated: " + t.Deprecated + "\n" + t.Description
}
