package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/catalogd/catalogd/registry"
)

// listing is a view's tools as bytes, encoded once: tools/list of a thousand tools is then a copy.
type listing struct {
	once  sync.Once
	tools []byte // the JSON array
	// older is the array for clients of the older revisions; nil where it is the same.
	older []byte
	err   error

	counted bool // in listings.bytes; under its lock
}

func (l *listing) size() int { return len(l.tools) + len(l.older) }

// maxListings caps what is kept of encoded lists beside those that are asked for at the moment: 64 MiB.
const maxListings = 64 << 20

// listings holds the encoded list of each view that is served, by the view's digest.
type listings struct {
	mu    sync.Mutex
	by    map[string]*listing
	bytes int // of those in by that are encoded
}

// of is the encoded list of a view; the first caller encodes and the others wait.
func (ls *listings) of(v *registry.View) *listing {
	ls.mu.Lock()
	l, ok := ls.by[v.Digest()]
	if !ok {
		l = &listing{}
		ls.by[v.Digest()] = l
	}
	ls.mu.Unlock()
	l.once.Do(func() {
		l.tools, l.err = encodeTools(v.Entries(), false)
		if l.err == nil && slices.ContainsFunc(v.Entries(), func(e *registry.Entry) bool { return anyResult(e.Declared()) }) {
			l.older, l.err = encodeTools(v.Entries(), true)
		}
		ls.encoded(v.Digest(), l)
	})
	return l
}

// encoded counts a list that is encoded now. Where that makes too much, as principals without number can, all others are
// forgotten and encoded again when they are asked for.
func (ls *listings) encoded(digest string, l *listing) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.by[digest] != l {
		return
	}
	if ls.bytes += l.size(); ls.bytes > maxListings {
		ls.by = map[string]*listing{digest: l}
		ls.bytes = l.size()
	}
	l.counted = true
}

// keep forgets what no branch of the generation shows any more. A call that still holds an older view encodes again.
func (ls *listings) keep(g *Generation) {
	shown := map[string]bool{}
	g.views.digests(shown)
	for _, name := range g.Branches() {
		if path, ok := g.Path(name); ok {
			shown[path.View.Digest()] = true
		}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for digest, l := range ls.by {
		if !shown[digest] {
			if l.counted {
				ls.bytes -= l.size()
			}
			delete(ls.by, digest)
		}
	}
}

// listedTool is a tool as tools/list shows it. Its fields are those of mcp-go's own mcp.Tool; whatever is added here
// must be added to what registry.Entry.Listed covers.
type listedTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  any             `json:"annotations"`
	Icons        json.RawMessage `json:"icons,omitempty"`
	Meta         json.RawMessage `json:"_meta,omitempty"`
}

type annotations struct {
	Title        string `json:"title,omitempty"`
	ReadOnlyHint bool   `json:"readOnlyHint"`
}

// anyResult reports whether the tool's results need be no object, which the older revisions don't know.
func anyResult(t *registry.Tool) bool { return t.Output() != nil && t.Result.Value }

func encodeTools(entries []*registry.Entry, older bool) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('[')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		listed := listTool(e.Declared())
		if older && anyResult(e.Declared()) {
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

func listTool(t *registry.Tool) listedTool {
	listed := listedTool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Args.Schema,
		OutputSchema: t.Output(),
		Annotations:  annotations{Title: t.Title, ReadOnlyHint: t.Effect == registry.Read},
	}
	if t.Annotations != nil {
		listed.Annotations, listed.Icons, listed.Meta = t.Annotations, t.Icons, t.Meta
	}
	if t.Deprecated != "" {
		listed.Description = "Deprecated: " + t.Deprecated + "\n" + t.Description
	}
	return listed
}

// reply is an answer in parts, so that a long list is never copied.
type reply struct {
	status int
	parts  [][]byte
}

// list answers tools/list. Lists are one page, so a cursor is one that this server never gave.
func (b *branch) list(m *message, v *registry.View, modern bool) reply {
	if m.cursor != nil {
		return b.fail(m.id, modern, refuse(mcp.INVALID_PARAMS, "unknown cursor: the list of tools has one page"))
	}
	l := b.front.lists.of(v)
	if l.err != nil {
		return b.fail(m.id, modern, b.front.internal("tools/list", l.err))
	}
	tail, tools := "}}", l.tools
	if !modern && l.older != nil {
		tools = l.older
	}
	if modern {
		tail = `,"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + b.front.serverInfo + "}}}"
	}
	return reply{status: 200, parts: [][]byte{begin(m.id), []byte(`{"tools":`), tools, []byte(tail)}}
}

// begin is a response up to its result.
func begin(id json.RawMessage) []byte {
	b := make([]byte, 0, len(id)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	return append(b, `,"result":`...)
}

// fail is an error response. id is null where none was read.
func (b *branch) fail(id json.RawMessage, modern bool, e *rpcError) reply {
	return reply{status: httpStatus(e.Code, modern), parts: [][]byte{encodeError(id, e)}}
}

func encodeError(id json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out, err := json.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *rpcError       `json:"error"`
	}{mcp.JSONRPC_VERSION, id, e})
	if err != nil {
		panic("serve: an error always encodes: " + err.Error())
	}
	return out
}
