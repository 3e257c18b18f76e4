package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// walker goes through JSON that is known to be valid.
type walker struct {
	b []byte
	i int
	// keys are those of the objects that are being walked, the innermost last.
	keys [][]byte
	// unpaired counts the strings and keys with an unpaired surrogate, which parsers disagree about.
	unpaired int
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

// value walks one value and says what is wrong with it: its depth, or a duplicate key.
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
		w.text()
	default:
		w.literal()
	}
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
		key := w.key()
		if !w.distinct(from, &many, key) {
			return fmt.Errorf("duplicate key %q in one object", key)
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

// skip walks over a value, whatever is in it.
func (w *walker) skip() {
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
			w.text()
		case ',', ':', ' ', '\t', '\r', '\n':
			w.i++
			continue
		default:
			w.literal()
		}
		if depth == 0 {
			return
		}
	}
}

// key is an object's next key, decoded.
func (w *walker) key() []byte {
	start := w.i
	escaped := w.text()
	raw := w.b[start:w.i]
	if !escaped {
		return raw[1 : len(raw)-1]
	}
	var key string
	if err := json.Unmarshal(raw, &key); err != nil {
		panic("serve: a string of valid JSON decodes: " + err.Error())
	}
	return []byte(key)
}

// text walks over a string and reports whether it holds escapes.
func (w *walker) text() (escaped bool) {
	unpaired := 0
	w.i++
	for {
		for w.b[w.i] != '"' && w.b[w.i] != '\\' {
			w.i++
		}
		switch w.b[w.i] {
		case '"':
			w.i++
			w.unpaired += unpaired
			return escaped
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
				unpaired = 1
			case first >= 0xD800 && first <= 0xDBFF:
				if w.b[w.i] != '\\' || w.b[w.i+1] != 'u' {
					unpaired = 1
				} else if second := hex4(w.b[w.i+2:]); second < 0xDC00 || second > 0xDFFF {
					unpaired = 1
				} else {
					w.i += 6
				}
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
