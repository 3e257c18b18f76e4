package worker

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"

	"github.com/catalogd/catalogd/internal/plain"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// maxDeclaration caps what one tool, server or branch compiles to, encoded.
const maxDeclaration = 4 << 20

// partSize is about how much of declarations goes into one part.
const partSize = 1 << 20

// kind is what tools, servers and branches have in common.
type kind[T any] struct {
	field  string
	name   func(*T) string
	source func(*T) *registry.Source
}

var (
	tools    = kind[registry.Tool]{"tools", func(t *registry.Tool) string { return t.Name }, func(t *registry.Tool) *registry.Source { return &t.Source }}
	servers  = kind[registry.Server]{"servers", func(s *registry.Server) string { return s.Name }, func(s *registry.Server) *registry.Source { return &s.Source }}
	branches = kind[registry.Branch]{"branches", func(b *registry.Branch) string { return b.Name }, func(b *registry.Branch) *registry.Source { return &b.Source }}
)

// differ is the child's memory of what the parent has of one kind.
type differ[T any] struct {
	kind kind[T]
	has  map[string]had
}

// had is a declaration as the parent has it.
type had struct {
	source registry.Source
	sum    digest
}

// next takes the declarations of the next build and calls send with those that are new or changed, a part's worth at a
// time. It returns the names that are gone, and a problem for each declaration that is too large to be handed over.
func (d *differ[T]) next(all []T, send func([]T)) (gone []string, l problem.List) {
	has := make(map[string]had, len(all))
	var changed []T
	size := 0
	for i := range all {
		name, source := d.kind.name(&all[i]), *d.kind.source(&all[i])
		before, known := d.has[name]
		if known && before.source.Digest == source.Digest && before.source.Pos == source.Pos && same(before.source.Fields, source.Fields) {
			has[name] = before
			continue
		}
		data := plain.Marshal(all[i])
		if len(data) > maxDeclaration {
			l.Errorf(problem.LoadMemory, source.Pos, d.kind.field+"."+name,
				"the declaration compiles to %d bytes, more than the %d that are allowed; make its schema, examples or texts smaller", len(data), maxDeclaration)
			continue
		}
		now := had{source, sha256.Sum256(data)}
		has[name] = now
		if known && before.sum == now.sum {
			continue
		}
		changed = append(changed, all[i])
		if size += len(data); size > partSize {
			send(changed)
			changed, size = nil, 0
		}
	}
	if len(changed) > 0 {
		send(changed)
	}
	for name := range d.has {
		if _, still := has[name]; !still {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	d.has = has
	return gone, l
}

// same reports whether two maps are one: a package that was not evaluated again hands out the same ones.
func same(a, b map[string]problem.Position) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// patch is the parent's side: the declarations of the build before, without those that are gone, and with those that are
// new or changed, by name.
func (k kind[T]) patch(before, changed []T, gone []string) ([]T, error) {
	byName := func(a, b T) int { return cmp.Compare(k.name(&a), k.name(&b)) }
	slices.SortFunc(changed, byName)
	replaced := make(map[string]bool, len(changed)+len(gone))
	for i := range changed {
		if replaced[k.name(&changed[i])] {
			return nil, fmt.Errorf("%s.%s comes twice", k.field, k.name(&changed[i]))
		}
		replaced[k.name(&changed[i])] = true
	}
	for _, name := range gone {
		if replaced[name] {
			return nil, fmt.Errorf("%s.%s is both there and gone", k.field, name)
		}
		replaced[name] = true
	}
	out := make([]T, 0, len(before)+len(changed))
	for i := range before {
		if !replaced[k.name(&before[i])] {
			out = append(out, before[i])
		}
	}
	out = append(out, changed...)
	slices.SortFunc(out, byName)
	return out, nil
}
