package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/internal/cache"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/registry"
)

// encodedList is the encoded tool list of a view, encoded once, so that tools/list of a thousand tools, or any
// page of it, only copies bytes.
type encodedList struct {
	names []string // of the tools, in order
	tools encodedTools
	// older are the tools for clients of the older revisions; nil if they are the same.
	older *encodedTools
	err   error
}

// encodedTools are the elements of a JSON array.
type encodedTools struct {
	elements []byte // with commas between them
	ends     []int  // where each element ends
}

// page returns the elements from one index up to another.
func (e *encodedTools) page(from, to int) []byte {
	if from == to {
		return nil
	}
	start := 0
	if from > 0 {
		start = e.ends[from-1] + len(",")
	}
	return e.elements[start:e.ends[to-1]]
}

func (l *encodedList) size() int {
	n := len(l.tools.elements)
	if l.older != nil {
		n += len(l.older.elements)
	}
	return n + 48*len(l.names)
}

// maxListings caps the encoded lists that are cached, in bytes: 64 MiB, beside those in use.
const maxListings = 64 << 20

// encodedLists caches the encoded list of each served view, by the view's digest. An unbounded number of
// principals can exceed maxListings; evicted lists are encoded again on request.
type encodedLists struct {
	*cache.Cache[string, *encodedList]
}

func newEncodedLists() encodedLists {
	return encodedLists{cache.Weighted[string](maxListings, (*encodedList).size)}
}

// of returns the encoded list of a view; the first caller encodes it and the others wait.
func (ls encodedLists) of(v *registry.View) *encodedList {
	return ls.Do(v.Digest(), func() *encodedList {
		l, entries := &encodedList{names: v.Names()}, v.Entries()
		l.tools, l.err = encodeTools(entries, false)
		if l.err == nil && slices.ContainsFunc(entries, func(e *registry.Entry) bool { return generation.AnyResult(e.Declared()) }) {
			l.older = &encodedTools{}
			*l.older, l.err = encodeTools(entries, true)
		}
		return l
	})
}

// keep evicts the lists of views that no branch of the generation shows any more. A call that still has an
// older view encodes it again.
func (ls encodedLists) keep(g *generation.Generation) {
	shown := map[string]bool{}
	g.Shown(shown)
	for _, name := range g.Branches() {
		if path, ok := g.Path(name); ok {
			shown[path.View.Digest()] = true
		}
	}
	ls.DeleteFunc(func(digest string, _ *encodedList) bool { return !shown[digest] })
}

func encodeTools(entries []*registry.Entry, older bool) (encodedTools, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	ends := make([]int, len(entries))
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		listed := generation.ListTool(e)
		if older && generation.AnyResult(e.Declared()) {
			listed.OutputSchema = nil
		}
		if err := enc.Encode(listed); err != nil {
			return encodedTools{}, fmt.Errorf("encode tool %q: %w", e.Name(), err)
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
		ends[i] = b.Len()
	}
	return encodedTools{b.Bytes(), ends}, nil
}

// cacheScope says who may be given a list that one caller has got. Anybody may if anybody may ask for it and
// no decision read who asked. A conversation branch is its owner's.
func (b *branch) cacheScope(g *generation.Generation) mcp.CacheScope {
	if !b.follows() && b.server.Tokens == nil && g.SameForAll() {
		return mcp.CacheScopePublic
	}
	return mcp.CacheScopePrivate
}

// list answers tools/list with one page. The page begins after the name in the cursor, in the order of names, so
// that whatever changes between two pages, no tool that stays is left out or comes twice.
func (b *branch) list(m *message, g *generation.Generation, v *registry.View, modern bool) reply {
	list := listed{m.method, b.name}
	after, refusal := list.after(m.cursor)
	if refusal != nil {
		return b.fail(m.id, modern, refusal)
	}
	l := b.server.lists.of(v)
	if l.err != nil {
		return b.fail(m.id, modern, b.server.internal("tools/list", l.err))
	}
	from := 0
	if after != "" {
		at, found := slices.BinarySearch(l.names, after)
		if from = at; found {
			from++
		}
	}
	to := min(from+b.server.Limits.Page, len(l.names))
	tools := &l.tools
	if !modern && l.older != nil {
		tools = l.older
	}
	next, tail := endOfArray, "}}"
	if to < len(l.names) {
		next = list.next(l.names[to-1])
	}
	if modern {
		tail = fmt.Sprintf(`,"resultType":"complete","ttlMs":%d,"cacheScope":"%s","_meta":{%s}}}`,
			b.server.ListTTL.Milliseconds(), b.cacheScope(g), b.server.serverInfo)
	}
	return reply{status: 200, parts: [][]byte{beginReply(m.id), []byte(`{"tools":[`), tools.page(from, to), next, []byte(tail)}}
}
