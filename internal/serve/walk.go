package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errHalfPair refuses half a surrogate pair: parsers disagree about what it means.
var errHalfPair = errors.New("a string holds half of a surrogate pair")

// walker goes through JSON that is known to be valid.
type walker struct {
	b []byte
	i int
	// keys are those of the objects that are being walked, the innermost last.
	keys [][]byte
}

func (w *walker) peek() byte { return w.b[w.i] }

func (w *walker) space() {
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return
		}
	}
}

func (w *walker) colon() {
	w.space()
	w.i++
	w.space()
}

// value walks one value and says what is wrong with it: depth, a key twice, half a surrogate pair.
func (w *walker) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the message nests deeper than %d levels", maxDepth)
	}
	w.space()
	switch w.peek() {
	case '{':
		return w.object(depth)
	case '[':
		return w.list(depth)
	case '"':
		_, err := w.text()
		return err
	}
	w.literal()
	return nil
}

// literal walks over a number, true, false or null.
func (w *walker) literal() {
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
		w.i++
	}
}

func (w *walker) object(depth int) error {
	from := len(w.keys)
	var many map[string]bool
	w.i++
	for {
		w.space()
		if w.peek() == '}' {
			w.i++
			w.keys = w.keys[:from]
			return nil
		}
		key, err := w.key()
		if err != nil {
			return err
		}
		if !w.distinct(from, &many, key) {
			return fmt.Errorf("key %q stands twice in one object", key)
		}
		w.colon()
		if err := w.value(depth + 1); err != nil {
			return err
		}
		w.space()
		if w.peek() == ',' {
			w.i++
		}
	}
}

func (w *walker) list(depth int) error {
	w.i++
	for {
		w.space()
		if w.peek() == ']' {
			w.i++
			return nil
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		w.space()
		if w.peek() == ',' {
			w.i++
		}
	}
}

// skip walks over a value that has been walked before.
func (w *walker) skip() error {
	depth := 0
	for {
		switch w.peek() {
		case '{', '[':
			depth++
			w.i++
		case '}', ']':
			depth--
			w.i++
		case '"':
			if _, err := w.text(); err != nil {
				return err
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			w.i++
			continue
		default:
			w.literal()
		}
		if depth == 0 {
			return nil
		}
	}
}

// key is an object's next key, decoded.
func (w *walker) key() ([]byte, error) {
	start := w.i
	escaped, err := w.text()
	if err != nil {
		return nil, err
	}
	raw := w.b[start:w.i]
	if !escaped {
		return raw[1 : len(raw)-1], nil
	}
	var key string
	if err := json.Unmarshal(raw, &key); err != nil {
		return nil, err
	}
	return []byte(key), nil
}

// text walks over a string and reports whether it holds escapes.
func (w *walker) text() (escaped bool, err error) {
	w.i++
	for {
		for w.b[w.i] != '"' && w.b[w.i] != '\\' {
			w.i++
		}
		switch w.b[w.i] {
		case '"':
			w.i++
			return escaped, nil
		case '\\':
			escaped = true
			if w.b[w.i+1] != 'u' {
				w.i += 2
				continue
			}
			first := hex4(w.b[w.i+2:])
			w.i += 6
			switch {
			case first >= 0xDC00 && first <= 0xDFFF:
				return escaped, errHalfPair
			case first >= 0xD800 && first <= 0xDBFF:
				if w.b[w.i] != '\\' || w.b[w.i+1] != 'u' {
					return escaped, errHalfPair
				}
				if second := hex4(w.b[w.i+2:]); second < 0xDC00 || second > 0xDFFF {
					return escaped, errHalfPair
				}
				w.i += 6
			}
		}
	}
}

func hex4(b []byte) (v int) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			v = v<<4 | int(c-'0')
		default:
			v = v<<4 | int(c|0x20-'a'+10)
		}
	}
	return v
}

// fewKeys is up to how many keys of one object are compared one by one.
const fewKeys = 32

// distinct adds a key of the object whose keys begin at from, and reports whether it is new there.
func (w *walker) distinct(from int, many *map[string]bool, key []byte) bool {
	if *many == nil && len(w.keys)-from < fewKeys {
		for _, k := range w.keys[from:] {
			if bytes.Equal(k, key) {
				return false
			}
		}
		w.keys = append(w.keys, key)
		return true
	}
	if *many == nil {
		*many = make(map[string]bool, 2*fewKeys)
		for _, k := range w.keys[from:] {
			(*many)[string(k)] = true
		}
	}
	if (*many)[string(key)] {
		return false
	}
	(*many)[string(key)] = true
	return true
}
