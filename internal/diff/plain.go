package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// keys returns the keys of all mappings, sorted.
func keys[V any](all ...map[string]V) []string {
	every := map[string]bool{}
	for _, m := range all {
		for k := range m {
			every[k] = true
		}
	}
	return slices.Sorted(maps.Keys(every))
}

func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("diff: plain data: %v", err))
	}
	return string(bytes.TrimSpace(b.Bytes()))
}

// word returns a string unchanged, and anything else as JSON.
func word(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return jsonText(v)
}

// asData returns a value as JSON decodes it, with exact numbers.
func asData(v any) any {
	b, err := json.Marshal(v)
	if err == nil {
		v, err = decoded(b)
	}
	if err != nil {
		panic(fmt.Sprintf("diff: plain data: %v", err))
	}
	return v
}

func decoded(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// cloned returns a copy that shares no mapping or list with v.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = cloned(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cloned(x)
		}
		return out
	}
	return v
}
