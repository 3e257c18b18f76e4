package shapes_test

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf is the advertised schema under a validator that catalogd itself doesn't use.
func schemaOf(advertised json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(advertised, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// allows asks the schema about a call as it is sent.
func allows(s *jsonschema.Resolved, call string) error {
	var v any
	if err := json.Unmarshal([]byte(call), &v); err != nil {
		return err
	}
	return s.Validate(v)
}
