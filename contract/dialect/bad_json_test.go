package dialect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/contract"
	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/internal/strictjson/badjson"
)

// TestBadJSON checks that schemas are read strictly in each dialect, and that no dialect makes arguments of bad JSON that
// the check of a call would accept.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"o":{"type":"string"},"a":{}}}`)
	accepts, err := contract.New(contract.Spec{Schema: schema, Strictness: contract.Open, Fields: []contract.Field{{Name: "o"}, {Name: "a"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialect.All() {
		badjson.Refused(t, `{"type":"object","properties":{"a":{"type":"string","default":%s}}}`, `"x"`, nil, func(text []byte) error {
			if refused := d.Offer(dialect.Tool{Name: "t", Input: text}).Refused; refused != nil {
				return fmt.Errorf("%s: %v", d, refused)
			}
			return nil
		})
		arguments, good := `{"a":%s}`, `{"b":null}`
		if d == dialect.OpenAIStrict {
			arguments = `{"o":null,"a":%s}` // which only Arguments makes acceptable
		}
		badjson.Refused(t, arguments, good, nil, func(text []byte) error {
			_, violations, err := accepts.Check(t.Context(), d.Arguments(schema, text))
			if violations != nil {
				err = errors.Join(err, fmt.Errorf("%s: %v", d, violations))
			}
			return err
		})
	}
}
