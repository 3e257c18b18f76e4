package invoke

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/secret"
	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/registry"
)

// redact is a result without what is at the pointers (RFC 6901, where a step * is every item and every key)
// of its structured content, or of each of its texts that is JSON, and without what the patterns match in any
// of its strings and numbers. A string becomes contract.Redacted, or what is matched of it; all else goes
// with its key. Whatever else of the result repeats a text or number that was taken out is redacted too, in
// the encodings that a secret.Masker knows; true, false and null are not looked for. Blocks and parts in which nothing
// changes keep their bytes, and a result in which nothing does is returned itself, which is never changed.
//
// It is not ok for a successful result of which nobody can say what is at a pointer: one without structure,
// with a text that is no JSON or with no text.
func redact(result *registry.Result, pointers []string, patterns []*regexp.Regexp) (_ *registry.Result, ok bool) {
	var r redaction
	rest := *result
	structured := root{raw: result.Structured}
	texts := make([]root, len(result.Content))
	if len(pointers) > 0 && result.Structured != nil {
		structured = r.root(result.Structured, pointers)
	}
	prose, some := false, false
	for i, raw := range result.Content {
		if s, ok := textOf(raw); ok {
			texts[i] = r.root([]byte(s), nil)
			if _, scalar := texts[i].after.(string); scalar {
				texts[i] = root{} // a text in quotes is a text
			}
			if result.Structured == nil && texts[i].is {
				texts[i] = r.root([]byte(s), pointers)
			}
			prose, some = prose || !texts[i].is, true
		}
	}
	if len(pointers) > 0 && result.Structured == nil && !result.IsError && (prose || !some && len(result.Content) > 0) {
		return nil, false
	}
	r.matched(result, patterns)
	r.masks(patterns)
	if r.all == nil && !r.taken {
		return result, true
	}

	changed := false
	rest.Structured = r.json(structured)
	changed = changed || !bytes.Equal(rest.Structured, result.Structured)
	rest.Content = make([]json.RawMessage, len(result.Content))
	for i, raw := range result.Content {
		rest.Content[i] = r.block(raw, texts[i], structured, rest.Structured)
		changed = changed || !bytes.Equal(rest.Content[i], raw)
	}
	rest.Meta = r.json(root{raw: result.Meta})
	changed = changed || !bytes.Equal(rest.Meta, result.Meta)
	for _, name := range slices.Sorted(maps.Keys(result.Fields)) {
		raw := result.Fields[name]
		changed = changed || r.all.Replace(name) != name || !bytes.Equal(r.json(root{raw: raw}), raw)
	}
	if !changed {
		return result, true
	}
	rest.Fields, rest.Answer = nil, nil // nobody knows what the fields repeat, in which form
	return &rest, true
}

// root is a JSON document of a result. after is what is left of it at the pointers; is, that it is JSON.
type root struct {
	raw           []byte
	before, after any
	is            bool
	taken         bool // something was taken out at a pointer
}

func (r *redaction) root(raw []byte, pointers []string) root {
	out := root{raw: raw}
	if out.after, out.is = decoded(raw); !out.is {
		return out
	}
	out.before, _ = decoded(raw)
	before := r.taken
	r.taken = false
	for _, pointer := range pointers {
		if pointer == "" {
			out.after = r.take(out.after)
			continue
		}
		steps := strings.Split(pointer[1:], "/")
		for i, s := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
		}
		r.at(out.after, steps)
	}
	out.taken, r.taken = r.taken, r.taken || before
	return out
}

// redaction remembers what was taken out: texts of some length wherever they are, and short ones and numbers
// where they stand by themselves.
type redaction struct {
	texts, words []string
	taken        bool // something was
	// all finds these and what the patterns match; data the texts alone, in what may be no text; long the
	// patterns, and of the texts those that are long enough to be no part of a name by chance.
	all, data, long *secret.Masker
	changed         bool // by masked
}

// gone stands for what goes with its key.
type gone struct{}

// at takes out what is at the steps below v.
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
	r.taken = true
	r.note(v)
	if _, ok := v.(string); ok {
		return contract.Redacted
	}
	return gone{}
}

func (r *redaction) note(v any) {
	switch v := v.(type) {
	case string:
		r.texts = append(r.texts, v)
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

// minNoted is the length in bytes from which a text is looked for inside keys, and what a pattern matched is
// looked for elsewhere: a short one is a part of many names.
const minNoted = 8

// matched notes what the patterns match, as words: inside of one, they say themselves what must go.
func (r *redaction) matched(result *registry.Result, patterns []*regexp.Regexp) {
	if len(patterns) == 0 {
		return
	}
	look := func(s string) {
		for _, p := range patterns {
			for _, found := range p.FindAllString(s, -1) {
				if len(found) >= minNoted && found != contract.Redacted {
					r.words = append(r.words, found)
				}
			}
		}
	}
	for _, raw := range slices.Concat([]json.RawMessage{result.Structured, result.Meta}, result.Content) {
		v, _ := decoded(raw)
		visit(v, look)
	}
}

// visit hands on every string in v, keys included.
func visit(v any, each func(string)) {
	switch v := v.(type) {
	case string:
		each(v)
	case map[string]any:
		for name, child := range v {
			each(name)
			visit(child, each)
		}
	case []any:
		for _, child := range v {
			visit(child, each)
		}
	}
}

func (r *redaction) masks(patterns []*regexp.Regexp) {
	var long []string
	for _, s := range r.texts {
		if len(s) >= minNoted {
			long = append(long, s)
		}
	}
	r.all = secret.NewMasker(contract.Redacted, r.texts, r.words, patterns...)
	r.data = secret.NewMasker(contract.Redacted, r.texts, nil)
	r.long = secret.NewMasker(contract.Redacted, long, nil, patterns...)
}

// json is a document without what was taken out; nil where that is the whole of it.
func (r *redaction) json(of root) json.RawMessage {
	if len(of.raw) == 0 {
		return of.raw
	}
	if !of.is {
		if of.after, of.is = decoded(of.raw); !of.is {
			return nil // it can't be taken apart
		}
		of.before = of.after // not compared
	}
	before := reflect.TypeOf(of.before)
	r.changed = of.taken
	after := r.masked(of.after)
	switch {
	case !r.changed:
		return of.raw
	case reflect.TypeOf(after) != before && !isText(of.before):
		return nil
	}
	return encoded(after)
}

func isText(v any) bool { _, ok := v.(string); return ok }

// block is a block of content without what was taken out. A text that is the whole of the structured result
// is what is left of that, and one that is JSON is redacted as such before it is as a text. Of the names in
// it only those of its _meta are anyone's own.
func (r *redaction) block(raw json.RawMessage, text, structured root, left json.RawMessage) json.RawMessage {
	v, ok := decoded(raw)
	block, object := v.(map[string]any)
	if !ok || !object {
		return registry.Text(contract.Redacted) // it can't be taken apart
	}
	r.changed = false
	if text.is {
		s := contract.Redacted
		if structured.is && structured.taken && reflect.DeepEqual(text.before, structured.before) {
			s = cmp.Or(string(left), contract.Redacted)
		} else if shown := r.json(text); shown != nil {
			s = string(shown)
		}
		r.changed = s != string(text.raw)
		block["text"] = s
	}
	resource, _ := block["resource"].(map[string]any)
	if r.holds(block["data"]) || r.holds(resource["blob"]) {
		return registry.Text(contract.Redacted)
	}
	changed := r.changed
	for _, name := range slices.Sorted(maps.Keys(block)) {
		switch name {
		case "type", "data":
		case "_meta":
			r.changed = false
			block[name] = r.masked(block[name])
			changed = changed || r.changed
		default:
			r.changed = false
			block[name] = r.values(block[name])
			changed = changed || r.changed
		}
	}
	if !changed {
		return raw
	}
	return encoded(swept(block))
}

// holds reports whether what is encoded as base64 has a text that was taken out or, where that is text, what
// a pattern matches.
func (r *redaction) holds(v any) bool {
	s, ok := v.(string)
	if !ok || s == "" {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(s)
	switch {
	case err != nil:
		return r.all.Holds([]byte(s))
	case utf8.Valid(data):
		return r.all.Holds(data)
	}
	return r.data.Holds(data)
}

// masked is v without what is gone, and with every text, number and key masked.
func (r *redaction) masked(v any) any { return r.keys(swept(r.values(v))) }

// values is v with every text masked, and without the numbers that were taken out elsewhere.
func (r *redaction) values(v any) any {
	switch v := v.(type) {
	case string:
		shown := r.all.Replace(v)
		r.changed = r.changed || shown != v
		return shown
	case json.Number:
		if r.all.Number(v.String()) {
			r.changed = true
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

// keys is v with the keys masked that are a text or number that was taken out, or have a long one in them.
// Keys that then are the same get a number each.
func (r *redaction) keys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			child := r.keys(v[name])
			v[name] = child
			if shown := r.key(name); shown != name {
				r.changed = true
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
	if r.all.Is(name) {
		return contract.Redacted
	}
	return r.long.Replace(name)
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

// lenient accepts what servers send: the answers of tools are forwarded as they are.
var lenient = strictjson.Options{AllowDuplicates: true, AllowUnpaired: true}

func decoded(raw []byte) (v any, ok bool) {
	v, err := strictjson.DecodeMaps(raw, lenient, nil)
	return v, err == nil
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
