package envelope

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/registry"
)

// failed reports whether a call failed, or its tool said so.
func failed(of registry.Call) bool { return of.Err != nil || of.Result.IsError }

// text is a result as text for a model: the error's message, or the content blocks, one below the other, or the
// structured content where there is no block.
func text(of registry.Call) string {
	if of.Err != nil {
		return of.Err.Msg
	}
	if len(of.Result.Content) == 0 {
		return string(of.Result.Structured)
	}
	var parts []string
	for _, raw := range of.Result.Content {
		parts = append(parts, blockText(raw))
	}
	return strings.Join(parts, "\n")
}

// structured is the structured content of a result; nil where there is none, or where it nests deeper than readers of
// JSON follow, inside of what a form puts around it. It is text as well.
func structured(of registry.Call) json.RawMessage {
	depth, quoted := 0, false
	for i := 0; i < len(of.Result.Structured); i++ {
		switch c := of.Result.Structured[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return nil
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return of.Result.Structured
}

// blockText is a content block as text. A form that holds text only gets a note in place of an image or a sound, so that
// the model knows that there was one.
func blockText(raw json.RawMessage) string {
	var block struct {
		Type, Text, MimeType, URI, Name string
		Resource                        struct{ URI, Text, MimeType string }
	}
	if json.Unmarshal(raw, &block) != nil {
		return string(raw)
	}
	switch block.Type {
	case "text":
		return block.Text
	case "resource":
		if block.Resource.Text != "" {
			return block.Resource.Text
		}
		return fmt.Sprintf("[resource %s %s, which this form can't carry]", block.Resource.URI, block.Resource.MimeType)
	case "resource_link":
		return fmt.Sprintf("[resource %s %s]", block.URI, block.Name)
	}
	return fmt.Sprintf("[%s %s, which this form can't carry]", block.Type, block.MimeType)
}
