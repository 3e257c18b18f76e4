package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/decision"
)

type policyCmd struct {
	Schema policySchemaCmd `cmd:"" help:"Print the JSON Schema of the policy input, for one decision point or all."`
}

type policySchemaCmd struct {
	Point string `arg:"" optional:"" help:"One decision point, such as call."`
}

// Run prints JSON in either format: one schema, or an object of schemas by point.
func (c *policySchemaCmd) Run(e *env) error {
	points := decision.Points()
	if c.Point != "" {
		if !slices.Contains(points, decision.Point(c.Point)) {
			return fmt.Errorf("there is no decision point %q: %s", c.Point, enumerate(points))
		}
		return e.printJSON(decision.Schema(decision.Point(c.Point)))
	}
	all := map[decision.Point]json.RawMessage{}
	for _, p := range points {
		all[p] = decision.Schema(p)
	}
	return e.printJSON(all)
}

func enumerate(points []decision.Point) string {
	names := make([]string, len(points))
	for i, p := range points {
		names[i] = string(p)
	}
	return strings.Join(names, ", ") + " are asked by this version"
}
