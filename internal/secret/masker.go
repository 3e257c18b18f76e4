package secret

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// MinText is the length in bytes from which a value is found inside of words, and in base64 and hex.
	MinText = 4
	// Layers is how many encodings a value is found behind.
	Layers = 3
)

// maxWork bounds how many bytes are decoded of one text, as a multiple of its length, beside leastWork bytes.
// A text that takes more, as one that was made to, is masked as a whole.
const maxWork, leastWork = 100, 1 << 16

// Masker puts a marker in the place of values, however they are written in a text. It is immutable and safe
// for concurrent use; a nil Masker finds nothing.
//
// It finds a value as it is and in other case, with its letters composed or decomposed (NFC, NFD), with a
// space written as + or as other white space, and behind up to Layers encodings in any order: JSON escapes,
// percent-encoding, HTML character references, base64 of either alphabet, padded or not, at any alignment and
// across line breaks, and hex in either case, with or without separators. A value of fewer than MinText bytes
// is a word: it is found only where no letter or digit is next to it, and not in base64 or hex, where so few
// bytes occur by chance. It does not find what a value was hashed, compressed, encrypted or cut into.
//
// It also masks what patterns match, in the text as it is and behind one layer of escapes.
type Masker struct {
	marker string
	// needles are folded values. Those of MinText bytes and more are found by their first four bytes: filter
	// has a bit for each hash of such four, and by has the values.
	needles []needle
	filter  *[1 << 10]uint64
	by      map[uint32][]int
	short   []int
	least   int // the length of the shortest
	// numbers are the values that are numbers; fractions says that one is written with a fraction or an
	// exponent.
	numbers   []float64
	fractions bool
	patterns  []*regexp.Regexp
}

type needle struct {
	text string
	word bool // found only where no letter or digit is next to it
}

// NewMasker returns a Masker that writes marker in the place of values, of words, which are found only where
// no letter or digit is next to them, and of what the patterns match; nil where there is nothing to find.
// Blank values and empty matches are ignored.
func NewMasker(marker string, values, words []string, patterns ...*regexp.Regexp) *Masker {
	if len(values)+len(words)+len(patterns) == 0 {
		return nil
	}
	m := &Masker{marker: marker, patterns: patterns, filter: new([1 << 10]uint64), by: map[uint32][]int{}}
	seen := map[needle]bool{}
	add := func(value string, word bool) {
		if value = strings.TrimSpace(value); value == "" || value == marker {
			return
		}
		for _, form := range []string{value, norm.NFC.String(value), norm.NFD.String(value)} {
			folded, _ := fold([]byte(form))
			n := needle{string(folded), word || len(value) < MinText}
			if !seen[n] && strings.TrimSpace(n.text) != "" {
				seen[n] = true
				m.add(n)
				m.number(value)
			}
		}
	}
	for _, v := range values {
		add(v, false)
	}
	for _, w := range words {
		add(w, true)
	}
	if len(m.needles)+len(m.patterns) == 0 {
		return nil
	}
	return m
}

func (m *Masker) add(n needle) {
	i := len(m.needles)
	m.needles = append(m.needles, n)
	if m.least = min(m.least, len(n.text)); i == 0 {
		m.least = len(n.text)
	}
	if len(n.text) < MinText {
		m.short = append(m.short, i)
		return
	}
	four := first(n.text)
	m.by[four] = append(m.by[four], i)
	h := hash(four)
	m.filter[h>>6] |= 1 << (h & 63)
}

func first[T string | []byte](s T) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func hash(four uint32) uint32 { return four * 2654435761 >> 16 }

// Replace returns s with the marker in the place of every value.
func (m *Masker) Replace(s string) string {
	if m == nil || s == m.marker || len(m.patterns) == 0 && 2*len(s) < m.least { // folding makes a text no longer than twice
		return s
	}
	spans, ok := m.find([]byte(s))
	if !ok {
		return m.marker
	}
	for i := 0; len(spans) > 0; { // a marker that is there already stays as it is
		next := strings.Index(s[i:], m.marker)
		if next < 0 {
			break
		}
		from := i + next
		i = from + len(m.marker)
		spans = slices.DeleteFunc(spans, func(p span) bool { return p.from >= from && p.to <= i })
	}
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	end := -1
	for _, p := range spans {
		if p.from > end { // what is side by side is one
			b.WriteString(s[max(end, 0):p.from])
			b.WriteString(m.marker)
		}
		end = max(end, p.to)
	}
	b.WriteString(s[end:])
	return b.String()
}

// Holds reports whether data, text or not, contains a value.
func (m *Masker) Holds(data []byte) bool {
	if m == nil {
		return false
	}
	spans, ok := m.find(data)
	return !ok || len(spans) > 0
}

// Is reports whether s is exactly a value, of at least MinText bytes.
func (m *Masker) Is(s string) bool {
	return m != nil && len(s) >= MinText && s != m.marker && m.Replace(s) == m.marker
}

type span struct{ from, to int }

// search is the search of one text.
type search struct {
	*Masker
	work  int
	spans []span
	// seen are texts that escapes were read to since the last base64 or hex: mostly, the order in which they
	// are read makes no difference.
	seen map[reading]bool
}

type reading struct {
	layers int
	hash   uint64
}

var seed = maphash.MakeSeed()

func (s *search) first(plain []byte, layers int) bool {
	r := reading{layers, maphash.Bytes(seed, plain)}
	if s.seen[r] {
		return false
	}
	if s.seen == nil {
		s.seen = map[reading]bool{}
	}
	s.seen[r] = true
	return true
}

// find returns where values are; ok is false where the text takes too much work to say so.
func (m *Masker) find(text []byte) (spans []span, ok bool) {
	s := search{Masker: m, work: maxWork*len(text) + leastWork}
	s.look(text, func(from, to int) span { return span{from, to} }, Layers, false)
	return s.spans, s.work >= 0
}

// look finds what is in a text and in what that encodes, at most layers deep. up says where a part of the
// text comes from in the one that is masked; binary, that the text was base64 or hex.
func (s *search) look(text []byte, up func(from, to int) span, layers int, binary bool) {
	if s.work -= len(text); s.work < 0 {
		return
	}
	s.match(text, up, binary)
	if !binary && layers >= Layers-1 {
		for _, p := range s.patterns {
			for _, at := range p.FindAllIndex(text, -1) {
				if at[0] < at[1] {
					s.spans = append(s.spans, up(at[0], at[1]))
				}
			}
		}
	}
	if layers == 0 || len(s.needles) == 0 && layers < Layers {
		return
	}
	for _, e := range escapes {
		if plain, from := e.unescape(text); plain != nil && s.first(plain, layers) {
			s.look(plain, func(i, j int) span { a, b := from.origin(i, j); return up(a, b) }, layers-1, binary)
		}
	}
	if len(s.needles) == 0 {
		return
	}
	// Base64 at each of its alignments, and hex at either.
	for _, code := range []*code{&base64Code, &hexCode} {
		digits, at := code.runs(text)
		for skip := range code.alignments {
			if s.work < 0 {
				return
			}
			if data, from := code.decode(digits, skip); data != nil {
				outside := s.seen
				s.seen = nil
				s.look(data, func(i, j int) span {
					a, b := from(i, j)
					end := int(at[b-1]) + 1
					for end < len(text) && text[end] == '=' { // padding
						end++
					}
					return up(int(at[a]), end)
				}, layers-1, true)
				s.seen = outside
			}
		}
	}
}

// match finds the values in a text as it is, but for case.
func (s *search) match(text []byte, up func(from, to int) span, binary bool) {
	folded, from := fold(text)
	hit := func(n needle, i int) {
		j := i + len(n.text)
		if n.word {
			before, _ := utf8.DecodeLastRune(folded[:i])
			after, _ := utf8.DecodeRune(folded[j:])
			if inWord(before) || inWord(after) {
				return
			}
		}
		a, b := i, j
		if from != nil {
			a, b = from.origin(i, j)
		}
		s.spans = append(s.spans, up(a, b))
	}
	for i := 0; i+MinText <= len(folded); i++ {
		four := first(folded[i : i+MinText])
		if h := hash(four); s.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, k := range s.by[four] {
			if n := s.needles[k]; len(folded)-i >= len(n.text) && string(folded[i:i+len(n.text)]) == n.text {
				hit(n, i)
			}
		}
	}
	if binary {
		return
	}
	for _, k := range s.short {
		n := s.needles[k]
		for i := 0; ; i++ {
			next := bytes.Index(folded[i:], []byte(n.text))
			if next < 0 {
				break
			}
			i += next
			hit(n, i)
		}
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// pieces say where the parts of a text come from in another: each piece either has the length that it had, or
// is whole.
type pieces []piece

type piece struct{ at, length, from, fromLength int }

// add notes that the n bytes from at on are m bytes in the other text.
func (p *pieces) add(at, n, from, m int) {
	if n == 0 {
		return
	}
	if last := len(*p) - 1; last >= 0 && n == m && n == 1 {
		if q := &(*p)[last]; q.length == q.fromLength && q.at+q.length == at && q.from+q.fromLength == from {
			q.length, q.fromLength = q.length+1, q.fromLength+1
			return
		}
	}
	*p = append(*p, piece{at, n, from, m})
}

func (p pieces) origin(i, j int) (from, to int) {
	in := func(i int) piece {
		k, found := slices.BinarySearchFunc(p, i, func(q piece, i int) int { return cmp.Compare(q.at, i) })
		if !found {
			k--
		}
		return p[k]
	}
	if q := in(i); q.length == q.fromLength {
		from = q.from + i - q.at
	} else {
		from = q.from
	}
	if q := in(j - 1); q.length == q.fromLength {
		to = q.from + j - q.at
	} else {
		to = q.from + q.fromLength
	}
	return from, to
}

// fold returns text in one case, with a space for + and for all white space, and where each part comes from;
// nil pieces say that every byte is in its place.
func fold(text []byte) ([]byte, pieces) {
	out := make([]byte, len(text))
	for i, c := range text {
		if c >= utf8.RuneSelf {
			return foldRunes(text)
		}
		out[i] = foldASCII[c]
	}
	return out, nil
}

var foldASCII = func() (table [utf8.RuneSelf]byte) {
	for i := range table {
		table[i] = byte(unicode.ToLower(rune(i)))
	}
	for _, c := range "+\t\n\v\f\r" {
		table[c] = ' '
	}
	return table
}()

func foldRunes(text []byte) ([]byte, pieces) {
	out := make([]byte, 0, len(text)+8)
	var from pieces
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		at := len(out)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, text[i])
		case r < utf8.RuneSelf:
			out = append(out, foldASCII[r])
		case r == 'ß' || r == 'ẞ':
			out = append(out, "ss"...)
		case unicode.IsSpace(r):
			out = append(out, ' ')
		default:
			out = utf8.AppendRune(out, foldRune(r))
		}
		if len(out)-at == 1 && n == 1 {
			from.add(at, 1, i, 1)
		} else {
			from.add(at, len(out)-at, i, n)
		}
		i += n
	}
	return out, from
}

// foldRune is the same for all letters that differ in case alone: the least of them, in lower case where that
// is ASCII.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if least < utf8.RuneSelf {
		return unicode.ToLower(least)
	}
	return least
}
