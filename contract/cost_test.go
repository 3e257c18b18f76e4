package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

// doubling are n definitions of which each names the next one twice, in these words.
func doubling(n int, words string) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"d%d":%s,`, i, strings.ReplaceAll(words, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)))
	}
	return fmt.Sprintf(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"additionalProperties":false,"$defs":{%s"d%d":{"properties":{"n":{"default":1}}}}}`, defs.String(), n)
}

func oneArgument(schema string) contract.Spec {
	return contract.Spec{Strictness: contract.Closed, Fields: []contract.Field{{Name: "a"}}, Schema: json.RawMessage(schema)}
}

// TestThreatT15Multiplying: schemas that multiply at one place are refused, by the name of one, when a contract is made.
func TestThreatT15Multiplying(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"allOf":            doubling(40, `{"allOf":[NEXT,NEXT]}`),
		"anyOf":            doubling(40, `{"anyOf":[NEXT,NEXT]}`),
		"not":              doubling(40, `{"not":NEXT,"if":NEXT}`),
		"dependentSchemas": doubling(40, `{"dependentSchemas":{"x":NEXT,"y":NEXT}}`),
		"a circle":         doubling(1, `{"allOf":[{"$ref":"#/$defs/d0"}]}`),
	} {
		_, err := contract.New(oneArgument(schema), nil)
		if err == nil || !strings.Contains(err.Error(), "/d") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, schema := range map[string]string{
		"a few":                 doubling(5, `{"allOf":[NEXT,NEXT]}`),
		"names that look alike": doubling(1, `{"const":{"$ref":"#/$defs/d0"},"properties":{"not":NEXT,"if":NEXT,"$ref":NEXT}}`),
	} {
		if _, err := contract.New(oneArgument(schema), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestThreatT15MultiplyingCalls: where each level of a value multiplies what is asked about the next one, deep calls are
// refused and flat ones are checked. Without the guard this test never ends.
func TestThreatT15MultiplyingCalls(t *testing.T) {
	t.Parallel()
	const recursive = `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"additionalProperties":false,"$defs":{"d":%s}}`
	for name, schema := range map[string]string{
		"expressions": fmt.Sprintf(recursive, `{"anyOf":[
			{"type":"object","properties":{"op":{"const":"and"},"x":{"$ref":"#/$defs/d"}}},
			{"type":"object","properties":{"op":{"const":"or"},"x":{"$ref":"#/$defs/d"}}}]}`),
		"allOf": fmt.Sprintf(recursive, `{"allOf":[{"properties":{"x":{"$ref":"#/$defs/d"}}},{"properties":{"x":{"$ref":"#/$defs/d"}}}]}`),
		"defaults": fmt.Sprintf(recursive, `{"anyOf":[
			{"type":"object","properties":{"x":{"$ref":"#/$defs/d"},"n":{"default":1}}},
			{"type":"object","properties":{"x":{"$ref":"#/$defs/d"},"n":{"default":2}}}],"allOf":[{"properties":{"k":{"default":1}}}]}`),
		"conditions":        fmt.Sprintf(recursive, `{"if":{"properties":{"x":{"$ref":"#/$defs/d"}}},"then":{"properties":{"x":{"$ref":"#/$defs/d"}}}}`),
		"dependentSchemas":  fmt.Sprintf(recursive, `{"dependentSchemas":{"x":{"properties":{"x":{"$ref":"#/$defs/d"}}}},"properties":{"x":{"$ref":"#/$defs/d"}}}`),
		"without recursion": doubling(40, `{"allOf":[{"properties":{"x":NEXT}},{"properties":{"x":NEXT}}]}`),
	} {
		for _, coerce := range []bool{false, true} {
			spec := oneArgument(schema)
			spec.Coerce = coerce
			c, err := contract.New(spec, nil)
			if err != nil {
				t.Fatal(name, err)
			}
			if _, found := check(c, json.RawMessage(`{"a":`+strings.Repeat(`{"x":`, 3)+`{}`+strings.Repeat(`}`, 4))); found != nil {
				t.Errorf("%s: %v", name, found)
			}
			_, found := check(c, json.RawMessage(`{"a":`+strings.Repeat(`{"x":`, 50)+`{}`+strings.Repeat(`}`, 51)))
			if len(found) != 1 || !strings.Contains(found[0].String(), "too long to check") {
				t.Errorf("%s, coerce %v: %v", name, coerce, found)
			}
		}
	}
}

// TestThreatT15CoerceDeep: turning kinds costs what the value is large, however deep it is.
func TestThreatT15CoerceDeep(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"x":`, 60) + `"5"` + strings.Repeat(`}`, 60)
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"object"}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"additionalProperties":false,"$defs":{"d":{"type":["object","integer"],"properties":{"x":{"$ref":"#/$defs/d"}}}}}`,
	} {
		spec := oneArgument(schema)
		spec.Coerce = true
		c, err := contract.New(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := check(c, json.RawMessage(`{"a":`+deep+`}`)); found != nil {
			t.Error(found)
		}
	}
}
