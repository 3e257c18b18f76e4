package registry

import "encoding/json"

// Member is one member of a JSON object, as it is spelled.
type Member struct {
	// Name is what Key says.
	Name string
	// Key is the name in its quotes.
	Key, Value json.RawMessage
}

// Split takes apart an object: its members in their order, duplicates included. object must be valid JSON,
// and is shared by what is returned. It is not ok for what is no object.
func Split(object json.RawMessage) (all []Member, ok bool) {
	i := space(object, 0)
	if i == len(object) || object[i] != '{' {
		return nil, false
	}
	for i = space(object, i+1); object[i] != '}'; i = space(object, i) {
		if object[i] == ',' {
			i = space(object, i+1)
		}
		begin := i
		i = skip(object, i)
		m := Member{Key: object[begin:i:i]}
		if err := json.Unmarshal(m.Key, &m.Name); err != nil {
			panic("registry: a key of valid JSON is a string: " + err.Error())
		}
		i = space(object, space(object, i)+1) // the colon
		begin = i
		i = skip(object, i)
		m.Value = object[begin:i:i]
		all = append(all, m)
	}
	return all, true
}

// space is where the white space at i ends.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value at i ends.
func skip(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default: // a number, true, false or null
			for i < len(b) && b[i] != ',' && b[i] != ']' && b[i] != '}' && b[i] > ' ' {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
