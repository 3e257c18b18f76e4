package token_test

import (
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/internal/strictjson/badjson"
	"github.com/catalogd/catalogd/internal/token"
)

// TestBadJSON checks that the lines of a token file are read strictly.
func TestBadJSON(t *testing.T) {
	t.Parallel()
	_, hash := token.New()
	line := fmt.Sprintf(`{"name":"ci","sha256":"%x","branches":[%%s]}`, hash)
	badjson.Refused(t, line, `"research"`, nil, func(text []byte) error {
		_, err := token.Parse(text)
		return err
	})
}
