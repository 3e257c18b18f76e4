package jq

import (
	"context"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/itchyny/gojq"
)

// nearest returns what to add to the error of a function that jq doesn't have: the most similar one that it has, at
// most two typing errors away; empty if there is none.
func nearest(err error) string {
	_, name, ok := strings.Cut(err.Error(), "function not defined: ")
	if !ok || len(name) > 64 {
		return ""
	}
	query, err := gojq.Parse("builtins")
	if err != nil {
		return ""
	}
	v, _ := query.RunWithContext(context.Background(), nil).Next()
	known, _ := v.([]any)
	best, least := "", 3
	for _, k := range known {
		text, _ := k.(string)
		d := levenshtein.ComputeDistance(name, text)
		if d < least || d == least && best != "" && text < best {
			best, least = text, d
		}
	}
	if bare, _, _ := strings.Cut(name, "/"); best == "" || len(bare) <= 2 {
		return ""
	}
	return "; did you mean " + best + "?"
}
