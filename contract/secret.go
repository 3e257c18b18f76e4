package contract

import (
	"encoding/json"
	"slices"
	"strings"
)

// Redacted stands for a secret value where arguments are shown.
const Redacted = "REDACTED"

// Redact returns args as they may be shown: what is declared as a secret, at any depth, is replaced by Redacted. It is for
// showing alone and need not pass the contract.
func (c *Contract) Redact(args Args) Args {
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

// Mask returns text, such as a message that a program made of args, without the values of secrets: each text and number
// in args that is one is replaced by Redacted.
func (c *Contract) Mask(args Args, text string) string {
	for _, s := range c.secretsIn(args.object) {
		text = strings.ReplaceAll(text, s, Redacted)
	}
	return text
}

// MaskJSON is Mask of the texts, numbers and keys in JSON. What holds no secret stays as it came.
func (c *Contract) MaskJSON(args Args, raw json.RawMessage) json.RawMessage {
	secrets := c.secretsIn(args.object)
	if len(secrets) == 0 || len(raw) == 0 {
		return raw
	}
	v, broken := decode(raw)
	if len(broken) > 0 { // no JSON that could be taken apart
		return appendJSON(nil, Redacted)
	}
	changed := false
	mask := func(text string) string {
		for _, s := range secrets {
			text = strings.ReplaceAll(text, s, Redacted)
		}
		return text
	}
	var visit func(v any) any
	visit = func(v any) any {
		switch v := v.(type) {
		case string:
			m := mask(v)
			changed = changed || m != v
			return m
		case json.Number:
			if slices.Contains(secrets, string(v)) {
				changed = true
				return Redacted
			}
		case []any:
			for i := range v {
				v[i] = visit(v[i])
			}
		case map[string]any:
			out := make(map[string]any, len(v))
			for key, below := range v {
				m := mask(key)
				changed = changed || m != key
				out[m] = visit(below)
			}
			return out
		}
		return v
	}
	if masked := visit(v); changed {
		return appendJSON(nil, masked)
	}
	return raw
}

func (c *Contract) secretField() bool {
	return slices.ContainsFunc(c.spec.Fields, func(f Field) bool { return f.Secret })
}

// secretName reports whether an argument of a contract with secrets is not shown: it is one, or it is not declared, so that
// CUE may have made it of one.
func (c *Contract) secretName(name string) bool {
	f, ok := c.spec.Field(name)
	return f.Secret || !ok && c.spec.Remainder != nil
}

// secretsIn lists the scalars of object that are secret, the longest first. One of fewer than four bytes is none: a text
// without it would say nothing.
func (c *Contract) secretsIn(object map[string]any) (out []string) {
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

// discreet takes the values of secrets out of violations that were not made by an explainer: those of the decoder, and
// those of CUE.
func (c *Contract) discreet(found []Violation, object map[string]any) []Violation {
	use, err := c.take()
	defer c.give(use)
	if err != nil || len(found) == 0 || !use.secrets && !c.secretField() {
		return found
	}
	for i, v := range found {
		path := steps(v.Pointer)
		if len(path) > 0 && c.secretName(path[0]) || use.shape.hides(path) {
			found[i].Got = undisclosed("")
			if strings.HasPrefix(v.Got, "broken JSON") || strings.HasPrefix(v.Got, "the key twice") || v.Got == "nothing" {
				found[i].Got = v.Got
			}
		}
	}
	for _, s := range c.secretsIn(object) {
		for i := range found {
			found[i].Got = strings.ReplaceAll(found[i].Got, s, Redacted)
			found[i].Expected = strings.ReplaceAll(found[i].Expected, s, Redacted)
			found[i].Pointer = strings.ReplaceAll(found[i].Pointer, escapePointer(s), Redacted) // CUE can name a field by one
		}
	}
	return found
}

// steps are those of a JSON pointer.
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
