package registry

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// Nearest returns at most three visible names that name was perhaps meant to be, the likeliest first.
func (v *View) Nearest(name string) []string {
	return Nearest(name, v.Names())
}

// Nearest returns at most three of names that are likely what name was meant to be, the likeliest first: those that are a
// few typing errors away, or, where none is, those that have its words (weather finds get_weather).
func Nearest(name string, names []string) []string {
	if len(name) > maxShown {
		return nil
	}
	limit := max(2, len(name)/3)
	near := best(names, func(n string) (int, bool) {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n))
		return d, d <= limit
	})
	if len(near) > 0 {
		return near
	}
	meant := words(name)
	return best(names, func(n string) (int, bool) {
		has := words(n)
		common := shared(meant, has)
		return -common, common > 0 && 2*common >= letters(meant) && 3*common >= letters(has)
	})
}

// best returns the three names that fit with the least distance.
func best(names []string, measure func(name string) (distance int, fits bool)) (out []string) {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, n := range names {
		if d, fits := measure(n); fits {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	for _, c := range found[:min(3, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// words returns the words of a name in lower case: get_weather, getWeather and get-weather have the same.
func words(name string) []string {
	var b strings.Builder
	lower := false // the letter before is in lower case
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && lower:
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// shared counts the letters of the words in a that b has too, in the singular or the plural.
func shared(a, b []string) (n int) {
	for _, word := range a {
		if slices.ContainsFunc(b, func(other string) bool { return strings.TrimSuffix(word, "s") == strings.TrimSuffix(other, "s") }) {
			n += len(word)
		}
	}
	return n
}

func letters(words []string) (n int) {
	for _, w := range words {
		n += len(w)
	}
	return n
}
