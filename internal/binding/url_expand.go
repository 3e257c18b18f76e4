package binding

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/placeholder"
	"github.com/catalogd/catalogd/registry"
)

// expand fills in the arguments. The result has the template's origin and the fixed beginning of its path, or
// the call is refused.
func (t urlTemplate) expand(args contract.Args) (*url.URL, error) {
	var refused violations
	for e, v := range t.variables() {
		value, ok := lookup(args, v.name)
		if !ok {
			continue
		}
		if t.join[v.name] != "" {
			if value, ok = t.join.text(&refused, args, v.name); !ok && !e.inPath {
				continue
			}
		}
		if !flat(value) {
			refused.add(v.name, "a value with others inside", "a single value, a list of them, or an object of them, because it becomes part of a URL")
		}
		// "", "." and ".." as a segment would change the path.
		if s, _ := placeholder.Text(value); e.inPath && slices.Contains([]string{"", ".", ".."}, s) {
			refused.add(v.name, fmt.Sprintf("%q", s), "a value that names something, because it becomes a segment of a URL's path")
		}
	}
	if err := refused.err(); err != nil {
		return nil, err
	}
	u, err := t.place(func(name string) any {
		if t.join[name] != "" {
			if text, ok := t.join.text(new(violations), args, name); ok {
				return text
			}
			return nil
		}
		v, _ := lookup(args, name)
		return v
	})
	if err == nil {
		return u, nil
	}
	for e, v := range t.variables() {
		if e.inPath {
			refused.add(v.name, "a value that changes the URL's path", "one without . and .. between slashes, however encoded")
		}
	}
	if err := refused.err(); err != nil {
		return nil, err
	}
	return nil, nothingRan(registry.Internal, "the tool's URL would leave its place", err)
}

// place fills in values, nil for an absent one, and checks that the URL keeps the origin and path that were
// decided on.
func (t urlTemplate) place(value func(name string) any) (*url.URL, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expression == nil {
			b.WriteString(encodeNonASCII(p.literal))
			continue
		}
		p.expression.write(&b, value)
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, err
	}
	return u, egress.Within(t.fixed, u)
}

// write expands the expression (RFC 6570, 3.2). An absent value, null, and an empty list or object expand to
// nothing.
func (e *expression) write(b *strings.Builder, value func(name string) any) {
	separator, named := ",", false
	switch e.operator {
	case ".", "/":
		separator = e.operator
	case ";":
		separator, named = ";", true
	case "?", "&":
		separator, named = "&", true
	}
	begin := e.operator
	for _, v := range e.vars {
		for _, item := range e.items(v, value(v.name), named) {
			b.WriteString(begin)
			b.WriteString(item)
			begin = separator
		}
	}
}

// items are a variable's values, to be joined by the expression's separator.
func (e *expression) items(v variable, value any, named bool) []string {
	var values []string
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		for _, one := range value {
			s, _ := placeholder.Text(one)
			values = append(values, encode(s))
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			s, _ := placeholder.Text(value[key])
			if v.explode {
				values = append(values, encode(key)+"="+encode(s))
			} else {
				values = append(values, encode(key), encode(s))
			}
		}
		named = named && !v.explode
	default:
		s, _ := placeholder.Text(value)
		return []string{e.pair(v.name, encode(s), named)}
	}
	switch {
	case len(values) == 0:
		return nil
	case !v.explode:
		return []string{e.pair(v.name, strings.Join(values, ","), named)}
	}
	for i := range values {
		values[i] = e.pair(v.name, values[i], named)
	}
	return values
}

func (e *expression) pair(name, value string, named bool) string {
	switch {
	case !named:
		return value
	case value == "" && e.operator == ";":
		return name
	}
	return name + "=" + value
}

// flat reports whether a decoded value is single, or a list or an object of single ones.
func flat(v any) bool {
	single := func(v any) bool { _, ok := placeholder.Text(v); return ok }
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !single(e) })
	case map[string]any:
		for _, e := range v {
			if !single(e) {
				return false
			}
		}
		return true
	}
	return single(v)
}

// encode percent-encodes every byte except the unreserved ones (RFC 3986, 2.3).
func encode(s string) string {
	return percent(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
	})
}

func encodeNonASCII(s string) string {
	return percent(s, func(c byte) bool { return c < 0x80 })
}

func percent(s string, keep func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if keep(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
	}
	return b.String()
}
