package upstream

import (
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks how strictly messages and results of servers are read: results are forwarded byte for byte, so
// what parsers disagree about inside them is left in, but for invalid UTF-8.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	cut := "servers cut texts inside a pair; clients get the server's own bytes"
	twice := "what a result contains is forwarded byte for byte"
	message := func(text []byte) error {
		var m message
		return m.read(text)
	}
	badjson.Refused(t, `{"jsonrpc":"2.0","id":1,"result":%s}`, `{}`, badjson.Accepted{
		"both halves of a surrogate pair": cut,
		"each key once":                   twice,
		"text in UTF-8":                   "the call fails at once when its result is read, and not when it times out",
	}, message)
	answer := func(text []byte) error {
		_, err := result(text)
		return err
	}
	badjson.Refused(t, `{"content":[],"structuredContent":{"a":%s}}`, `{}`, badjson.Accepted{
		"both halves of a surrogate pair": cut,
		"each key once":                   twice,
	}, answer)
}

// Of duplicate members of a message the last one counts, and a name in another case is another member: a message is
// taken apart and not forwarded.
func TestDuplicateMembers(t *testing.T) {
	t.Parallel()
	var m message
	if err := m.read([]byte(`{"id":1,"result":{"a":1},"ID":3,"id":2,"RESULT":{"a":3},"result":{"a":2}}`)); err != nil {
		t.Fatal(err)
	}
	if string(m.ID) != "2" || string(m.Result) != `{"a":2}` || !m.answers() {
		t.Errorf("got id %s and result %s, want the last of each", m.ID, m.Result)
	}
}
