package lockfile_test

import (
	"errors"
	"testing"

	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that locks and the definitions in them are read strictly.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	lock := func(text []byte) error {
		if _, problems := lockfile.Read(text); problems.HasErrors() {
			return errors.New(problems[0].Message)
		}
		return nil
	}
	badjson.Refused(t, `%s`, `{"format":1,"servers":{}}`, nil, lock)
	badjson.Refused(t, `{"format":1,"servers":%s}`, `{}`, nil, lock)
	accepted := badjson.Accepted{
		"both halves of a surrogate pair": "servers cut texts inside a pair; clients get the server's own bytes",
	}
	badjson.Refused(t, `{"name":"t","inputSchema":{"type":"object","default":%s}}`, `1`, accepted, func(text []byte) error {
		_, err := lockfile.ReadDefinition(text)
		return err
	})
}
