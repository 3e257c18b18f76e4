package invoke

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/registry"
)

// redact is a result without what stands at the pointers (RFC 6901, where a step * is every item and every key) of its
// structured content, or of its text where that is JSON. A text becomes contract.Redacted, all else goes with its key.
// Whatever else of the result repeats a text or number that was taken out is redacted too. It is not ok for a result that
// has no structure at all. The result itself is left alone.
func redact(result *registry.Result, pointers []string) (_ *registry.Result, ok bool) {
	source := []byte(result.Structured)
	if source == nil {
		source = []byte(text(result))
	}
	whole, ok := decoded(source)
	if !ok {
		return nil, false
	}
	if _, scalar := whole.(string); scalar && result.Structured == nil {
		return nil, false // a text in quotes is a text
	}
	before, _ := decoded(source)
	var r redaction
	for _, pointer := range pointers {
		if pointer == "" {
			whole = r.take(whole)
			continue
		}
		steps := strings.Split(pointer[1:], "/")
		for i, s := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
		}
		r.at(whole, steps)
	}
	after := r.strings(swept(whole))
	rest := *result
	left := encoded(after)
	if result.Structured != nil {
		rest.Structured = left
		if _, object := after.(map[string]any); !object {
			rest.Structured = nil // MCP knows objects only
		}
	}
	rest.Content = make([]json.RawMessage, len(result.Content))
	for i, raw := range result.Content {
		rest.Content[i] = r.block(raw, before, left)
	}
	if meta, ok := decoded(result.Meta); ok {
		rest.Meta = encoded(r.strings(meta))
	}
	rest.Fields = nil // nobody knows what they repeat, in which form
	return &rest, true
}

// redaction remembers what was taken out: texts of some length wherever they stand, and short ones and numbers where they
// stand by themselves.
type redaction struct{ texts, words []string }

// gone stands for what goes with its key.
type gone struct{}

// at takes out what stands at the steps below v.
func (r *redaction) at(v any, steps []string) {
	step, rest := steps[0], steps[1:]
	next := func(child any) any {
		if len(rest) == 0 {
			return r.take(child)
		}
		r.at(child, rest)
		return child
	}
	switch v := v.(type) {
	case map[string]any:
		if step == "*" {
			for name, child := range v {
				v[name] = next(child)
			}
		} else if child, ok := v[step]; ok {
			v[step] = next(child)
		}
	case []any:
		if step == "*" {
			for i, child := range v {
				v[i] = next(child)
			}
		} else if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) && strconv.Itoa(i) == step {
			v[i] = next(v[i])
		}
	}
}

// take is what is left in the place of a value.
func (r *redaction) take(v any) any {
	r.note(v)
	if _, ok := v.(string); ok {
		return contract.Redacted
	}
	return gone{}
}

// minRepeated is the length in bytes from which a text is looked for inside words.
const minRepeated = 4

func (r *redaction) note(v any) {
	switch v := v.(type) {
	case string:
		switch {
		case v == contract.Redacted || strings.TrimSpace(v) == "":
		case len(v) < minRepeated:
			r.words = append(r.words, v)
		default:
			r.texts = append(r.texts, v)
		}
	case json.Number:
		r.words = append(r.words, v.String())
	case map[string]any:
		for _, child := range v {
			r.note(child)
		}
	case []any:
		for _, child := range v {
			r.note(child)
		}
	}
}

// block is a block of content without what was taken out. A text that is the whole of the structured result is what is left
// of that.
func (r *redaction) block(raw json.RawMessage, before any, left json.RawMessage) json.RawMessage {
	v, ok := decoded(raw)
	block, object := v.(map[string]any)
	if !ok || !object {
		return registry.Text(contract.Redacted) // it can't be taken apart
	}
	if s, ok := block["text"].(string); ok && block["type"] == "text" {
		if value, ok := decoded([]byte(s)); ok && reflect.DeepEqual(value, before) {
			block["text"] = string(left)
			return encoded(block)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(block)) {
		if name != "type" && name != "data" { // data is base64
			block[name] = r.strings(block[name])
		}
	}
	return encoded(block)
}

// strings is v with every text masked.
func (r *redaction) strings(v any) any {
	switch v := v.(type) {
	case string:
		return r.mask(v)
	case map[string]any:
		for name, child := range v {
			v[name] = r.strings(child)
		}
	case []any:
		for i, child := range v {
			v[i] = r.strings(child)
		}
	}
	return v
}

func (r *redaction) mask(s string) string {
	for _, text := range r.texts {
		s = strings.ReplaceAll(s, text, contract.Redacted)
		if quoted := encoded(text); len(quoted) > 2 { // as it stands in a JSON text
			s = strings.ReplaceAll(s, string(quoted[1:len(quoted)-1]), contract.Redacted)
		}
	}
	for _, word := range r.words {
		s = replaceWord(s, word)
	}
	return s
}

// replaceWord replaces the word where no letter or digit stands next to it.
func replaceWord(s, word string) string {
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			b.WriteString(s[at:])
			return b.String()
		}
		i += at
		end := i + len(word)
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[end:])
		b.WriteString(s[at:i])
		if inWord(before) || inWord(after) {
			b.WriteString(word)
		} else {
			b.WriteString(contract.Redacted)
		}
		at = end
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// swept is v without what is gone.
func swept(v any) any {
	isGone := func(v any) bool { _, ok := v.(gone); return ok }
	switch v := v.(type) {
	case gone:
		return nil
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return isGone(child) })
		for name, child := range v {
			v[name] = swept(child)
		}
	case []any:
		kept := make([]any, 0, len(v))
		for _, child := range v {
			if !isGone(child) {
				kept = append(kept, swept(child))
			}
		}
		return kept
	}
	return v
}

func decoded(raw []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) == 0 || d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// encoded is the JSON of what decoded gave.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("invoke: decoded JSON has no JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
