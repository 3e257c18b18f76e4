package reach

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// minMasked is the length from which a secret is looked for in output; a shorter one would take out innocent text, and
// protects nothing.
const minMasked = 4

// minMaskedLine is the same for one line of a secret of several.
const minMaskedLine = 8

// Mask takes the values of secrets out of what a child or a service answers, which may repeat what it was given: those
// that the values refer to, read now, and the further texts. It knows a secret also as base64, in a URL
// and inside a JSON string, and one of several lines also a line at a time.
func Mask(values map[string]Value, root string, further ...string) *strings.Replacer {
	secrets := slices.Clone(further)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name].Secret == "" {
			continue
		}
		// A secret that can't be read now was not handed out either; its use has reported that.
		if secret, err := Secret(values[name].Secret, root); err == nil {
			secrets = append(secrets, secret)
		}
	}
	var pairs []string
	for _, secret := range secrets {
		if len(secret) < minMasked {
			continue
		}
		for _, form := range forms(secret) {
			pairs = append(pairs, form, "***")
		}
	}
	// Behind the whole secrets, which are looked for first.
	for _, secret := range secrets {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minMaskedLine && line != secret {
				pairs = append(pairs, line, "***")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// forms are the ways in which a secret is written.
func forms(secret string) []string {
	out := []string{secret}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		out = append(out, enc.EncodeToString([]byte(secret)))
	}
	out = append(out, url.QueryEscape(secret), url.PathEscape(secret))
	for _, html := range []bool{true, false} {
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(html)
		if err := enc.Encode(secret); err == nil {
			line := strings.TrimSuffix(quoted.String(), "\n")
			out = append(out, line[1:len(line)-1])
		}
	}
	return out
}
