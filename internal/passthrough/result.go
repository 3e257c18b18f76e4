package passthrough

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// ErrAsksInput reports a result that is not the final answer (2026-07-28: resultType input_required).
var ErrAsksInput = errors.New("it asks for input before it goes on")

// Result is a passthrough result.
type Result struct {
	// Members are its members as received, separated by commas, without those that each side sets for itself:
	// resultType, _meta and the caching hints.
	Members []byte
	// Meta is its _meta; nil without one.
	Meta json.RawMessage
	// TTL is how long the server allows caching, in milliseconds; 0 where it sets no limit.
	TTL int64
}

// ReadResult reads a server's result, which must have the named member: "contents" and "messages" are lists
// of objects, "completion" is an object.
func ReadResult(raw json.RawMessage, member string) (Result, error) {
	if !utf8.Valid(raw) {
		return Result{}, errors.New("its result is not UTF-8")
	}
	var r Result
	fields, seen, duplicate := map[string]json.RawMessage{}, map[string]bool{}, error(nil)
	err := strictjson.Members(raw, func(name, key, value []byte) {
		folded := strings.ToLower(string(name))
		if seen[folded] && duplicate == nil {
			duplicate = twice(string(name))
		}
		fields[string(name)], seen[folded] = value, true
		if !slices.Contains(ownMembers, string(name)) {
			if r.Members != nil {
				r.Members = append(r.Members, ',')
			}
			r.Members = append(append(append(r.Members, key...), ':'), value...)
		}
	})
	if err != nil {
		err = errors.New("it is no object")
	}
	if err := cmp.Or(err, duplicate); err != nil {
		return Result{}, fmt.Errorf("its result can't be read: %w", err)
	}
	if kind, ok := fields["resultType"]; ok && string(kind) != `"complete"` {
		if string(kind) == `"input_required"` {
			return Result{}, ErrAsksInput
		}
		return Result{}, fmt.Errorf("its result is of the unknown type %.40s", kind)
	}
	if err := check(fields[member], member == "completion"); err != nil {
		return Result{}, fmt.Errorf("%s of its result %w", member, err)
	}
	if meta := fields["_meta"]; meta != nil && string(meta) != "null" {
		if meta[0] != '{' {
			return Result{}, errors.New("_meta of its result is no object")
		}
		r.Meta = meta
	}
	if ttl, err := strconv.ParseInt(string(fields["ttlMs"]), 10, 64); err == nil && ttl > 0 {
		r.TTL = ttl
	}
	return r, nil
}

// ownMembers are the members that each side sets for itself.
var ownMembers = []string{"resultType", "_meta", "ttlMs", "cacheScope"}

func check(raw json.RawMessage, object bool) error {
	if object {
		if !bytes.HasPrefix(raw, []byte("{")) {
			return errors.New("is no object")
		}
		return nil
	}
	n, wrong := 0, -1
	err := strictjson.Items(raw, func(item []byte) {
		if item[0] != '{' && wrong < 0 {
			wrong = n
		}
		n++
	})
	switch {
	case err != nil:
		return errors.New("is no list")
	case wrong >= 0:
		return fmt.Errorf("has the element %d, which is no object", wrong)
	}
	return nil
}
