package secret

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// kind is what a name says of its value.
type kind int

const (
	innocent kind = iota
	token         // made by a machine
	password      // perhaps made by a person
)

var (
	tokenName = regexp.MustCompile(`(?i)((api|access|secret|private|signing|encryption|auth|account|subscription|license)[-_.]?key|authorization|token|secret|credentials?|cookie|jwt|bearer|signature)$` +
		`|(^|[-_.])(pat|auth|dsn|sig|apikey)$`)
	passwordName = regexp.MustCompile(`(?i)(passwords?|passwd|passphrase|pwd)$|(^|[-_.])(pass|pw)$`)
	// What is called an identifier may be random and no secret.
	idName = regexp.MustCompile(`(^|[-_.])(?i:ids?)$|[a-z0-9](Id|ID)s?$`)
	// In a URL a parameter that is just called key is one.
	keyName = regexp.MustCompile(`(?i)^(key|code)$`)

	assignment = regexp.MustCompile(`([A-Za-z][\w.-]*)"?[?!]?\s*(?:=|:|=>|==)\s*\*?["'` + "`" + `]([^"'` + "`" + `]+)["'` + "`" + `]`)
)

// secretNameParts are substrings of which every name that says secret has one; searching for them is quicker
// than the expressions.
var secretNameParts = []string{"key", "auth", "token", "secret", "cred", "cookie", "jwt", "bearer", "sig", "pat", "dsn", "pass", "pwd", "pw"}

func kindOf(name string) kind {
	lower := strings.ToLower(name)
	switch {
	case !slices.ContainsFunc(secretNameParts, func(part string) bool { return strings.Contains(lower, part) }):
		return innocent
	case passwordName.MatchString(name):
		return password
	case tokenName.MatchString(name):
		return token
	}
	return innocent
}

// scheme is what precedes the credentials of a header.
var authScheme = regexp.MustCompile(`(?i)^(?:bearer|basic|digest|token|apikey|api-key|bot|key)[ =]+`)

// findUnderName searches a value under a name that says secret. at is the offset of the value in the text
// that is searched.
func findUnderName(k kind, name, value string, at int) (Literal, bool) {
	rest := authScheme.ReplaceAllString(value, "")
	at += len(value) - len(rest)
	basic := len(rest) < len(value) && strings.HasPrefix(strings.ToLower(value), "basic")
	if _, secret, ok := strings.Cut(rest, "="); ok && strings.EqualFold(name, "cookie") {
		at += len(rest) - len(secret)
		rest = secret
	}
	if placeholder(rest) {
		return Literal{}, false
	}
	opaque := k == token && machineMade(rest) || k == password && (machineMade(rest) || typed(rest))
	if basic && !opaque {
		decoded, err := base64.StdEncoding.DecodeString(rest)
		opaque = err == nil && strings.Contains(string(decoded), ":")
	}
	if !opaque {
		return Literal{}, false
	}
	return Literal{Rule: "the value of " + shownName(name), At: at, Secret: rest}, true
}

// shownName is a name as a message may have it.
func shownName(name string) string {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }) {
		return "a name that says so"
	}
	return name
}

var (
	urlInText   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]+`)
	urlPassword = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://([^/?#@:]*):([^/?#]*)@`)
)

// findInURL is the first secret in the addresses of a text: a password in front of the host, or a parameter.
func findInURL(s string) (Literal, bool) {
	if !strings.Contains(s, "://") {
		return Literal{}, false
	}
	for _, m := range urlInText.FindAllStringIndex(s, -1) {
		u := s[m[0]:m[1]]
		if p := urlPassword.FindStringSubmatchIndex(u); p != nil {
			if f, ok := findUnderName(password, "a user", u[p[4]:p[5]], m[0]+p[4]); ok {
				f.Rule = "the password in a URL"
				return f, true
			}
		}
		_, query, ok := strings.Cut(u, "?")
		if !ok {
			continue
		}
		at := m[0] + len(u) - len(query)
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if f, ok := parameter(name, value); ok {
				f.At += at + len(pair) - len(value)
				return f, true
			}
			at += len(pair) + 1
		}
	}
	return Literal{}, false
}

func parameter(name, value string) (Literal, bool) {
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	k := kindOf(name)
	if k == innocent && keyName.MatchString(name) {
		k = token
	}
	if k != innocent {
		if f, ok := findUnderName(k, name, value, 0); ok {
			return f, true
		}
	}
	if !idName.MatchString(name) && random(value) {
		return Literal{Rule: "a random value in a URL", Secret: value}, true
	}
	return Literal{}, false
}

// placeholders are words that people write where a value is to be filled in.
var placeholders = []string{
	"your", "my", "example", "changeme", "change", "placeholder", "redacted", "dummy", "sample", "todo", "replace", "insert", "fake", "test", "xxx",
	"some", "none", "null", "here", "secret", "password", "token", "user", "username", "pass", "value",
}

var (
	keywordValue  = regexp.MustCompile(`^(?i:true|false|null|none|yes|no|on|off|default|anonymous|required|optional|disabled|enabled)$`)
	versionValue  = regexp.MustCompile(`^v?\d+(\.\d+)+([-+.][0-9A-Za-z.-]+)?$`)
	dateValue     = regexp.MustCompile(`^\d{4}-\d\d-\d\d([T ][\d:.Z+-]*)?$`)
	amountValue   = regexp.MustCompile(`^[+-]?[\d_.,]+ ?[a-zA-Z%]{0,5}$`)
	locationValue = regexp.MustCompile(`^(\.{0,2}/|~/?|[A-Za-z]:\\|file:|env:|sha\d+[:-]|arn:)|^[\w.-]+@[\w-]+\.[\w.-]+$|://`)
	variableValue = regexp.MustCompile(`^\$[A-Za-z_]\w*$|^%\w+%$|^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)
	plainWord     = regexp.MustCompile(`^([A-Za-z]?[a-z]+|[A-Z]+|([A-Z]?[a-z]+)([A-Z][a-z]+)+)\d{0,3}$|^\d{1,4}$`)
	separators    = regexp.MustCompile(`[-_.:/,;+@ ]+`)
	tokenChars    = regexp.MustCompile(`^[A-Za-z0-9_\-+/=.~]+$`)
)

// placeholder reports whether a value is to be filled in, or has a form that no secret has.
func placeholder(v string) bool {
	lower := strings.ToLower(v)
	return len(v) < minLiteral || strings.ContainsAny(v, "{}<>") || strings.Contains(v, "$(") || strings.Contains(v, "...") || strings.Count(lower, lower[:1]) == len(lower) ||
		keywordValue.MatchString(v) || versionValue.MatchString(v) || dateValue.MatchString(v) || locationValue.MatchString(v) || variableValue.MatchString(v) ||
		slices.ContainsFunc(separators.Split(lower, -1), func(w string) bool { return slices.Contains(placeholders, w) })
}

// machineMade reports whether a text looks generated: it has letters and digits, or is long, and does not
// consist of words and short numbers.
func machineMade(v string) bool {
	if len(v) < 8 || strings.ContainsAny(v, " \t\n") || amountValue.MatchString(v) || wordy(v) {
		return false
	}
	digits := strings.ContainsAny(v, "0123456789")
	letters := strings.ContainsFunc(v, unicode.IsLetter)
	return digits && letters && entropy(v) >= 2.5 || len(v) >= 16 && entropy(v) >= 3
}

// wordy reports whether v is words and short numbers, at least one of the former, none very long.
func wordy(v string) bool {
	words := 0
	for _, part := range separators.Split(v, -1) {
		if part == "" {
			continue
		}
		if len(part) > 15 || !plainWord.MatchString(part) {
			return false
		}
		if part[0] > '9' {
			words++
		}
	}
	return words > 0
}

// typed reports whether v may be a password that a person chose: letters with digits or signs.
func typed(v string) bool {
	if strings.ContainsAny(v, " \t\n") {
		return false
	}
	letters := strings.ContainsFunc(v, unicode.IsLetter)
	digits := strings.ContainsAny(v, "0123456789")
	signs := strings.ContainsAny(v, "!@#$%^&*?")
	return letters && (digits || signs) && len(separators.Split(v, -1)) == 1 || digits && !letters && len(v) >= 8
}

// random reports whether v is long and of letters of both cases and digits without order. Hexadecimal digits
// alone, as in digests, commits and UUIDs, are not.
func random(v string) bool {
	if len(v) < 24 || placeholder(v) || wordy(v) || !tokenChars.MatchString(v) || strings.Count(v, "/") > 1 && !strings.HasSuffix(v, "=") {
		return false
	}
	has := func(in func(rune) bool) bool { return strings.ContainsFunc(v, in) }
	return has(unicode.IsUpper) && has(unicode.IsLower) && has(unicode.IsDigit) && entropy(v) >= 4
}
