package lockfile

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/catalogd/catalogd/internal/strictjson"
	"github.com/catalogd/catalogd/problem"
)

// Findings returns the suspicious parts of a definition's texts: invisible characters, words addressed to the
// model instead of describing the tool, mentions of other tools of its server, a name that resembles another.
// It helps a reviewer and a policy; a text without findings is not proven harmless.
func Findings(d Definition, server *Names) []string {
	found := map[string]bool{}
	for _, text := range texts(d.open(), nil) {
		plain := plainASCII(text)
		if !plain {
			for _, r := range text {
				if what := problem.Hidden(r); what != "" {
					found["hidden_unicode: "+what] = true
				}
			}
		}
		if !plain || mayAim(text) {
			for _, m := range aimed.FindAllString(text, 5) {
				found[fmt.Sprintf("instructions: %q", strings.Join(strings.Fields(m), " "))] = true
			}
		}
		for other := range server.mentioned(text) {
			if other != d.Name {
				found["other_tool: it speaks of "+other] = true
			}
		}
	}
	for _, other := range server.alike(d.Name) {
		if other != d.Name {
			found["look_alike: the name looks like "+other] = true
		}
	}
	return sortedKeys(found)
}

// plainASCII reports whether a text is printable ASCII, as most texts are.
func plainASCII(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Names indexes the names of a server's tools, to search texts for them. A nil *Names has none.
type Names struct {
	bySkeleton map[string][]string
	// byWord has the names that a text can mention, by the run of letters that they begin with (for most
	// names the whole name); those that begin with another character are under "".
	byWord map[string][]string
}

// NewNames indexes the names of a server's tools.
func NewNames(names iter.Seq[string]) *Names {
	n := &Names{bySkeleton: map[string][]string{}, byWord: map[string][]string{}}
	for name := range names {
		n.bySkeleton[skeleton(name)] = append(n.bySkeleton[skeleton(name)], name)
		// A short or ordinary word in a text rarely means the tool.
		if len(name) > 3 && strings.ContainsAny(name, "_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			first := name[:wordLength(name)]
			n.byWord[first] = append(n.byWord[first], name)
		}
	}
	return n
}

func (n *Names) alike(name string) []string {
	if n == nil {
		return nil
	}
	return n.bySkeleton[skeleton(name)]
}

// mentioned yields the names that a text contains as whole words.
func (n *Names) mentioned(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if n == nil {
			return
		}
		for _, name := range n.byWord[""] {
			if mentions(text, name) && !yield(name) {
				return
			}
		}
		for rest := text; rest != ""; {
			length := wordLength(rest)
			if length == 0 {
				rest = rest[1:]
				continue
			}
			for _, name := range n.byWord[rest[:length]] {
				after, ok := strings.CutPrefix(rest, name)
				if ok && (after == "" || !word(after[0])) && !yield(name) {
					return
				}
			}
			rest = rest[length:]
		}
	}
}

// wordLength returns how many bytes at the beginning of a text are letters of one word.
func wordLength(text string) int {
	for i := range len(text) {
		if !word(text[i]) {
			return i
		}
	}
	return len(text)
}

// texts returns all strings of a definition, including keys.
func texts(v any, into []string) []string {
	switch v := v.(type) {
	case string:
		return append(into, v)
	case []any:
		for _, item := range v {
			into = texts(item, into)
		}
	case *strictjson.Object:
		for _, m := range v.Members {
			into = texts(m.Value, append(into, m.Key))
		}
	}
	return into
}

// aimed matches text that is addressed to a model instead of describing a tool.
var aimed = regexp.MustCompile(`(?i)<\s*/?\s*(important|system|instructions?|secret|assistant)\s*>|` +
	`\b(ignore|disregard|forget)\b[^.\n]{0,40}\b(previous|prior|above|earlier|other)\b|` +
	`\b(do not|don't|never)\b[^.\n]{0,40}\b(tell|mention|inform|notify|reveal|show)\b[^.\n]{0,40}\b(user|human|operator)\b|` +
	`\bwithout\b[^.\n]{0,30}\b(telling|informing|notifying|asking)\b|` +
	`\b(you|the (model|assistant|agent|llm|ai)) (must|should|have to|are required to)\b[^.\n]{0,60}\b(always|first|before|read|send|pass|include|call)\b|` +
	`\b(before|after) (using|calling|you (use|call)) (this|any|other)\b[^.\n]{0,60}\b(read|send|call|use|pass)\b|` +
	`(~/)?\.ssh/|\bid_rsa\b|\.aws/credentials`)

// mayAim reports whether aimed can match an ASCII text: whether the text has a word or a beginning that every
// branch of aimed needs. Most texts have none, and this check costs a hundredth of the expression.
func mayAim(text string) bool {
	for i := 0; i < len(text); i++ {
		begin := i
		for i < len(text) && text[i] != '-' && word(text[i]) {
			i++
		}
		if n := i - begin; n > 3 && n <= len("disregard") && telling[strings.ToLower(text[begin:i])] {
			return true
		}
		if rest := text[i:]; strings.HasPrefix(rest, "<") || len(rest) >= 5 && (strings.EqualFold(rest[:5], ".ssh/") || strings.EqualFold(rest[:5], ".aws/")) {
			return true
		}
	}
	return false
}

// telling are the words of which every branch of aimed needs one, except the branches that begin with <,
// .ssh/ or .aws/.
var telling = map[string]bool{
	"ignore": true, "disregard": true, "forget": true, "user": true, "human": true, "operator": true, "without": true,
	"must": true, "should": true, "have": true, "required": true, "before": true, "after": true, "id_rsa": true,
}

// mentions reports whether a text contains the name as a whole word.
func mentions(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if (before == "" || !word(before[len(before)-1])) && (after == "" || !word(after[0])) {
			return true
		}
		rest = after
	}
}

func word(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// skeleton returns the visual form of a name: without case and separators, with letters of other scripts and
// digits replaced by the Latin letters that they resemble.
func skeleton(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r == '/' || unicode.IsSpace(r) || problem.Hidden(r) != "" {
			return -1
		}
		if l, ok := alike[r]; ok {
			return l
		}
		return unicode.ToLower(r)
	}, name)
}

var alike = map[rune]rune{
	'0': 'o', '1': 'l', 'I': 'l', 'а': 'a', 'А': 'a', 'е': 'e', 'Е': 'e', 'о': 'o', 'О': 'o', 'р': 'p', 'Р': 'p', 'с': 'c', 'С': 'c',
	'х': 'x', 'Х': 'x', 'у': 'y', 'У': 'y', 'і': 'i', 'І': 'l', 'ѕ': 's', 'ј': 'j', 'к': 'k', 'К': 'k', 'М': 'm', 'Т': 't', 'В': 'b', 'Н': 'h',
	'α': 'a', 'Α': 'a', 'ο': 'o', 'Ο': 'o', 'ρ': 'p', 'ν': 'v', 'ι': 'i', 'κ': 'k', 'Ε': 'e', 'Β': 'b', 'Τ': 't', 'Μ': 'm',
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
