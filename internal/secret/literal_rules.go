package secret

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

//go:embed gitleaks.toml
var gitleaks []byte

// minLiteral is the length of the minLiteral text that can be, or hold, a secret.
const minLiteral = 6

// generic is the rule that knows nothing but names and entropy.
const generic = "generic-api-key"

// rule is one of gitleaks.
type rule struct {
	ID       string   `toml:"id"`
	Regex    string   `toml:"regex"`
	Path     string   `toml:"path"`
	Entropy  float64  `toml:"entropy"`
	Group    int      `toml:"secretGroup"`
	Keywords []string `toml:"keywords"`
	Allowed  []*allow `toml:"allowlists"`

	compiled func() *regexp.Regexp
	// named: the rule finds a value by the name that it is assigned to. Such a value has a digit in a run of
	// ten characters.
	named bool
}

// allow says what a rule takes for a secret that is none.
type allow struct {
	Condition string   `toml:"condition"`
	Paths     []string `toml:"paths"`
	Target    string   `toml:"regexTarget"`
	Regexes   []string `toml:"regexes"`
	Words     []string `toml:"stopwords"`

	compiled func() []*regexp.Regexp
}

// keyword is a word without which none of its rules finds anything.
type keyword struct {
	text  string
	rules []*rule
}

// begins is the beginning of rules that find a value by its name.
const begins = `(?i)[\w.-]{0,50}?(?:`

type ruleSet struct {
	Rules   []*rule `toml:"rules"`
	Allowed *allow  `toml:"allowlist"`

	// keywords are grouped by their first two bytes, and start has the number of the group of two bytes;
	// group 0 is empty.
	keywords [][]keyword
	start    [1 << 16]uint8
}

// rules are parsed once; a file that isn't what this expects is a fault of the program.
var rules = sync.OnceValue(func() *ruleSet {
	s := &ruleSet{}
	if err := toml.Unmarshal(gitleaks, s); err != nil {
		panic(fmt.Sprintf("gitleaks.toml: %v", err))
	}
	// Written as if the alternatives were anchored, which lets through every secret with "false" in it.
	if i := slices.Index(s.Allowed.Regexes, "(?i)^true|false|null$"); i >= 0 {
		s.Allowed.Regexes[i] = "(?i)^(?:true|false|null)$"
	}
	s.Allowed.prepare()
	s.keywords = make([][]keyword, 1)
	byText := map[string][]*rule{}
	for _, r := range s.Rules {
		if r.Regex == "" || r.Path != "" {
			continue // about files of a certain name
		}
		r.named = strings.HasPrefix(r.Regex, begins)
		r.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
		r.Allowed = slices.DeleteFunc(r.Allowed, func(a *allow) bool {
			return len(a.Paths) > 0 && (a.Condition == "AND" || len(a.Regexes)+len(a.Words) == 0)
		})
		for _, a := range r.Allowed {
			a.prepare()
		}
		for _, k := range r.Keywords {
			k = strings.ToLower(k)
			byText[k] = append(byText[k], r)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		group := &s.start[pair(text, 0)]
		if *group == 0 {
			*group = uint8(len(s.keywords))
			s.keywords = append(s.keywords, nil)
		}
		s.keywords[*group] = append(s.keywords[*group], keyword{text, byText[text]})
	}
	return s
})

// pair is the number of the two bytes of s from i on.
func pair(s string, i int) int { return int(s[i])<<8 | int(s[i+1]) }

func (a *allow) prepare() {
	a.compiled = sync.OnceValue(func() []*regexp.Regexp {
		var all []*regexp.Regexp
		for _, expression := range a.Regexes {
			all = append(all, regexp.MustCompile(expression))
		}
		return all
	})
}

// findByRules is the first secret in s from byte from on that a rule of gitleaks finds. Where the text is no
// assignment, the generic rule is left out: it takes prose and programs for assignments.
func findByRules(s string, from int, assignment bool) (Literal, bool) {
	set := rules()
	lower := strings.ToLower(s)
	values := hasValue(s[from:])
	var tried map[*rule]bool
	var last *rule
	for i := range len(lower) - 1 {
		for _, k := range set.keywords[set.start[pair(lower, i)]] {
			if !strings.HasPrefix(lower[i:], k.text) {
				continue
			}
			for _, r := range k.rules {
				if tried[r] || r.named && !values {
					continue
				}
				if tried == nil {
					tried = map[*rule]bool{}
				}
				tried[r] = true
				if r.ID == generic {
					last = r
				} else if f, ok := r.find(set, s, from); ok {
					return f, true
				}
			}
		}
	}
	if last != nil && assignment {
		return last.find(set, s, from)
	}
	return Literal{}, false
}

// unpunctuated is s, byte for byte, with spaces for what ends a sentence or a clause: many rules want a token
// to end in one.
func unpunctuated(s string) string {
	if !strings.Contains(s, " ") {
		return s
	}
	var changed []byte
	for i := range len(s) {
		if strings.IndexByte(".,!?)]", s[i]) < 0 || i+1 < len(s) && strings.IndexByte(" \t\r\n\"'`.,:!?)]", s[i+1]) < 0 {
			continue
		}
		if changed == nil {
			changed = []byte(s)
		}
		changed[i] = ' '
	}
	if changed == nil {
		return s
	}
	return string(changed)
}

// hasValue reports whether s has a run of ten characters that a secret may have, one of them a digit.
func hasValue(s string) bool {
	length, digit := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digit = true
			length++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', strings.IndexByte("_-=+/.~", c) >= 0:
			length++
		default:
			length, digit = 0, false
		}
		if digit && length >= 10 {
			return true
		}
	}
	return false
}

// find is the first secret of the rule in s from byte from on.
func (r *rule) find(set *ruleSet, s string, from int) (Literal, bool) {
	for _, m := range r.compiled().FindAllStringSubmatchIndex(s, -1) {
		begin, end := m[0], m[1]
		switch {
		case r.Group > 0 && 2*r.Group+1 < len(m):
			begin, end = m[2*r.Group], m[2*r.Group+1]
		default:
			for i := 2; i+1 < len(m); i += 2 {
				if m[i] >= 0 && m[i+1] > m[i] {
					begin, end = m[i], m[i+1]
					break
				}
			}
		}
		if begin < from || end <= begin {
			continue
		}
		secret := s[begin:end]
		if entropy(secret) <= r.Entropy || r.ID == generic && placeholder(secret) || set.Allowed.allows(s, s[m[0]:m[1]], secret) ||
			slices.ContainsFunc(r.Allowed, func(a *allow) bool { return a.allows(s, s[m[0]:m[1]], secret) }) {
			continue
		}
		f := Literal{Rule: r.ID, At: begin - from, Secret: secret}
		for _, k := range r.Keywords {
			if strings.HasPrefix(strings.ToLower(secret), strings.ToLower(k)) {
				f.prefix = secret[:len(k)]
			}
		}
		return f, true
	}
	return Literal{}, false
}

func (a *allow) allows(line, match, secret string) bool {
	target := secret
	switch a.Target {
	case "match":
		target = match
	case "line":
		target = line
	}
	if slices.ContainsFunc(a.compiled(), func(e *regexp.Regexp) bool { return e.MatchString(target) }) {
		return true
	}
	lower := strings.ToLower(secret)
	return slices.ContainsFunc(a.Words, func(w string) bool { return strings.Contains(lower, w) })
}

// entropy is Shannon's, in bits a character.
func entropy(s string) (bits float64) {
	counts := map[rune]int{}
	n := 0
	for _, r := range s {
		counts[r]++
		n++
	}
	for _, c := range counts {
		p := float64(c) / float64(n)
		bits -= p * math.Log2(p)
	}
	return bits
}
