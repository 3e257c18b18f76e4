package clients

import (
	"fmt"
	"strings"

	"github.com/catalogd/catalogd/internal/propose"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// writeYAML prints the members of an object, each on lines that begin with indent. Values are objects, lists,
// strings and booleans.
func writeYAML(b *strings.Builder, o *strictjson.Object, indent string) {
	for _, m := range o.Members {
		switch v := m.Value.(type) {
		case *strictjson.Object:
			fmt.Fprintf(b, "%s%s:\n", indent, scalar(m.Key))
			writeYAML(b, v, indent+"  ")
		case []any:
			fmt.Fprintf(b, "%s%s:\n", indent, scalar(m.Key))
			for _, item := range v {
				if inner, ok := item.(*strictjson.Object); ok {
					var lines strings.Builder
					writeYAML(&lines, inner, indent+"    ")
					b.WriteString(indent + "  - " + strings.TrimPrefix(lines.String(), indent+"    "))
					continue
				}
				fmt.Fprintf(b, "%s  - %s\n", indent, scalar(item))
			}
		default:
			fmt.Fprintf(b, "%s%s: %s\n", indent, scalar(m.Key), scalar(v))
		}
	}
}

// scalar is a value in YAML.
func scalar(v any) string {
	if s, ok := v.(string); ok {
		return propose.Scalar(s)
	}
	return string(strictjson.Append(nil, v))
}
