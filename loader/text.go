package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

const (
	// maxText caps a text that people and models read, in bytes; maxExamples caps the sum of a tool's
	// examples.
	maxText     = 16 << 10
	maxExamples = 256 << 10
)

// texts checks what people and models read of a tool: it contains no invisible characters and is not too
// long.
func (o *object) texts(t registry.Tool) {
	o.text("title", t.Title)
	o.text("description", t.Description)
	o.text("deprecated", t.Deprecated)
	o.text("effectNote", t.EffectNote)
	for i, tag := range t.Tags {
		o.text(fmt.Sprintf("tags.%d", i), tag)
	}
	size := 0
	for i, e := range t.Examples {
		at := fmt.Sprintf("examples.%d", i)
		size += len(e.Args) + len(e.Result) + len(e.Rejected)
		o.visible(at, stringsIn(e.Args))
		o.visible(at, stringsIn(e.Result))
		o.visible(at, []string{e.Rejected})
	}
	if size > maxExamples {
		o.errorf(problem.BadText, "examples", "the examples have %d bytes, more than %d; write shorter ones",
			size, maxExamples)
	}
	o.visible("args", textsOfSchema(t.Args.Schema))
	if t.Result != nil {
		o.visible("result", textsOfSchema(t.Result.Schema))
	}
}

// text checks one text.
func (o *object) text(path, text string) {
	if len(text) > maxText {
		o.errorf(problem.BadText, path, "a text of %d bytes, more than %d; say it shorter", len(text), maxText)
	}
	o.visible(path, []string{text})
}

// visible checks texts for invisible characters and reports only the first.
func (o *object) visible(path string, texts []string) {
	for _, text := range texts {
		for _, r := range text {
			if what := problem.Hidden(r); what != "" && r != '\u200c' && r != '\u200d' { // these two join letters and emoji
				o.errorf(problem.BadText, path,
					"the text has %s, which readers don't see or see something else by; take it out", what)
				return
			}
		}
	}
}

// stringsIn returns all strings of a JSON value, keys included.
func stringsIn(raw json.RawMessage) (out []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if s, ok := token.(string); ok {
			out = append(out, s)
		}
	}
}

// textsOfSchema returns the readable strings of a schema: names, titles, descriptions and examples.
// Constants, defaults and patterns are for machines and may contain anything.
func textsOfSchema(raw json.RawMessage) (out []string) {
	var visit func(v any, names bool)
	visit = func(v any, names bool) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				visit(item, false)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if names {
					out = append(out, key)
					visit(v[key], false)
					continue
				}
				switch key {
				case "const", "enum", "default", "pattern":
				case "title", "description", "$comment", "examples":
					text, err := json.Marshal(v[key])
					if err == nil {
						out = append(out, stringsIn(text)...)
					}
				default:
					visit(v[key], key == "properties" || key == "$defs")
				}
			}
		}
	}
	if !bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f }) && !bytes.Contains(raw, []byte(`\u`)) {
		return nil // no character that could be invisible, which is the usual case
	}
	var v any
	if json.Unmarshal(raw, &v) == nil {
		visit(v, false)
	}
	return out
}
