package invoke

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
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
// Whatever else of the result repeats a text or number that was taken out is redacted too, however it is escaped; true, false
// and null, of which there are many, are not looked for. It is not ok for a result that has no structure at all. The result
// itself is left alone.
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
	after := r.masked(whole)
	rest := *result
	left := encoded(after)
	if result.Structured != nil {
		rest.Structured = left
		if reflect.TypeOf(after) != reflect.TypeOf(before) {
			rest.Structured = nil // the whole of it was taken out
		}
	}
	rest.Content = make([]json.RawMessage, len(result.Content))
	for i, raw := range result.Content {
		rest.Content[i] = r.block(raw, before, left)
	}
	if meta, ok := decoded(result.Meta); ok {
		rest.Meta = encoded(r.masked(meta))
	}
	rest.Fields, rest.Answer = nil, nil // nobody knows what the fields repeat, in which form
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
// of that. Of the names in it only those of its _meta are anyone's own.
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
	resource, _ := block["resource"].(map[string]any)
	if r.holds(block["data"]) || r.holds(resource["blob"]) {
		return registry.Text(contract.Redacted)
	}
	for _, name := range slices.Sorted(maps.Keys(block)) {
		switch name {
		case "type", "data":
		case "_meta":
			block[name] = r.masked(block[name])
		default:
			block[name] = r.values(block[name])
		}
	}
	return encoded(swept(block))
}

// holds reports whether what is encoded as base64 has a text that was taken out.
func (r *redaction) holds(v any) bool {
	s, _ := v.(string)
	data, err := base64.StdEncoding.DecodeString(s)
	return err == nil && slices.ContainsFunc(r.texts, func(text string) bool { return bytes.Contains(data, []byte(text)) })
}

// masked is v without what is gone, and with every text, number and key masked.
func (r *redaction) masked(v any) any { return r.keys(swept(r.values(v))) }

// values is v with every text masked, and without the numbers that were taken out elsewhere.
func (r *redaction) values(v any) any {
	switch v := v.(type) {
	case string:
		return r.mask(v)
	case json.Number:
		if r.repeats(v) {
			return gone{}
		}
	case map[string]any:
		for name, child := range v {
			v[name] = r.values(child)
		}
	case []any:
		for i, child := range v {
			v[i] = r.values(child)
		}
	}
	return v
}

// repeats reports whether the number was taken out, as one or as a text. Short ones are left alone: they count, and stand for
// many things.
func (r *redaction) repeats(n json.Number) bool {
	if len(n) < minRepeated {
		return false
	}
	same := func(s string) bool {
		if s == n.String() {
			return true
		}
		a, err := strconv.ParseFloat(s, 64)
		b, _ := n.Float64()
		return err == nil && a == b && strings.ContainsAny(s+n.String(), ".eE")
	}
	return slices.ContainsFunc(r.words, same) || slices.ContainsFunc(r.texts, same)
}

// minInKey is the length in bytes from which a text is looked for inside keys: a short one is a part of many names.
const minInKey = 8

// keys is v with the keys masked that are a text or number that was taken out, or have a long one in them. Keys that then
// are the same get a number each.
func (r *redaction) keys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			child := r.keys(v[name])
			v[name] = child
			if shown := r.key(name); shown != name {
				delete(v, name)
				free := shown
				for i := 2; ; i++ {
					if _, taken := v[free]; !taken {
						break
					}
					free = shown + " " + strconv.Itoa(i)
				}
				v[free] = child
			}
		}
	case []any:
		for i, child := range v {
			v[i] = r.keys(child)
		}
	}
	return v
}

func (r *redaction) key(name string) string {
	if name == contract.Redacted {
		return name
	}
	is := func(s string) bool { return len(s) >= minRepeated && s == name }
	if slices.ContainsFunc(r.texts, is) || slices.ContainsFunc(r.words, is) {
		return contract.Redacted
	}
	var long redaction
	for _, text := range r.texts {
		if len(text) >= minInKey {
			long.texts = append(long.texts, text)
		}
	}
	return long.mask(name)
}

// mask is s without the texts and words, as they are and as they stand in JSON, escaped once or in a text of a text, and in
// URLs.
func (r *redaction) mask(s string) string {
	if s == contract.Redacted {
		return s
	}
	at := make([]int, len(s)+1)
	for i := range at {
		at[i] = i
	}
	spans := r.spans(s, at)
	for mark, unescape := range map[string]func(string) (string, int){`\`: jsonEscape, `%`: urlEscape} {
		for text, at, n := s, at, 0; n < mostEscaped && strings.Contains(text, mark); n++ {
			plain, from := unescaped(text, at, unescape)
			if len(plain) == len(text) {
				break // nothing is escaped
			}
			spans = append(spans, r.spans(plain, from)...)
			text, at = plain, from
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	end := 0
	for _, p := range spans {
		if p.from >= end {
			b.WriteString(s[end:p.from])
			b.WriteString(contract.Redacted)
		}
		end = max(end, p.to)
	}
	b.WriteString(s[end:])
	return b.String()
}

// mostEscaped is how many times a text may be escaped and is still found.
const mostEscaped = 3

type span struct{ from, to int }

// spans are the places of the texts, and of the words where no letter or digit stands next to them. Byte i of s is that at
// at[i] of the text that is masked.
func (r *redaction) spans(s string, at []int) (spans []span) {
	find := func(what string, alone bool) {
		for next := 0; ; {
			i := strings.Index(s[next:], what)
			if i < 0 {
				return
			}
			i += next
			next = i + len(what)
			before, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[next:])
			if !alone || !inWord(before) && !inWord(after) {
				spans = append(spans, span{at[i], at[next]})
			}
		}
	}
	for _, text := range r.texts {
		find(text, false)
	}
	for _, word := range r.words {
		find(word, true)
	}
	return spans
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// unescaped is s with its escapes taken back, and where each byte of that begins.
func unescaped(s string, at []int, unescape func(string) (string, int)) (string, []int) {
	var plain []byte
	var from []int
	for i := 0; i < len(s); {
		text, n := unescape(s[i:])
		if n == 0 {
			text, n = s[i:i+1], 1
		}
		for range len(text) {
			from = append(from, at[i])
		}
		plain = append(plain, text...)
		i += n
	}
	return string(plain), append(from, at[len(s)])
}

// jsonEscape is the text of the escape that s begins with (RFC 8259, 7), and its length; 0 where it begins with none.
func jsonEscape(s string) (string, int) {
	if len(s) < 2 || s[0] != '\\' {
		return "", 0
	}
	n := 2
	if s[1] == 'u' {
		n = 6
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' && (s[2] == 'd' || s[2] == 'D') {
			n = 12 // two halves of a character, mostly
		}
	}
	var text string
	if len(s) < n || json.Unmarshal([]byte(`"`+s[:n]+`"`), &text) != nil {
		return "", 0
	}
	return text, n
}

// urlEscape is the byte of the escape that s begins with (RFC 3986, 2.1), and its length; 0 where it begins with none.
func urlEscape(s string) (string, int) {
	if len(s) < 3 || s[0] != '%' {
		return "", 0
	}
	text, err := url.PathUnescape(s[:3])
	if err != nil {
		return "", 0
	}
	return text, 3
}

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
