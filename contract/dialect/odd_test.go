package dialect_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/catalogd/catalogd/contract/dialect"
)

// Whatever stands where a keyword's value belongs, a tool is offered or refused, in JSON that can be read, and the same
// each time.
func TestOddSchemas(t *testing.T) {
	t.Parallel()
	texts := []string{`null`, `true`, `false`, `1`, `-1.5`, `""`, `"string"`, `[]`, `[1,null,"a"]`, `{}`, `{"$ref":"#"}`, `{"type":[1]}`, `[{},false]`}
	odd := func(r *rand.Rand) (v any) {
		if err := json.Unmarshal([]byte(texts[r.IntN(len(texts))]), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	offered := 0
	for i := range 700 {
		r := rand.New(rand.NewPCG(uint64(i), 11))
		schema := (&schemer{Rand: r}).tool()
		for range 1 + r.IntN(3) {
			spoil(r, schema, odd)
		}
		schema["type"] = "object"
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, d := range dialect.All() {
			offer := d.Offer(dialect.Tool{Name: "t", Input: raw})
			switch {
			case (offer.Tool == nil) == (offer.Refused == nil):
				t.Errorf("%s: %s: offered %s and refused %v", d, raw, offer.Tool, offer.Refused)
			case offer.Tool != nil && !json.Valid(offer.Tool):
				t.Errorf("%s: %s: no JSON: %s", d, raw, offer.Tool)
			case offer.Tool != nil:
				offered++
			}
			if again := d.Offer(dialect.Tool{Name: "t", Input: raw}); string(again.Tool) != string(offer.Tool) || !slices.Equal(again.Losses, offer.Losses) {
				t.Errorf("%s: %s: not the same again", d, raw)
			}
			if took := time.Since(began); took > 30*time.Second { // the slowest takes a hundredth of it
				t.Fatalf("%s: %s: took %v", d, raw, took)
			}
			d.Arguments(raw, json.RawMessage(`{"a":null,"b":[null,{"a":null}],"c":{"kind":null}}`))
		}
	}
	if offered < 1000 {
		t.Errorf("only %d were offered", offered)
	}
}

// spoil puts something odd somewhere in a schema.
func spoil(r *rand.Rand, v any, odd func(*rand.Rand) any) {
	switch v := v.(type) {
	case anyMap:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if len(keys) == 0 {
			return
		}
		k := keys[r.IntN(len(keys))]
		if r.IntN(3) == 0 {
			v[k] = odd(r)
			return
		}
		spoil(r, v[k], odd)
	case []any:
		if len(v) == 0 {
			return
		}
		i := r.IntN(len(v))
		if r.IntN(3) == 0 {
			v[i] = odd(r)
			return
		}
		spoil(r, v[i], odd)
	}
}
