package contract

import "github.com/catalogd/catalogd/internal/strictjson"

// appendOrdered appends v as JSON with the members in their order.
func appendOrdered(out []byte, v any) []byte {
	switch v := v.(type) {
	case *strictjson.Object:
		out = append(out, '{')
		for i, m := range v.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, m.Key), ':')
			out = appendOrdered(out, m.Value)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendOrdered(out, item)
		}
		return append(out, ']')
	}
	return appendJSON(out, v)
}

// unordered converts v to the types that decode returns.
func unordered(v any) any {
	switch v := v.(type) {
	case *strictjson.Object:
		out := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			out[m.Key] = unordered(m.Value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = unordered(item)
		}
		return out
	}
	return v
}
