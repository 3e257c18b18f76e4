// Package strictjson is the one reader of JSON whose meaning must not depend on the reader: messages,
// arguments, schemas, locks, provider dialects, imported files, tokens, bodies of HTTP requests, and what
// servers send. What was checked here is read again by policies, bindings and upstream servers, and all of
// them must see the same, so what readers of JSON disagree about is refused: duplicate keys, unpaired
// surrogates, invalid UTF-8, text after the value, and nesting without end. badjson has examples of it, and
// holds the readers to them.
//
// The tokens are those of jsontext, which is encoding/json/jsontext from Go 1.27 on. Four entry points read
// them:
//
//   - [Check] checks one value and keeps nothing; a message passes it before anything looks at it.
//   - [Members] takes an object apart into the bytes of its members, [Items] a list into those of its items;
//     [Elements] finds where they begin.
//   - [Decode] makes a document: its objects are [*Object], which keep the order and offsets of their members.
//   - [DecodeMaps] makes plain maps for a validator, and goes on after mistakes that can be reported together.
//
// Numbers keep their digits. A document is nil, bool, string, json.Number, []any or *Object (or
// map[string]any). [Append] and [AppendSorted] write one. Nothing here keeps a reference to its input, but
// for the slices of Members.
package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// deepest is how deep jsontext itself lets values nest.
const deepest = 10_000

// MaxNumber is the most that Options.Float64 allows a number's text and exponent: 1e1000000000 is twelve
// bytes, and a gigabyte once it is digits.
const MaxNumber = 400

// Options say what is refused beside broken syntax. The zero value is strict, and bounds nesting at 10,000
// levels.
type Options struct {
	// MaxDepth is how many objects and lists may be nested in each other.
	MaxDepth int
	// Float64 refuses numbers that a 64-bit float can't hold, or whose text or exponent exceeds MaxNumber.
	Float64 bool
	// AllowDuplicates accepts a key more than once in an object.
	AllowDuplicates bool
	// AllowUnpaired accepts unpaired surrogates, which decode to U+FFFD. Invalid UTF-8 is refused all the same.
	AllowUnpaired bool
}

// Check reports as an *Error why data are not exactly one JSON value.
func Check(data []byte, o Options) error {
	r, err := open(data, o)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		t, err := r.token()
		if err != nil {
			return err
		}
		if t.Kind() == jsontext.KindNumber && o.Float64 && !fits(t.String()) {
			return r.numberError(t.String())
		}
		if r.tokens.StackDepth() == 0 {
			return r.end()
		}
	}
}

// Decode reads exactly one value, with objects as *Object. Its error is an *Error.
func Decode(data []byte, o Options) (any, error) {
	return decode(data, o, false, nil)
}

// DecodeMaps reads exactly one value, with objects as map[string]any; of allowed duplicates the last one counts. If
// note is set, it is called for each duplicate key, and with Options.Float64 for each number that does not fit,
// and reading goes on; the value then means nothing. Once note returns false it isn't called again: a pointer can be as
// long as the input, and is made for a call alone. Its error is an *Error.
func DecodeMaps(data []byte, o Options, note func(*Error) (more bool)) (any, error) {
	o.AllowDuplicates = o.AllowDuplicates || note != nil
	return decode(data, o, true, note)
}

func decode(data []byte, o Options, maps bool, note func(*Error) bool) (any, error) {
	r, err := open(data, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	r.maps, r.note, r.enough = maps, note, note == nil
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	return v, r.end()
}

// Unambiguous returns data if they are one JSON value whose objects have each key once. If an object has a key more than
// once, readers disagree on its value: then Unambiguous returns the value with the last of them, as encoding/json and a
// policy read it, and with sorted keys. Unpaired surrogates are accepted. Any other error is returned as an *Error.
func Unambiguous(data []byte) ([]byte, error) {
	err := Check(data, Options{AllowUnpaired: true})
	if !Is(err, Duplicate) {
		return data, err
	}
	v, err := DecodeMaps(data, Options{AllowUnpaired: true, AllowDuplicates: true}, nil)
	if err != nil {
		return nil, err
	}
	return AppendSorted(nil, v), nil
}

// Members calls f for each member of an object in order, duplicates included: its name, its key as it is
// spelled, and its value. The slices are shared with object, but for a name with escapes. Only the syntax is
// checked, not the UTF-8 of strings. Its error is an *Error, for what is not an object too.
func Members(object []byte, f func(name, key, value []byte)) error {
	r := openValid(object, Options{AllowDuplicates: true, AllowUnpaired: true})
	defer r.close()
	start := r.next()
	switch t, err := r.token(); {
	case err != nil:
		return err
	case t.Kind() != jsontext.KindBeginObject:
		return &Error{Problem: NotObject, Offset: start, Token: start}
	}
	for r.tokens.PeekKind() != jsontext.KindEndObject {
		key, err := r.raw()
		if err != nil {
			return err
		}
		value, err := r.raw()
		if err != nil {
			return err
		}
		f(unquote(key), key, value)
	}
	if _, err := r.token(); err != nil {
		return err
	}
	return r.end()
}

// Items calls f for each item of a list in order. The slices are shared with list. Only the syntax is checked, as by
// Members. Its error is an *Error, for what is not a list too.
func Items(list []byte, f func(item []byte)) error {
	r := openValid(list, Options{AllowDuplicates: true, AllowUnpaired: true})
	defer r.close()
	start := r.next()
	switch t, err := r.token(); {
	case err != nil:
		return err
	case t.Kind() != jsontext.KindBeginArray:
		return &Error{Problem: NotList, Offset: start, Token: start}
	}
	for r.tokens.PeekKind() != jsontext.KindEndArray {
		item, err := r.raw()
		if err != nil {
			return err
		}
		f(item)
	}
	if _, err := r.token(); err != nil {
		return err
	}
	return r.end()
}

// Elements are the offsets in data of the elements of a list that was decoded and begins at an offset. What follows
// the list is not read.
func Elements(data []byte, at int) (offsets []int) {
	r := openValid(data[at:], Options{AllowDuplicates: true, AllowUnpaired: true})
	defer r.close()
	if t, err := r.token(); err != nil || t.Kind() != jsontext.KindBeginArray {
		return nil
	}
	for r.tokens.PeekKind() != jsontext.KindEndArray {
		offsets = append(offsets, at+r.next())
		if err := r.tokens.SkipValue(); err != nil {
			return nil
		}
	}
	return offsets
}

// Unpaired is how many strings and keys of valid JSON contain an unpaired surrogate.
func Unpaired(data []byte) (n int) {
	if !bytes.Contains(data, []byte(`\u`)) {
		return 0
	}
	r, err := open(data, Options{AllowDuplicates: true, AllowUnpaired: true})
	if err != nil {
		return 0
	}
	defer r.close()
	for {
		start := r.next()
		t, err := r.token()
		if err != nil {
			return n
		}
		if t.Kind() == jsontext.KindString {
			if _, err := jsontext.AppendUnquote(nil, data[start:r.tokens.InputOffset()]); err != nil {
				n++
			}
		}
	}
}

// unquote is the text of a string as it is spelled, shared with it where there are no escapes.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // an unpaired surrogate becomes U+FFFD
	return text
}

// reader reads one value from data.
type reader struct {
	data   []byte
	input  bytes.Buffer // which jsontext reads without a copy
	tokens jsontext.Decoder
	o      Options
	// maps makes objects maps. enough: note is not set, or has returned false.
	maps, enough bool
	note         func(*Error) bool
}

var readers = sync.Pool{New: func() any { return new(reader) }}

func open(data []byte, o Options) (*reader, error) {
	if o.AllowUnpaired && !utf8.Valid(data) { // jsontext allows either both or none
		at := InvalidUTF8(data)
		return nil, &Error{Problem: UTF8, Offset: at, Token: at}
	}
	return openValid(data, o), nil
}

// openValid is open for data whose UTF-8 has been checked, as far as it is read.
func openValid(data []byte, o Options) *reader {
	if o.MaxDepth <= 0 {
		o.MaxDepth = deepest
	}
	r := readers.Get().(*reader)
	r.data, r.input, r.o = data, *bytes.NewBuffer(data), o
	r.tokens.Reset(&r.input,
		jsontext.AllowDuplicateNames(o.AllowDuplicates), jsontext.AllowInvalidUTF8(o.AllowUnpaired))
	return r
}

// InvalidUTF8 is the offset of the first byte that is not UTF-8, -1 where there is none.
func InvalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// close gives the reader back without what it has read.
func (r *reader) close() {
	r.data, r.input, r.note = nil, bytes.Buffer{}, nil
	r.tokens.Reset(&r.input)
	readers.Put(r)
}

// next is the offset of the next token.
func (r *reader) next() int {
	at := int(r.tokens.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return at
}

func (r *reader) token() (jsontext.Token, error) {
	t, err := r.tokens.ReadToken()
	if err != nil {
		return t, r.explain(err)
	}
	if r.tokens.StackDepth() > r.o.MaxDepth {
		at := int(r.tokens.InputOffset()) - 1
		return t, &Error{Problem: Depth, Offset: at, Token: at, Limit: r.o.MaxDepth}
	}
	return t, nil
}

// raw is the next value or key in the bytes of the input.
func (r *reader) raw() ([]byte, error) {
	v, err := r.tokens.ReadValue()
	if err != nil {
		return nil, r.explain(err)
	}
	end := int(r.tokens.InputOffset())
	return r.data[end-len(v) : end : end], nil
}

// end checks that nothing follows the value.
func (r *reader) end() error {
	at := r.space(int(r.tokens.InputOffset()))
	switch {
	case at == len(r.data):
		return nil
	case isDigit(r.data[at]) && r.data[at-1] == '0':
		return &Error{Problem: LeadingZero, Offset: at, Token: at}
	}
	return &Error{Problem: Trailing, Offset: at, Token: at}
}

func (r *reader) value() (any, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case jsontext.KindBeginObject:
		if r.maps {
			return r.mapping()
		}
		return r.object()
	case jsontext.KindBeginArray:
		return r.list()
	case jsontext.KindString:
		return t.String(), nil
	case jsontext.KindNumber:
		return r.number(t.String())
	case jsontext.KindTrue:
		return true, nil
	case jsontext.KindFalse:
		return false, nil
	}
	return nil, nil
}

func (r *reader) object() (any, error) {
	o := &Object{}
	for r.tokens.PeekKind() != jsontext.KindEndObject {
		m := Member{KeyAt: r.next()}
		key, err := r.token()
		if err != nil {
			return nil, err
		}
		m.Key, m.At = key.String(), r.next()
		if m.Value, err = r.value(); err != nil {
			return nil, err
		}
		m.End = int(r.tokens.InputOffset())
		o.Members = append(o.Members, m)
	}
	_, err := r.token()
	return o, err
}

func (r *reader) mapping() (any, error) {
	m := map[string]any{}
	for r.tokens.PeekKind() != jsontext.KindEndObject {
		at := r.next()
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		key := t.String()
		if _, ok := m[key]; ok && !r.enough {
			r.enough = !r.note(&Error{Problem: Duplicate, Offset: at, Token: at, Pointer: r.pointer(), Text: key})
		}
		if m[key], err = r.value(); err != nil {
			return nil, err
		}
	}
	_, err := r.token()
	return m, err
}

func (r *reader) list() (any, error) {
	list := []any{}
	for r.tokens.PeekKind() != jsontext.KindEndArray {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.token()
	return list, err
}

func (r *reader) number(text string) (any, error) {
	if r.o.Float64 && !fits(text) {
		if r.note == nil {
			return nil, r.numberError(text)
		}
		if !r.enough {
			r.enough = !r.note(r.numberError(text))
		}
	}
	return json.Number(text), nil
}

func (r *reader) numberError(text string) *Error {
	at := int(r.tokens.InputOffset()) - len(text)
	return &Error{Problem: Number, Offset: at, Token: at, Pointer: r.pointer(), Text: text}
}

// pointer is the JSON pointer of what was read last.
func (r *reader) pointer() string { return string(r.tokens.StackPointer()) }

// fits reports whether Options.Float64 allows a number.
func fits(number string) bool {
	mantissa, exponent, ok := strings.Cut(strings.ToLower(number), "e")
	switch {
	case !ok && len(mantissa) < 16:
		return true
	case len(number) > MaxNumber:
		return false
	case ok:
		if n, err := strconv.Atoi(exponent); err != nil || n > MaxNumber || n < -MaxNumber {
			return false
		}
	}
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}
