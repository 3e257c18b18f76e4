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

// encodedList is the encoded tool list of a view, encoded once, so that tools/list of a thousand tools only
// copies bytes.
type encodedList struct {
	tools []byte // the JSON array
	// older is the array for clients of the older revisions; nil if it is the same.
	older []byte
	err   error
}

func (l *encodedList) size() int { return len(l.tools) + len(l.older) }

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
		l := &encodedList{}
		l.tools, l.err = encodeTools(v.Entries(), false)
		if l.err == nil && slices.ContainsFunc(v.Entries(), func(e *registry.Entry) bool { return generation.AnyResult(e.Declared()) }) {
			l.older, l.err = encodeTools(v.Entries(), true)
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

func encodeTools(entries []*registry.Entry, older bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('[')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		listed := generation.ListTool(e)
		if older && generation.AnyResult(e.Declared()) {
			listed.OutputSchema = nil
		}
		if err := enc.Encode(listed); err != nil {
			return nil, fmt.Errorf("encode tool %q: %w", e.Name(), err)
		}
		b.Truncate(b.Len() - 1) // the encoder's newline
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// cacheScope says who may be given a list that one caller has got. Anybody may if anybody may ask for it and
// no decision read who asked. A conversation branch is its owner's.
func (b *branch) cacheScope(g *generation.Generation) mcp.CacheScope {
	if !b.follows() && b.server.Tokens == nil && g.SameForAll() {
		return mcp.CacheScopePublic
	}
	return mcp.CacheScopePrivate
}

// list answers tools/list. The list is one page, so no cursor is valid.
func (b *branch) list(m *message, g *generation.Generation, v *registry.View, modern bool) reply {
	if m.cursor != nil {
		return b.fail(m.id, modern, refuse(mcp.INVALID_PARAMS, "unknown cursor: the list of tools has one page"))
	}
	l := b.server.lists.of(v)
	if l.err != nil {
		return b.fail(m.id, modern, b.server.internal("tools/list", l.err))
	}
	tail, tools := "}}", l.tools
	if !modern && l.older != nil {
		tools = l.older
	}
	if modern {
		tail = fmt.Sprintf(`,"resultType":"complete","ttlMs":%d,"cacheScope":"%s","_meta":{%s}}}`,
			b.server.ListTTL.Milliseconds(), b.cacheScope(g), b.server.serverInfo)
	}
	return reply{status: 200, parts: [][]byte{beginReply(m.id), []byte(`{"tools":`), tools, []byte(tail)}}
}
