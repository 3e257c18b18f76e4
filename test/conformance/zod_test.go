package conformance

import (
	"encoding/json"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestZodSchemas calls a tool of the TypeScript SDK 1.x whose schemas zod wrote (draft-07 tuples, formats beside patterns,
// defaults, records, unions), directly and through catalogd: the same arguments are accepted, with the same result.
func TestZodSchemas(t *testing.T) {
	t.Parallel()
	direct := typeScriptServer("1")(t)
	through := conformanceCatalog(t, direct)
	call := func(url, args string) (accepted bool, said string) {
		c := gosdk.NewClient(&gosdk.Implementation{Name: "test", Version: "1"}, nil)
		cs, err := c.Connect(t.Context(), &gosdk.StreamableClientTransport{Endpoint: url},
			&gosdk.ClientSessionOptions{ProtocolVersion: sessionEra})
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		result, err := cs.CallTool(t.Context(), &gosdk.CallToolParams{Name: "zod_shapes", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatalf("%s: %s: %v", url, args, err)
		}
		result.Meta = nil // of the call
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		return !result.IsError, string(text)
	}
	for args, want := range map[string]bool{
		`{}`:                                     true,
		`{"level":"high"}`:                       true,
		`{"level":"middle"}`:                     false,
		`{"level":null}`:                         false,
		`{"mail":"ada@example.com"}`:             true,
		`{"mail":"ada"}`:                         false,
		`{"when":"2026-02-28T10:00:00Z"}`:        true,
		`{"when":"2026-02-30T10:00:00Z"}`:        false,
		`{"pair":["a",1]}`:                       true,
		`{"pair":["a","b"]}`:                     false,
		`{"pair":["a"]}`:                         false,
		`{"pair":["a",1,2]}`:                     false,
		`{"labels":{"a":"b"}}`:                   true,
		`{"labels":{"a":1}}`:                     false,
		`{"shape":{"kind":"circle","radius":1}}`: true,
		`{"shape":{"kind":"circle","side":1}}`:   false,
		`{"shape":{"kind":"square","side":0}}`:   false,
		`{"count":null}`:                         true,
		`{"count":11}`:                           false,
		`{"count":1.5}`:                          false,
	} {
		accepted, plain := call(direct+"/mcp", args)
		if accepted != want {
			t.Errorf("%s: the server accepts it: %v, want %v: %s", args, accepted, want, plain)
		}
		got, passed := call(through.URL+"/branches/default/mcp", args)
		if got != accepted || accepted && passed != plain {
			t.Errorf("%s: directly %s\nthrough catalogd %s", args, plain, passed)
		}
	}
}
