package worker

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"

	"github.com/catalogd/catalogd/internal/wire"
	"github.com/catalogd/catalogd/problem"
	"github.com/catalogd/catalogd/registry"
)

// maxDeclaration caps the encoding of one tool, server or branch, in bytes.
const maxDeclaration = 4 << 20

// partSize is the size in bytes from which on the declarations of a part are sent.
const partSize = 1 << 20

// declarationKind is what tools, servers and branches have in common.
type declarationKind[T any] struct {
	field  string
	name   func(*T) string
	source func(*T) *registry.Source
}

var (
	tools = declarationKind[registry.Tool]{
		"tools",
		func(t *registry.Tool) string { return t.Name },
		func(t *registry.Tool) *registry.Source { return &t.Source },
	}
	servers = declarationKind[registry.Server]{
		"servers",
		func(s *registry.Server) string { return s.Name },
		func(s *registry.Server) *registry.Source { return &s.Source },
	}
	branches = declarationKind[registry.Branch]{
		"branches",
		func(b *registry.Branch) string { return b.Name },
		func(b *registry.Branch) *registry.Source { return &b.Source },
	}
)

// differ finds, in a child, which declarations of one kind differ from those that the parent has.
type differ[T any] struct {
	kind declarationKind[T]
	has  map[string]sentDeclaration
}

// sentDeclaration is a declaration as the parent has it.
type sentDeclaration struct {
	source registry.Source
	sum    digest
}

// next compares the declarations of the next build with what the parent has, and calls send with those that
// are new or changed, about partSize bytes at a time. It returns the names that were removed, and a problem
// for each declaration that is too large to send.
func (d *differ[T]) next(all []T, send func([]T)) (removed []string, l problem.List) {
	has := make(map[string]sentDeclaration, len(all))
	var changed []T
	size := 0
	for i := range all {
		name, source := d.kind.name(&all[i]), *d.kind.source(&all[i])
		before, known := d.has[name]
		if known && unchanged(before.source, source) {
			has[name] = before
			continue
		}
		data := wire.Marshal(all[i])
		if len(data) > maxDeclaration {
			l.Errorf(problem.LoadMemory, source.Pos, d.kind.field+"."+name,
				"the declaration compiles to %d bytes, more than the %d that are allowed; "+
					"make its schema, examples or texts smaller", len(data), maxDeclaration)
			continue
		}
		now := sentDeclaration{source, sha256.Sum256(data)}
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
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	d.has = has
	return removed, l
}

// unchanged reports whether a declaration is surely what it was: for a package that it did not evaluate
// again, the compiler returns the same map of fields, not just an equal one.
func unchanged(a, b registry.Source) bool {
	return a.Digest == b.Digest && a.Pos == b.Pos &&
		reflect.ValueOf(a.Fields).Pointer() == reflect.ValueOf(b.Fields).Pointer()
}

// patch is the parent's side: the declarations of the build before, without those that were removed and with
// those that are new or changed, by name.
func (k declarationKind[T]) patch(before, changed []T, removed []string) ([]T, error) {
	byName := func(a, b T) int { return cmp.Compare(k.name(&a), k.name(&b)) }
	slices.SortFunc(changed, byName)
	replaced := make(map[string]bool, len(changed)+len(removed))
	for i := range changed {
		if replaced[k.name(&changed[i])] {
			return nil, fmt.Errorf("%s.%s comes twice", k.field, k.name(&changed[i]))
		}
		replaced[k.name(&changed[i])] = true
	}
	for _, name := range removed {
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
