package contract

import (
	"encoding/json"
	"slices"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// fills are the values that a narrowing gives: the fixed arguments and the defaults in Narrowed.By.
type fills struct {
	names   []string // of members, in order
	members map[string]*fills
	items   *fills
	// fixed and fallback are decoded values, of which isFixed and isDefault say whether there is one.
	fixed, fallback    any
	isFixed, isDefault bool
}

func readFills(by *strictjson.Object) *fills {
	f := &fills{members: map[string]*fills{}}
	for _, m := range members(by.Object("properties")) {
		sub, ok := m.Value.(*strictjson.Object)
		if !ok {
			continue
		}
		child := readFills(sub)
		if c, ok := sub.Find("const"); ok {
			child.fixed, child.isFixed = unordered(c), true
		}
		if d, ok := sub.Find("default"); ok {
			child.fallback, child.isDefault = unordered(d), true
		}
		f.names = append(f.names, m.Key)
		f.members[m.Key] = child
	}
	if items, ok := by.Get("items").(*strictjson.Object); ok {
		f.items = readFills(items)
	}
	return f
}

// any reports whether something below is filled in.
func (f *fills) any() bool {
	if f == nil {
		return false
	}
	return f.items.any() || slices.ContainsFunc(f.names, func(name string) bool {
		m := f.members[name]
		return m.isFixed || m.isDefault || m.any()
	})
}

// each calls visit for the members of objects in v that f is about, outer ones first, and stores what it returns.
func (f *fills) each(v any, visit func(m *fills, object map[string]any, name string)) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range f.names {
			m := f.members[name]
			visit(m, v, name)
			if member, ok := v[name]; ok && !m.isFixed {
				v[name] = m.each(member, visit)
			}
		}
	case []any:
		if f.items != nil {
			for i := range v {
				v[i] = f.items.each(v[i], visit)
			}
		}
	}
	return v
}

// defaults fills in the defaults of a decoded value, in place.
func (f *fills) defaults(v any) any {
	return f.each(v, func(m *fills, object map[string]any, name string) {
		if _, has := object[name]; !has && m.isDefault {
			object[name] = clone(m.fallback)
		}
	})
}

// give sets the fixed arguments of a decoded value, in place: where the object that has them is there.
func (f *fills) give(v any) any {
	return f.each(v, func(m *fills, object map[string]any, name string) {
		if m.isFixed {
			object[name] = clone(m.fixed)
		}
	})
}

// without returns an ordered value without the members that f fills in.
func (f *fills) without(v any) any {
	switch v := v.(type) {
	case *strictjson.Object:
		out := &strictjson.Object{}
		for _, member := range v.Members {
			m := f.members[member.Key]
			switch {
			case m == nil:
				out.Add(member.Key, member.Value)
			case !m.isFixed && !m.isDefault:
				out.Add(member.Key, m.without(member.Value))
			}
		}
		return out
	case []any:
		if f.items == nil {
			return v
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.items.without(v[i])
		}
		return out
	}
	return v
}

// fixes reports whether a path leads to a fixed argument or into one.
func (f *fills) fixes(path []string) bool {
	for ; f != nil && len(path) > 0; path = path[1:] {
		m := f.members[path[0]]
		switch {
		case m == nil:
			f = f.items
		case m.isFixed:
			return true
		default:
			f = m
		}
	}
	return false
}

// fixedNames returns the names of the fixed arguments at any depth.
func (f *fills) fixedNames() (names []string) {
	if f == nil {
		return nil
	}
	for _, name := range f.names {
		if f.members[name].isFixed {
			names = append(names, name)
		}
		names = append(names, f.members[name].fixedNames()...)
	}
	return append(names, f.items.fixedNames()...)
}

// fixedPart returns the schema of values that are a fixed one, in which the contract may have filled in more
// members of objects.
func fixedPart(v any) *strictjson.Object {
	switch v := v.(type) {
	case *strictjson.Object:
		properties, names := &strictjson.Object{}, []any{}
		for _, m := range v.Members {
			properties.Add(m.Key, fixedPart(m.Value))
			names = append(names, m.Key)
		}
		return strictjson.New("type", "object", "properties", properties, "required", names)
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = fixedPart(v[i])
		}
		out := strictjson.New("type", "array", "items", false)
		if len(items) > 0 {
			out.Add("prefixItems", items)
			out.Add("minItems", json.Number(itoa(len(items))))
		}
		return out
	}
	return strictjson.New("const", v)
}

// required writes a Narrowed.By so that what is fixed must be there too.
func required(by any) any {
	switch by := by.(type) {
	case *strictjson.Object:
		out := &strictjson.Object{}
		names := slices.Clone(by.List("required"))
		for _, m := range by.Members {
			switch m.Key {
			case "required":
				continue
			case "properties":
				properties := &strictjson.Object{}
				for _, p := range members(by.Object("properties")) {
					if sub, ok := p.Value.(*strictjson.Object); ok && sub.Has("const") && !slices.Contains(names, any(p.Key)) {
						names = append(names, p.Key)
					}
					properties.Add(p.Key, required(p.Value))
				}
				out.Add(m.Key, properties)
			case "items":
				out.Add(m.Key, required(m.Value))
			case "const":
				for _, part := range fixedPart(m.Value).Members {
					out.Set(part.Key, part.Value)
				}
			default:
				out.Add(m.Key, m.Value)
			}
		}
		if len(names) > 0 {
			out.Add("required", names)
		}
		return out
	}
	return by
}
