package contract

import (
	"errors"
	"fmt"

	"github.com/catalogd/catalogd/contract/internal/quote"
	"github.com/catalogd/catalogd/internal/strictjson"
)

// maxDepth caps the nesting of documents, so that none can exhaust the stack here or in what runs after the
// check.
const maxDepth = 128

// maxPointers caps the bytes of the pointers of violations in one document, beside one last pointer.
const maxPointers = 1 << 20

// strict are the limits for arguments, results and schemas.
var strict = strictjson.Options{MaxDepth: maxDepth, Float64: true}

// decode reads one JSON document, with objects as maps. It continues after a duplicate key or a number that
// is out of range, so that all of them are found; it stops at a syntax error. If there are violations, v is
// meaningless.
func decode(in []byte) (v any, found []Violation) {
	pointers := 0
	note := func(err *strictjson.Error) (more bool) {
		if len(found) < maxViolations {
			found = append(found, malformed(err))
			pointers += len(err.Pointer)
		}
		return len(found) < maxViolations && pointers < maxPointers
	}
	v, err := strictjson.DecodeMaps(in, strict, note)
	var broken *strictjson.Error
	if errors.As(err, &broken) {
		note(broken)
	}
	return v, found
}

// decodeOrdered is decode with objects as *strictjson.Object. Its error is the first violation.
func decodeOrdered(in []byte) (any, error) {
	v, err := strictjson.Decode(in, strict)
	var broken *strictjson.Error
	if errors.As(err, &broken) {
		return nil, errors.New(malformed(broken).String())
	}
	return v, err
}

// malformed returns the violation for input that is not strict JSON.
func malformed(err *strictjson.Error) Violation {
	v := Violation{Pointer: err.Pointer, Expected: string(err.Problem)}
	v.Got = fmt.Sprintf("broken JSON at byte %d", err.Offset)
	switch err.Problem {
	case strictjson.Duplicate:
		v.Got = "the key twice in one object"
	case strictjson.Number:
		v.Got = "the number " + quote.Clip(err.Text)
	case strictjson.Depth:
		v.Pointer = "" // a pointer of that many steps is useless
		v.Expected = fmt.Sprintf("at most %d levels of nesting", maxDepth)
	case strictjson.Trailing:
		v.Expected = "one JSON object and nothing after it"
	}
	return v
}
