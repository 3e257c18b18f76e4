package contract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Redacted replaces a secret value where arguments are shown.
const Redacted = "REDACTED"

// Redact returns args with everything that is declared as a secret, at any depth, replaced by Redacted. The
// result is for display only and may violate the contract.
func (c *Contract) Redact(args Args) Args {
	if c.behind != nil {
		return c.behind.base.Redact(args)
	}
	use, err := c.take()
	defer c.give(use)
	if err != nil || !use.secrets && !c.secretField() {
		return args
	}
	shown, _ := clone(map[string]any(args.object)).(map[string]any)
	shown, _ = use.shape.redact(shown, nil).(map[string]any)
	for name := range shown {
		if c.secretName(name) {
			shown[name] = Redacted
		}
	}
	return Args{raw: appendJSON(nil, shown), object: shown}
}

// Secrets returns the secret strings and numbers in args, the longest first, for masking them in messages.
// Values of fewer than four bytes are left out, because masking them would make most texts unreadable.
func (c *Contract) Secrets(args Args) []string { return c.secretsIn(args.object) }

func (c *Contract) secretField() bool {
	return slices.ContainsFunc(c.spec.Fields, func(f Field) bool { return f.Secret })
}

// secretName reports whether an argument of a contract with secrets must be redacted: because it is a secret,
// or because it is not declared and CUE may have computed it from one.
func (c *Contract) secretName(name string) bool {
	f, ok := c.spec.Field(name)
	return f.Secret || !ok && c.spec.Remainder != nil
}

// secretsIn is Secrets of an object.
func (c *Contract) secretsIn(object map[string]any) (out []string) {
	if c.behind != nil {
		return c.behind.base.secretsIn(object)
	}
	use, err := c.take()
	defer c.give(use)
	if err != nil || !use.secrets && !c.secretField() {
		return nil
	}
	const least = 4
	var visit func(v any, path []string, hidden bool)
	visit = func(v any, path []string, hidden bool) {
		if !hidden {
			hidden = use.shape.hides(path)
			if f, ok := c.spec.Field(first(path)); ok {
				hidden = hidden || f.Secret
			}
		}
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				visit(member, append(slices.Clone(path), name), hidden)
			}
		case []any:
			for _, item := range v {
				visit(item, append(slices.Clone(path), "0"), hidden)
			}
		case string:
			if hidden && len(v) >= least {
				out = append(out, v)
			}
		case json.Number:
			if hidden && len(v) >= least {
				out = append(out, string(v))
			}
		}
	}
	visit(object, nil, false)
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

func first(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[0]
}

func (s *shape) redact(v any, path []string) any {
	if s.hides(path) {
		return Redacted
	}
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = s.redact(v[name], append(slices.Clone(path), name))
		}
	case []any:
		for i := range v {
			v[i] = s.redact(v[i], append(slices.Clone(path), "0"))
		}
	}
	return v
}

// redactViolations removes the values of secrets from violations of the decoder and of CUE. The explainer
// makes its own without them.
func (c *Contract) redactViolations(found []Violation, object map[string]any) []Violation {
	use, err := c.take()
	defer c.give(use)
	if err != nil || len(found) == 0 || !use.secrets && !c.secretField() {
		return found
	}
	for i, v := range found {
		path := steps(v.Pointer)
		if len(path) > 0 && c.secretName(path[0]) || use.shape.hides(path) {
			found[i].Got = describeSecret("")
			if strings.HasPrefix(v.Got, "broken JSON") || strings.HasPrefix(v.Got, "the key twice") || v.Got == "nothing" {
				found[i].Got = v.Got
			}
		}
	}
	for _, s := range c.secretsIn(object) {
		for i := range found {
			if strings.Contains(found[i].Sent, s) {
				found[i].Sent = ""
			}
			found[i].Got = strings.ReplaceAll(found[i].Got, s, Redacted)
			found[i].Expected = strings.ReplaceAll(found[i].Expected, s, Redacted)
			found[i].Pointer = strings.ReplaceAll(found[i].Pointer, escapePointer(s), Redacted) // a field's name in CUE can come from one
		}
	}
	return found
}

// steps returns the unescaped steps of a JSON pointer.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	path := strings.Split(pointer[1:], "/")
	for i := range path {
		path[i] = strings.ReplaceAll(strings.ReplaceAll(path[i], "~1", "/"), "~0", "~")
	}
	return path
}

// Secret returns the path of the first value that the schema declares as a secret, at any depth, in any
// alternative and through any reference: the names of the members on the way, without items of lists. ok is
// false if there is none.
func (s Spec) Secret() (path []string, ok bool) {
	// A schema without the keyword or an escape needs no parsing.
	if bytes.Contains(s.Schema, []byte("writeOnly")) || bytes.IndexByte(s.Schema, '\\') >= 0 {
		if path, ok := s.secretInSchema(); ok {
			return path, true
		}
	}
	for _, f := range s.Fields {
		if f.Secret {
			return []string{f.Name}, true
		}
	}
	if c := s.WhenClosed; c != nil && c.Schema != nil {
		return Spec{Schema: c.Schema, Fields: c.Fields}.Secret()
	}
	return nil, false
}

func (s Spec) secretInSchema() (path []string, ok bool) {
	doc, err := decodeOrdered(s.Schema)
	if err == nil && s.Upstream {
		doc, err = convert(doc)
	}
	if err != nil { // New refuses such a schema; it may have a secret
		return nil, true
	}
	find := secretFinder{seen: map[string]bool{}}
	if top, ok := doc.(*strictjson.Object); ok {
		find.defs, _ = top.Get("$defs").(*strictjson.Object)
	}
	return find.in(doc, nil)
}

// secretFinder searches for a secret in a schema of draft 2020-12 whose references all refer to its $defs.
type secretFinder struct {
	defs *strictjson.Object
	seen map[string]bool // followed references
}

func (f *secretFinder) in(schema any, path []string) ([]string, bool) {
	o, ok := schema.(*strictjson.Object)
	if !ok {
		return nil, false
	}
	if o.Get("writeOnly") == true {
		return path, true
	}
	if ref, ok := o.Get("$ref").(string); ok && !f.seen[ref] && f.defs != nil {
		f.seen[ref] = true
		for _, def := range f.defs.Members {
			if ref == "#/$defs/"+escapePointer(def.Key) {
				if found, ok := f.in(def.Value, path); ok {
					return found, true
				}
			}
		}
	}
	for _, m := range o.Members {
		switch below := m.Value.(type) {
		case []any:
			if !slices.Contains(schemaLists, m.Key) {
				continue
			}
			for _, item := range below {
				if found, ok := f.in(item, path); ok {
					return found, true
				}
			}
		case *strictjson.Object:
			if slices.Contains(schemaKeywords, m.Key) {
				if found, ok := f.in(below, path); ok {
					return found, true
				}
			}
			if m.Key == "$defs" || !slices.Contains(schemaMaps, m.Key) {
				continue
			}
			for _, named := range below.Members {
				to := path
				if m.Key == "properties" {
					to = append(slices.Clone(path), named.Key)
				}
				if found, ok := f.in(named.Value, to); ok {
					return found, true
				}
			}
		}
	}
	return nil, false
}
