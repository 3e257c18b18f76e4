package contract

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/catalogd/catalogd/contract/internal/quote"
)

// formats are the formats that the validator asserts. Any other would be advertised and not checked, so New
// refuses it.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period",
	"regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// asserted checks that every keyword of a schema about the content of strings is one that the validator
// asserts.
func asserted(schema map[string]any) error {
	if format, ok := schema["format"]; ok {
		if name, _ := format.(string); !slices.Contains(formats, name) {
			return fmt.Errorf("format %s is not one that is checked", quote.Clip(text(format)))
		}
	}
	if encoding, ok := schema["contentEncoding"]; ok && encoding != "base64" {
		return fmt.Errorf("contentEncoding %s is not one that is checked", quote.Clip(text(encoding)))
	}
	return nil
}

// plainly describes in one line why a schema is invalid.
func plainly(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var pattern *jsonschema.InvalidRegexError
	switch {
	case errors.As(err, &pattern):
		return pattern.Err
	case !errors.As(err, &invalid):
		return err
	}
	var leaf *jsonschema.ValidationError
	if !errors.As(invalid.Err, &leaf) {
		return err
	}
	for len(leaf.Causes) > 0 {
		leaf = leaf.Causes[0]
	}
	why := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if format, ok := leaf.ErrorKind.(*kind.Format); ok {
		why = format.Err.Error()
	}
	return fmt.Errorf("it is not valid JSON Schema at %s: %s", place(pointer(leaf.InstanceLocation)), why)
}

// base64Content decodes base64 in the standard alphabet, padded, without line breaks (RFC 4648, section 4);
// Go's decoder would skip line breaks.
func base64Content() *jsonschema.Decoder {
	return &jsonschema.Decoder{Name: "base64", Decode: func(s string) ([]byte, error) {
		if strings.ContainsAny(s, "\r\n") {
			return nil, errors.New("a line break")
		}
		return base64.StdEncoding.Strict().DecodeString(s)
	}}
}
