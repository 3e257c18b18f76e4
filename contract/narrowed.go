package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// behind is what a narrowed contract has behind its own schema. Its parts are immutable.
type behind struct {
	base  *Contract
	fills *fills
	// by checks what base has accepted.
	by *Contract
	// hidden are the names of what is fixed.
	hidden []string
}

// newBehind compiles what is behind a narrowed Spec.
func newBehind(spec Spec, rest Rest) (*behind, error) {
	whole, err := spec.Narrowed.base()
	if err != nil {
		return nil, err
	}
	base, err := New(whole, rest)
	if err != nil {
		return nil, err
	}
	v, err := decodeOrdered(spec.Narrowed.By)
	by, ok := v.(*strictjson.Object)
	if err != nil || !ok {
		return nil, fmt.Errorf("contract: narrowing: it is not an object: %w", err)
	}
	final := required(by).(*strictjson.Object)
	final.Set("type", "object")
	check := Spec{Schema: appendOrdered(nil, final), Upstream: true, NoFill: true, Strictness: Open, Value: true}
	b := &behind{base: base, fills: readFills(by)}
	b.hidden = b.fills.fixedNames()
	if b.by, err = New(check, nil); err != nil {
		return nil, fmt.Errorf("contract: narrowing: %w", err)
	}
	return b, nil
}

// Recheck checks arguments that Check has returned, possibly long ago or changed by a program of the tool. It
// differs from Check in that computed arguments may be among them, which are computed again, and that fixed
// arguments must be.
func (c *Contract) Recheck(ctx context.Context, raw json.RawMessage) (Args, []Violation, error) {
	if c.behind == nil {
		return c.Check(ctx, c.withoutComputed(raw))
	}
	args, found, err := c.behind.base.Recheck(ctx, raw)
	if err != nil || found != nil {
		return Args{}, c.behind.visible(found, nil), err
	}
	return c.behind.final(args, nil)
}

// withoutComputed returns the arguments without those that are computed. What is no object stays as it is.
func (c *Contract) withoutComputed(raw json.RawMessage) json.RawMessage {
	if !slices.ContainsFunc(c.spec.Fields, func(f Field) bool { return f.Computed }) {
		return raw
	}
	v, found := decode(raw)
	object, ok := v.(map[string]any)
	if !ok || len(found) > 0 {
		return raw
	}
	for _, f := range c.spec.Fields {
		if f.Computed {
			delete(object, f.Name)
		}
	}
	return appendJSON(make([]byte, 0, len(raw)), object)
}

// checkBehind takes arguments that the narrowed schema has accepted, gives them the fixed ones, and has the
// contract check them.
func (c *Contract) checkBehind(ctx context.Context, args Args) (Args, []Violation, error) {
	sent, _ := clone(args.object).(map[string]any)
	given := c.behind.fills.give(args.object)
	checked, found, err := c.behind.base.Check(ctx, appendJSON(make([]byte, 0, len(args.raw)+64), given))
	if err != nil || found != nil {
		return Args{}, c.behind.visible(found, sent), err
	}
	return c.behind.final(checked, sent)
}

// final checks what the contract has accepted against the narrowing: CUE may have filled in something else.
func (b *behind) final(args Args, sent map[string]any) (Args, []Violation, error) {
	_, found, err := b.by.Check(context.Background(), args.JSON())
	if err != nil || found != nil {
		return Args{}, b.visible(b.base.redactViolations(found, args.object), sent), err
	}
	return args, nil, nil
}

// sent returns violations for fixed arguments that a call contains, also in other case: some readers of JSON
// take such a key for the same. declared returns the names that the schema declares at a path.
func (b *behind) sent(object map[string]any, declared func(path []string) []string) (found []Violation) {
	var visit func(f *fills, v any, path []string)
	visit = func(f *fills, v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				m := f.members[name]
				if m != nil && !m.isFixed {
					visit(m, member, append(slices.Clone(path), name))
					continue
				}
				like := func(n string) bool { return f.members[n].isFixed && strings.EqualFold(n, name) }
				if m == nil && (!slices.ContainsFunc(f.names, like) || slices.Contains(declared(path), name)) {
					continue
				}
				found = append(found, Violation{
					Pointer: pointer(append(slices.Clone(path), name)), Got: unexpectedKey, Expected: "it to be left out: there is no such argument",
				})
			}
		case []any:
			if f.items != nil {
				for i := range v {
					visit(f.items, v[i], append(slices.Clone(path), itoa(i)))
				}
			}
		}
	}
	visit(b.fills, object, nil)
	return sorted(found)
}

// alsoFixed adds to the violations of the schema those for fixed arguments of which it says nothing.
func (c *Contract) alsoFixed(found, fixed []Violation, object map[string]any) []Violation {
	if c.behind == nil {
		return found
	}
	for _, v := range fixed {
		if !slices.ContainsFunc(found, func(f Violation) bool { return f.Pointer == v.Pointer }) {
			found = append(found, v)
		}
	}
	return c.behind.base.redactViolations(sorted(found), object)
}

// visible rewrites violations that the contract found with the fixed arguments, so that they tell a caller
// nothing of these: sent are the arguments without them, nil if they are not known.
func (b *behind) visible(found []Violation, sent map[string]any) []Violation {
	const other = "other values beside those that are given here"
	var out []Violation
	seen := map[string]bool{}
	for _, v := range found {
		path := steps(v.Pointer)
		for b.fills.fixes(path) {
			path, v.Got = path[:len(path)-1], ""
			v.Expected, v.Nearest, v.Sent = other, "", ""
		}
		v.Pointer = pointer(path)
		if mentionsWord(v.Got, b.hidden) || mentionsWord(v.Expected, b.hidden) || slices.Contains(b.hidden, v.Nearest) || slices.Contains(b.hidden, v.Sent) {
			v.Got, v.Expected, v.Nearest, v.Sent = "", other, "", ""
		}
		value, here := at(sent, path)
		if _, object := value.(map[string]any); object || v.Got == "" {
			v.Got = "what is given"
			if here && sent != nil {
				v.Got = describe(value)
			}
		}
		if !seen[v.Pointer] {
			seen[v.Pointer] = true
			out = append(out, v)
		}
	}
	return b.base.redactViolations(sorted(out), sent)
}

// at returns the value at a path of a decoded value.
func at(v any, path []string) (any, bool) {
	for _, step := range path {
		switch parent := v.(type) {
		case map[string]any:
			member, ok := parent[step]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			v = parent[i]
		default:
			return nil, false
		}
	}
	return v, true
}
