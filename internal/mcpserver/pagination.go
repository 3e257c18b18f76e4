package mcpserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// listed names one list: the method that asks for it and the branch that has it.
type listed struct {
	method mcp.MCPMethod
	branch string
}

// mark is what begins the cursors of a list, so that no cursor is accepted for another list.
func (l listed) mark() []byte {
	sum := sha256.Sum256([]byte("catalogd cursor 1\x00" + string(l.method) + "\x00" + l.branch))
	return sum[:8]
}

// cursor returns the cursor of the page that follows the item with a key. It holds nothing else: every process that
// serves the branch accepts it, before and after a reload, and each page is that of the list as it is then.
func (l listed) cursor(key string) string {
	return base64.RawURLEncoding.EncodeToString(append(l.mark(), key...))
}

// after returns the key of the item after which the page of a cursor begins; empty for no cursor, which is the
// beginning of the list.
func (l listed) after(cursor json.RawMessage) (string, *rpcError) {
	if cursor == nil {
		return "", nil
	}
	text := str(cursor)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	mark := l.mark()
	if err != nil || len(sealed) <= len(mark) || string(sealed[:len(mark)]) != string(mark) {
		return "", l.unknown()
	}
	return string(sealed[len(mark):]), nil
}

// unknown is the error for a cursor that is not one of this list, or whose item the list has no more.
func (l listed) unknown() *rpcError {
	return refuse(mcp.INVALID_PARAMS, "params.cursor is not one of %s of branch %q as it is now; ask for the list from its start, without cursor",
		l.method, l.branch)
}

// next returns what follows the last item of a page that is not the list's last one.
func (l listed) next(last string) []byte { return []byte(`],"nextCursor":"` + l.cursor(last) + `"`) }

// endOfArray is what follows the last item of the last page; never modified.
var endOfArray = []byte("]")
