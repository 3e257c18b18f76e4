package importer_test

import (
	"testing"

	"github.com/catalogd/catalogd/internal/importer"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that the files of clients are read strictly, but for what their editors accept.
func TestBadJSON(t *testing.T) {
	accepted := badjson.Accepted{
		`[1,]`:     "editors accept a trailing comma",
		`{"a":1,}`: "editors accept a trailing comma",
		`{},`:      "editors accept a trailing comma, here of the object around it",
		`/* */1`:   "editors accept comments",
	}
	badjson.Refused(t, `{"mcpServers":{"a":{"command":"x"}},"b":%s}`, `1`, accepted, func(text []byte) error {
		_, err := importer.Read(text, importer.Config{File: "x.json"})
		return err
	})
}
