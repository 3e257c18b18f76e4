package passthrough_test

import (
	"errors"
	"testing"

	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that items and results of servers are read strictly.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	cut := "servers cut texts inside a pair; clients get the server's own bytes"
	item := func(text []byte) error {
		o := passthrough.Read("s", "", passthrough.Lists{Resources: raws(string(text))}, false, false)
		if len(o.Withheld) > 0 {
			return errors.New(o.Withheld[0].Reason)
		}
		return nil
	}
	result := func(text []byte) error {
		_, err := passthrough.ReadResult(text, "contents")
		return err
	}
	badjson.Refused(t, `{"name":"n","uri":"a://b","_meta":%s}`, `{}`, badjson.Accepted{"both halves of a surrogate pair": cut}, item)
	badjson.Refused(t, `%s`, `{"contents":[]}`, nil, result)
	badjson.Refused(t, `{"contents":[],"more":%s}`, `{}`, badjson.Accepted{
		"both halves of a surrogate pair": cut,
		"each key once":                   "what a result contains is forwarded byte for byte; only its own members are read",
	}, result)
}
