package httpapi

import (
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that the bodies of requests are read strictly.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	read := func(text []byte) error {
		_, err := readStrings(text, []string{"why", "as"})
		return err
	}
	badjson.Refused(t, `{"why":%s}`, `"x"`, nil, read)
	badjson.Refused(t, `%s`, `{"why":"x"}`, badjson.Accepted{"": "a body may be left out"}, read)
}
