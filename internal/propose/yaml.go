package propose

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// YAML returns the entry as lines below `entries:`, indented by two spaces, each field preceded by a comment
// that says what it grants. head are comments that precede the entry.
func (e Entry) YAML(head ...string) string {
	var b strings.Builder
	for _, line := range head {
		comment(&b, "  ", line)
	}
	fmt.Fprintf(&b, "  %s:\n", Scalar(e.Name))
	for _, f := range e.Fields {
		if f.Grants != "" {
			comment(&b, "    ", f.Grants)
		}
		fmt.Fprintf(&b, "    %s: %s\n", f.Key, value(f.Value))
	}
	for _, way := range e.Ways {
		comment(&b, "    ", way)
	}
	return b.String()
}

// comment writes a comment of one line. Characters that would end the line or are invisible are escaped.
func comment(b *strings.Builder, indent, text string) {
	quoted := strconv.Quote(text)
	fmt.Fprintf(b, "%s# %s\n", indent, strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
}

func value(v any) string {
	switch v := v.(type) {
	case string:
		return Scalar(v)
	case []string:
		return sequence(v)
	case []any: // of the policy's data; alternatives in it are lists
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = value(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	text, err := json.Marshal(v) // JSON is YAML
	if err != nil {
		return "null"
	}
	return string(text)
}

func sequence(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Scalar(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

var (
	// plain matches text that YAML reads as a string without quotes.
	plain = regexp.MustCompile(`^(?:[A-Za-z_/]|\./|--?[A-Za-z])[A-Za-z0-9_./@=+-]*$`)
	// words matches what some YAML reader takes for a boolean or null.
	words = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|null|y|n)$`)
)

// Scalar returns a string in YAML, quoted if needed. Go's escapes are valid in YAML.
func Scalar(s string) string {
	if plain.MatchString(s) && !words.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
