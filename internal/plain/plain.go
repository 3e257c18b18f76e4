// Package plain is a binary form of plain Go data: booleans, integers, strings, byte slices and arrays, and structs,
// slices, pointers and maps with string keys of those. It is exact (nil and empty stay different), deterministic (the
// same value always has the same bytes, so bytes can be hashed and compared) and fast: a build of 10,000 tools is read
// several times faster than as JSON.
//
// encoding/gob has none of the first two: it leaves out what is empty and writes maps in any order. And its decoder is not
// made for data that somebody else may have written, which this one is.
//
// It is for two programs of one version, or for one program and its own files. The data begin with a digest of the
// type's layout, so data of another layout are refused rather than misread; there is no other way to evolve.
package plain

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
)

// layoutSize is how much of the layout's digest stands before the data.
const layoutSize = 8

// interned is the length up to which a string that repeats is written once.
const interned = 64

// Marshal encodes v. It panics where v's type is not plain data: that is a mistake in the program.
func Marshal(v any) []byte {
	value := reflect.ValueOf(v)
	e := encoder{buf: layout(value.Type()), strings: map[string]uint64{}}
	e.value(value)
	return e.buf
}

// layout is the digest of a type's layout.
func layout(t reflect.Type) []byte {
	h := sha256.New()
	describe(h, t, nil)
	return h.Sum(nil)[:layoutSize]
}

func describe(w io.Writer, t reflect.Type, above []reflect.Type) {
	if slices.Contains(above, t) {
		panic(fmt.Sprintf("plain: %s contains itself", t))
	}
	above = append(above, t)
	fmt.Fprintf(w, "%s(", t.Kind())
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint64, reflect.String:
	case reflect.Slice, reflect.Pointer:
		describe(w, t.Elem(), above)
	case reflect.Array:
		fmt.Fprint(w, t.Len())
		describe(w, t.Elem(), above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("plain: the keys of %s are no strings", t))
		}
		describe(w, t.Elem(), above)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if len(f.Index) > 1 {
				continue // of an embedded struct, which describes it itself
			}
			if !f.IsExported() {
				panic(fmt.Sprintf("plain: %s has the unexported field %s", t, f.Name))
			}
			fmt.Fprintf(w, "%s ", f.Name)
			describe(w, f.Type, above)
		}
	default:
		panic(fmt.Sprintf("plain: %s is no plain data", t))
	}
	fmt.Fprint(w, ")")
}

type encoder struct {
	buf     []byte
	strings map[string]uint64
}

func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		e.flag(v.Bool())
	case reflect.Int, reflect.Int64:
		e.buf = binary.AppendVarint(e.buf, v.Int())
	case reflect.Uint8, reflect.Uint64:
		e.buf = binary.AppendUvarint(e.buf, v.Uint())
	case reflect.String:
		e.string(v.String())
	case reflect.Pointer:
		e.flag(!v.IsNil())
		if !v.IsNil() {
			e.value(v.Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Slice:
		e.length(v.IsNil(), v.Len())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			e.buf = append(e.buf, v.Bytes()...)
			return
		}
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Map:
		e.length(v.IsNil(), v.Len())
		byKey := make(map[string]reflect.Value, v.Len())
		for k, elem := range v.Seq2() {
			byKey[k.String()] = elem
		}
		for _, k := range slices.Sorted(maps.Keys(byKey)) {
			e.string(k)
			e.value(byKey[k])
		}
	case reflect.Struct:
		for i := range v.NumField() {
			e.value(v.Field(i))
		}
	}
}

func (e *encoder) flag(b bool) {
	if b {
		e.buf = append(e.buf, 1)
	} else {
		e.buf = append(e.buf, 0)
	}
}

// length writes 0 for nil, else the length and 1.
func (e *encoder) length(isNil bool, n int) {
	if isNil {
		e.buf = append(e.buf, 0)
	} else {
		e.buf = binary.AppendUvarint(e.buf, uint64(n)+1)
	}
}

// string writes 0 for the empty string, 1 before one that follows, else 2 and more for one that was there before.
func (e *encoder) string(s string) {
	if s == "" {
		e.buf = append(e.buf, 0)
		return
	}
	if i, ok := e.strings[s]; ok {
		e.buf = binary.AppendUvarint(e.buf, i+2)
		return
	}
	e.buf = binary.AppendUvarint(append(e.buf, 1), uint64(len(s)))
	e.buf = append(e.buf, s...)
	if len(s) <= interned {
		e.strings[s] = uint64(len(e.strings))
	}
}
