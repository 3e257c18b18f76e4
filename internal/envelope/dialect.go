package envelope

import (
	"fmt"
	"strconv"

	"github.com/catalogd/catalogd/contract/dialect"
	"github.com/catalogd/catalogd/registry"
)

// Dialect returns the dialect by which the arguments of calls in this format are read: the named one, in which the model
// was shown the tools, or the format's own if it is empty. A dialect of another provider is an error.
func (f Format) Dialect(named dialect.Dialect) (dialect.Dialect, error) {
	own := map[Format][]dialect.Dialect{
		OpenAI:    {dialect.OpenAI, dialect.OpenAIStrict},
		Responses: {dialect.OpenAIResponses, dialect.OpenAIStrict},
		Anthropic: {dialect.Anthropic},
		Gemini:    {dialect.Gemini},
		Plain:     dialect.All(),
	}[f]
	if named == "" {
		if f == Plain {
			return dialect.MCP, nil
		}
		return own[0], nil
	}
	for _, d := range own {
		if d == named {
			return d, nil
		}
	}
	return "", fmt.Errorf("the calls are in the form %s, and tools in the dialect %s aren't called in it", f, named)
}

// Key returns the idempotency key of the call at an index, given the one of the whole envelope: the key itself where the
// envelope has one call, and KEY/1, KEY/2 … where it has several. An empty key stays empty.
func (b Batch) Key(key string, i int) string {
	if key == "" || len(b.Calls) == 1 {
		return key
	}
	return key + "/" + strconv.Itoa(i+1)
}

// CheckKey reports why key can't be the idempotency key of the whole envelope: what can't be the key of each of its calls,
// as registry.CheckIdempotencyKey says. An empty key can.
func (b Batch) CheckKey(key string) error {
	if key == "" {
		return nil
	}
	return registry.CheckIdempotencyKey(b.Key(key, len(b.Calls)-1))
}
