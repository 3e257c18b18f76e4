package passthrough

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
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
	fields, _, err := members(raw)
	if err != nil {
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
	var r Result
	if meta := fields["_meta"]; meta != nil && string(meta) != "null" {
		if meta[0] != '{' {
			return Result{}, errors.New("_meta of its result is no object")
		}
		r.Meta = meta
	}
	if ttl, err := strconv.ParseInt(string(fields["ttlMs"]), 10, 64); err == nil && ttl > 0 {
		r.TTL = ttl
	}
	r.Members, err = without(raw, "resultType", "_meta", "ttlMs", "cacheScope")
	return r, err
}

func check(raw json.RawMessage, object bool) error {
	if object {
		if !bytes.HasPrefix(raw, []byte("{")) {
			return errors.New("is no object")
		}
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return errors.New("is no list")
	}
	for n, element := range list {
		if element[0] != '{' {
			return fmt.Errorf("has the element %d, which is no object", n)
		}
	}
	return nil
}

// without returns the members of an object in their order, except those with these names.
func without(object json.RawMessage, names ...string) ([]byte, error) {
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
next:
	for d.More() {
		begin := d.InputOffset()
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := bytes.TrimLeft(object[begin:d.InputOffset()], ", \t\r\n") // as it is spelled
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		for _, name := range names {
			if t == name {
				continue next
			}
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(value)
	}
	return out.Bytes(), nil
}
