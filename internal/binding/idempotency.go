package binding

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/registry"
)

const (
	// keyHeader carries the idempotency key of a request (draft-ietf-httpapi-idempotency-key-header).
	keyHeader = "Idempotency-Key"
	// maxKey caps the key, in bytes.
	maxKey = 256
	// someKey replaces a call's key in a plan.
	someKey = "***"
)

// keyOf returns the idempotency key of a call with a side effect, and reports whether it has one. An error
// means that the attempt's key can't be carried by a binding.
func keyOf(call registry.Invocation) (key string, write bool, err error) {
	of, write := call.Attempt.Of()
	if !write {
		return "", false, nil
	}
	switch key = of.Key; {
	case key == "":
		err = errors.New("the attempt has no idempotency key")
	case len(key) > maxKey:
		err = fmt.Errorf("the idempotency key has %d bytes, and at most %d are sent", len(key), maxKey)
	case !utf8.ValidString(key) || strings.ContainsRune(key, 0):
		err = errors.New("the idempotency key is not UTF-8, or holds a NUL byte")
	}
	if err != nil {
		err = nothingRan(registry.Internal, "the call has no idempotency key that can be sent; nothing was run", err)
	}
	return key, true, err
}

// headerOfKey returns a key as a string of RFC 9651 (3.3.3). That allows printable ASCII only, so a percent
// sign and every other byte are written as %XX, which keeps different keys different.
func headerOfKey(key string) string {
	encoded := percent(key, func(c byte) bool { return c >= 0x20 && c < 0x7f && c != '%' })
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(encoded) + `"`
}
