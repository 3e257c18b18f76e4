package envelope

import (
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// anthropicForm is that of the Messages API, whose response is a message.
var anthropicForm = form{
	needsID: true,
	calls: func(o *strictjson.Object) ([]any, bool, error) {
		items := o.List("content")
		return items, items != nil && o.Get("type") != "tool_use", nil
	},
	call: func(o *strictjson.Object) (c Call, ok bool, err error) {
		if o.Get("type") != "tool_use" {
			return c, false, nil
		}
		if c.ID, err = str(o, "id"); err != nil {
			return c, false, err
		}
		if c.Name, err = str(o, "name"); err != nil {
			return c, false, err
		}
		c.Arguments = object(o, "input")
		return c, true, nil
	},
	result: func(c Call, of registry.Call) any {
		o := strictjson.New("type", "tool_result", "tool_use_id", c.ID)
		if content := anthropicContent(of); len(content) > 0 {
			o.Add("content", content)
		}
		if failed(of) {
			o.Add("is_error", true)
		}
		return o
	},
	message: func(results []any) any { return strictjson.New("role", "user", "content", results) },
}

// anthropicImages are the types of images that a tool_result may have.
var anthropicImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// anthropicContent is the content of a tool_result: text, and images as such. The API refuses empty text, and an error
// without content.
func anthropicContent(of registry.Call) (out []any) {
	add := func(text string) {
		if text != "" {
			out = append(out, strictjson.New("type", "text", "text", text))
		}
	}
	if of.Err != nil || len(of.Result.Content) == 0 {
		add(text(of))
	} else {
		for _, raw := range of.Result.Content {
			var image struct{ Type, Data, MimeType string }
			if json.Unmarshal(raw, &image) == nil && image.Type == "image" && slices.Contains(anthropicImages, image.MimeType) {
				source := strictjson.New("type", "base64", "media_type", image.MimeType, "data", image.Data)
				out = append(out, strictjson.New("type", "image", "source", source))
				continue
			}
			add(blockText(raw))
		}
	}
	if len(out) == 0 && failed(of) {
		add("the tool failed, and said nothing")
	}
	return out
}
