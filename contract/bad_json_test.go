package contract_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that arguments and schemas are read strictly.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	c := compile(t, `{"type":"object"}`, contract.Open)
	check := func(text []byte) error {
		_, violations, err := c.Check(t.Context(), text)
		if violations != nil {
			err = errors.Join(err, fmt.Errorf("%v", violations))
		}
		return err
	}
	schema := func(text []byte) error {
		_, err := contract.Latest(text)
		return err
	}
	compiled := func(text []byte) error {
		_, err := contract.New(contract.Spec{Schema: text, Strictness: contract.Open, Upstream: true}, nil)
		return err
	}
	badjson.Refused(t, `{"a":%s}`, `{"b":1}`, nil, check)
	badjson.Refused(t, `{"a":[{"b":%s}]}`, `1`, nil, check)
	badjson.Refused(t, `{"type":"object","default":%s}`, `1`, nil, schema)
	badjson.Refused(t, `{"type":"object","default":%s}`, `1`, nil, compiled)
}
