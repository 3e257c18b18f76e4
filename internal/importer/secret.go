package importer

import (
	"net/url"
	"regexp"
	"strings"
)

// sensitiveName finds names whose values are secrets. It errs on the side of withholding: a value that is
// taken for a secret costs a variable in an environment, the other mistake costs the secret.
var sensitiveName = regexp.MustCompile(`(?i)key|token|secret|passw|passphrase|credential|auth($|[^o]|o[^r]|ori)|cookie|bearer|session|jwt|dsn|signature|private|(^|[^a-z])(pat|pwd|pw|pass|sig|pin|otp)([^a-z]|$)`)

// sensitive reports whether a value of that name is a secret.
func sensitive(name, value string) bool {
	return value != "" && value != "true" && value != "false" && sensitiveName.MatchString(name)
}

// issued are the shapes that well-known services give their tokens, and private keys.
var issued = regexp.MustCompile(`(^|[^A-Za-z0-9])(sk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|AKIA|ASIA|AIza|ya29\.|npm_|hf_|dop_v1_|SG\.|lin_api_|ntn_|secret_|tvly-|fc-|BSA|pplx-|gsk_|r8_|figd_|shpat_|sntrys_|eyJ)[A-Za-z0-9_.-]{8,}|-----BEGIN `)

var (
	uuid = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// digest is a pinned image, which is no secret.
	digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	run    = regexp.MustCompile(`[A-Za-z0-9]{16,}`)
	// pair is a secret in a connection string.
	pair   = regexp.MustCompile(`(?i)(passw(or)?d|pwd|secret|token|key)=[^;&\s]`)
	scheme = regexp.MustCompile(`(?i)^(bearer|basic|token|apikey|api-key)\s+\S`)
)

// tokenLike reports whether the text looks like a token whatever its name is: an issued shape, a UUID, or a
// long run of letters and digits that nobody would write by hand.
func tokenLike(s string) bool {
	s = digest.ReplaceAllString(s, "")
	if issued.MatchString(s) || uuid.MatchString(s) || scheme.MatchString(s) || pair.MatchString(s) {
		return true
	}
	for _, word := range run.FindAllString(s, -1) {
		digits := strings.ContainsAny(word, "0123456789")
		letters := strings.ContainsFunc(word, func(r rune) bool { return r >= 'A' })
		mixed := strings.ToLower(word) != word && strings.ToUpper(word) != word
		if (digits && letters) || (mixed && len(word) >= 32) || (digits && len(word) >= 24) {
			return true
		}
	}
	return false
}

// secretInURL says which part of a URL holds a secret, or is empty. References are no secrets.
func (x syntax) secretInURL(s string) string {
	if !strings.Contains(s, "://") {
		return ""
	}
	plain := x.without(s)
	_, rest, _ := strings.Cut(plain, "://")
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		return "the user information"
	}
	if _, query, ok := strings.Cut(rest, "?"); ok {
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			// A name that can't be decoded is judged as it is written.
			if decoded, err := url.QueryUnescape(name); err == nil {
				name = decoded
			}
			if sensitive(name, value) || tokenLike(value) {
				return "the query parameter " + shown(name)
			}
		}
	}
	if tokenLike(rest) {
		return "the path"
	}
	return ""
}

const looksLikeToken = "what looks like a token"

// secretArgument says why an argument holds a secret, or is empty; before is the argument in front of it.
// What an argument refers to is no secret of the file.
func (x syntax) secretArgument(before, arg string) string {
	literal := x.without(arg)
	if literal == "" {
		return ""
	}
	if part := x.secretInURL(arg); part != "" {
		return part + " of a URL"
	}
	if name, value, ok := strings.Cut(literal, "="); ok && sensitive(name, value) {
		return "the value of " + optionName(name)
	}
	if name, value, ok := strings.Cut(literal, ":"); ok && !strings.ContainsAny(name, "/@ ") && !strings.HasPrefix(value, "//") && sensitive(name, strings.TrimSpace(value)) {
		return "the value of " + optionName(name)
	}
	option := strings.HasPrefix(before, "-") && !strings.Contains(before, "=")
	if option && sensitive(before, literal) && !strings.HasPrefix(literal, "-") {
		return "the value of " + optionName(before)
	}
	if tokenLike(literal) {
		return looksLikeToken
	}
	return ""
}

var plainOption = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z-]*|[A-Z][A-Z_]*)$`)

// optionName is an option or a variable as a message may repeat it. Other text in front of = or a colon may
// be a part of the secret.
func optionName(s string) string {
	if plainOption.MatchString(s) {
		return shown(s)
	}
	return "an option"
}
