package contract

import (
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// Either returns a schema that accepts what either of two schemas accepts, as the alternatives of an anyOf.
// The first is one that this project wrote or the schema of an upstream server that a contract was made of;
// the second has no reference, and means the same in every draft. The first stays in its own draft, so that
// validators read it as before: its shared definitions move to the top, or its references are rewritten. Only
// a schema with identifiers, anchors or dynamic references is converted to draft 2020-12 (Latest). object
// means that both accept only objects, and that the top must state so too.
func Either(first, second json.RawMessage, object bool) (json.RawMessage, error) {
	one, err := decodeOrdered(first)
	if err != nil {
		return nil, err
	}
	other, err := decodeOrdered(second)
	if err != nil {
		return nil, err
	}
	refs, err := readReferences(one)
	if err != nil {
		return nil, err
	}
	if moved, ok := refs.moved(); ok {
		for schema, ref := range moved {
			schema.Set("$ref", ref)
		}
	} else if one, err = convert(one); err != nil {
		return nil, err
	}
	either, rest, shared := &strictjson.Object{}, any(one), []strictjson.Member(nil)
	if top, ok := one.(*strictjson.Object); ok {
		alone := &strictjson.Object{}
		for _, m := range top.Members {
			switch {
			case m.Key == "$schema":
				either.Members = append(either.Members, m)
			case isShared(m.Key):
				shared = append(shared, m)
			default:
				alone.Members = append(alone.Members, m)
			}
		}
		rest = alone
	}
	if object {
		either.Set("type", "object")
	}
	either.Set("anyOf", []any{rest, other})
	either.Members = append(either.Members, shared...)
	return appendOrdered(make([]byte, 0, len(first)+len(second)+64), either), nil
}

// firstAlternative is the pointer to the first alternative in the result of Either.
const firstAlternative = "/anyOf/0"

// isShared reports whether Either keeps a member of the first schema at the top, where references find it.
func isShared(member string) bool { return member == "$defs" || member == "definitions" }

// moved returns the references of the document that would change their meaning in the first alternative of
// Either, each with its new value. ok is false if the document must be converted instead: it refers to
// schemas otherwise than by pointer, or to a location where no draft has a schema.
func (r *references) moved() (moved map[*strictjson.Object]string, ok bool) {
	moved, ok = map[*strictjson.Object]string{}, true
	schemas := map[string]bool{}
	eachSchema(r.top, "", func(_ *strictjson.Object, pointer string) { schemas[pointer] = true })
	eachSchema(r.top, "", func(o *strictjson.Object, _ string) {
		for _, keyword := range []string{"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"} {
			if _, has := o.Find(keyword); has {
				ok = false
			}
		}
		ref, refers := o.Get("$ref").(string)
		if _, meta := draftNamed(ref); !refers || meta {
			return
		}
		fragment, local := strings.CutPrefix(ref, "#")
		pointer, _, err := r.resolve(r.order[0], ref)
		if !local || err != nil {
			ok = false
			return
		}
		if v, _ := r.at(pointer); !schemas[pointer] && !isBool(v) {
			ok = false
			return
		}
		if path := steps(pointer); len(path) == 0 || !isShared(path[0]) {
			moved[o] = "#" + firstAlternative + fragment
		}
	})
	return moved, ok
}

func isBool(v any) bool { _, ok := v.(bool); return ok }
