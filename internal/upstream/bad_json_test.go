package upstream

import (
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks how strictly messages and results of servers are read: nobody here can correct a server, so a result is
// refused only where nobody can read it.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	cut := "servers cut texts inside a pair; clients get the server's own bytes"
	twice := "the last value counts, and is the one that is forwarded (TestDuplicateKeysOfAResult)"
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

// What a policy reads of a result is what a client gets: of a duplicate key the last value, at every depth. A result
// without one is forwarded byte for byte.
func TestDuplicateKeysOfAResult(t *testing.T) {
	t.Parallel()
	r, err := result([]byte(`{"content":[{"type":"text","text":"a","text":"b"}],"structuredContent":{"z":1.50,"deep":[{"k":"a","k":"b"}]},"structuredContent":{"z":1.50,"deep":[{"k":"a","k":"c"}]},"_meta":{"m":1,"m":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(r.Structured), `{"deep":[{"k":"c"}],"z":1.50}`; got != want {
		t.Errorf("structured content: got %s, want %s", got, want)
	}
	if got, want := string(r.Content[0]), `{"text":"b","type":"text"}`; got != want {
		t.Errorf("content: got %s, want %s", got, want)
	}
	if got, want := string(r.Meta), `{"m":2}`; got != want {
		t.Errorf("_meta: got %s, want %s", got, want)
	}
	for _, m := range r.Answer {
		if strings.Contains(string(m.Value), `"a"`) {
			t.Errorf("the answer forwards %s: %s", m.Name, m.Value)
		}
	}
	const exact = `{ "b": 1.0, "a": "\u00e9" }`
	if r, err = result([]byte(`{"content":[],"structuredContent":` + exact + `}`)); err != nil || string(r.Structured) != exact {
		t.Errorf("got %s, %v; want %s", r.Structured, err, exact)
	}
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
