package contract

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// formats are those that the validator asserts. Any other would be advertised and held to by nobody, so New refuses it.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period",
	"regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// asserted checks that what a schema says about the content of strings is held to.
func asserted(schema map[string]any) error {
	if format, ok := schema["format"]; ok {
		if name, _ := format.(string); !slices.Contains(formats, name) {
			return fmt.Errorf("format %s is not one that is checked", clip(text(format)))
		}
	}
	if encoding, ok := schema["contentEncoding"]; ok && encoding != "base64" {
		return fmt.Errorf("contentEncoding %s is not one that is checked", clip(text(encoding)))
	}
	return nil
}

// base64Content is base64 in the standard alphabet, padded, without line breaks (RFC 4648, section 4), which Go's decoder
// would skip.
func base64Content() *jsonschema.Decoder {
	return &jsonschema.Decoder{Name: "base64", Decode: func(s string) ([]byte, error) {
		if strings.ContainsAny(s, "\r\n") {
			return nil, errors.New("a line break")
		}
		return base64.StdEncoding.Strict().DecodeString(s)
	}}
}

// circular names a definition that refers to itself at the same place, so that no value could ever be read by it.
func circular(schema map[string]any) error {
	defs, _ := schema["$defs"].(map[string]any)
	const begun, done = 1, 2
	state := map[string]int{}
	var visit func(v any) error
	visit = func(v any) error {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		if ref, ok := m["$ref"].(string); ok {
			name, _ := strings.CutPrefix(ref, "#/$defs/")
			name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
			switch state[name] {
			case begun:
				return fmt.Errorf("$ref %q leads back to itself", ref)
			case 0:
				state[name] = begun
				if err := visit(defs[name]); err != nil {
					return err
				}
				state[name] = done
			}
		}
		for _, keyword := range []string{"if", "then", "else", "not"} {
			if err := visit(m[keyword]); err != nil {
				return err
			}
		}
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			list, _ := m[keyword].([]any)
			for _, item := range list {
				if err := visit(item); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for name := range defs {
		if err := visit(map[string]any{"$ref": "#/$defs/" + escapePointer(name)}); err != nil {
			return err
		}
	}
	return nil
}
