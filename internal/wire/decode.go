package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// ErrLayout is the error of data whose type has another layout, such as that of another version of the
// program.
var ErrLayout = errors.New("wire: the data have another layout")

// Unmarshal decodes data into the variable that into points to, which must have the type that was encoded.
// Bytes that encode nothing are an error. Allocation is bounded by the length of data times the size of the
// types' elements. After an error the variable's value is undefined.
func Unmarshal(data []byte, into any) error {
	v := reflect.ValueOf(into).Elem()
	if len(data) < layoutSize || [layoutSize]byte(data) != layout(v.Type()) {
		return ErrLayout
	}
	d := decoder{data: data, at: layoutSize}
	d.value(v)
	switch {
	case d.err != nil:
		return d.err
	case d.at != len(data):
		return fmt.Errorf("wire: %d bytes follow the data", len(data)-d.at)
	}
	return nil
}

type decoder struct {
	data    []byte
	at      int
	strings []string
	err     error // the first; after it everything decodes to zero
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("wire: at byte %d: "+format, append([]any{d.at}, args...)...)
	}
}

func (d *decoder) value(v reflect.Value) {
	if d.err != nil {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.flag())
	case reflect.Int, reflect.Int64:
		n, size := binary.Varint(d.data[d.at:])
		if d.advance(size) {
			v.SetInt(n)
		}
	case reflect.Uint8, reflect.Uint64:
		n := d.uvarint()
		if v.OverflowUint(n) {
			d.fail("%d does not fit", n)
			return
		}
		v.SetUint(n)
	case reflect.String:
		v.SetString(d.string())
	case reflect.Pointer:
		if d.flag() {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Slice:
		d.slice(v)
	case reflect.Map:
		d.mapping(v)
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	}
}

func (d *decoder) slice(v reflect.Value) {
	n, isNil := d.length()
	if d.err != nil || isNil {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(bytes.Clone(d.take(n)))
		return
	}
	// The slice grows with the elements that come, because the data may claim any length.
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, 64)))
	for i := range n {
		if d.err != nil {
			return
		}
		if i == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(i + 1)
		d.value(v.Index(i))
	}
}

func (d *decoder) mapping(v reflect.Value) {
	n, isNil := d.length()
	if d.err != nil || isNil {
		return
	}
	t := v.Type()
	m := reflect.MakeMapWithSize(t, min(n, 64))
	last := ""
	for i := range n {
		key := d.string()
		if i > 0 && key <= last {
			d.fail("the key %q is not behind %q", key, last)
		}
		elem := reflect.New(t.Elem()).Elem()
		d.value(elem)
		if d.err != nil {
			return
		}
		m.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), elem)
		last = key
	}
	v.Set(m)
}

func (d *decoder) flag() bool {
	b := d.take(1)
	if len(b) == 1 && b[0] > 1 {
		d.fail("%d is neither true nor false", b[0])
	}
	return len(b) == 1 && b[0] == 1
}

// length decodes a length, which is at most what is left of data, because each element takes at least one
// byte.
func (d *decoder) length() (n int, isNil bool) {
	l := d.uvarint()
	if l == 0 {
		return 0, true
	}
	if l-1 > uint64(len(d.data)-d.at) {
		d.fail("a length of %d goes beyond the data", l-1)
		return 0, false
	}
	return int(l - 1), false
}

func (d *decoder) string() string {
	switch i := d.uvarint(); i {
	case 0:
		return ""
	case 1:
		n := d.uvarint()
		if n > uint64(len(d.data)-d.at) {
			d.fail("a string of %d bytes goes beyond the data", n)
			return ""
		}
		s := string(d.take(int(n)))
		if len(s) <= maxInterned {
			d.strings = append(d.strings, s)
		}
		return s
	default:
		if i-2 >= uint64(len(d.strings)) {
			d.fail("string %d was not there before", i-2)
			return ""
		}
		return d.strings[i-2]
	}
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.data[d.at:])
	if !d.advance(size) {
		return 0
	}
	return n
}

// advance skips a number of this size; it fails if size is not positive, because there is no number then.
func (d *decoder) advance(size int) bool {
	if d.err != nil {
		return false
	}
	if size <= 0 {
		d.fail("expected a number")
		return false
	}
	d.at += size
	return true
}

func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.data)-d.at {
		d.fail("the data end early")
		return nil
	}
	b := d.data[d.at : d.at+n]
	d.at += n
	return b
}
