package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/registry"
)

// LocalName is the name in the catalog of a server's tool: what `discover` calls it, or its own name behind
// the server's prefix, as portableName has it.
func LocalName(s registry.Server, tool string) string {
	if s.Discover != nil {
		if name := s.Discover.Tools[tool].Rename; name != "" {
			return name
		}
	}
	return portableName(s.Prefix + tool)
}

// portable is the schema's #Name.
var portable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// foreign are the characters that #Name doesn't have.
var foreign = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

const (
	maxName = 63
	// nameDigest is how many digits of a digest tell names apart that would be the same without them.
	nameDigest = 8
)

// portableName is a name that every client and provider takes. One that is a #Name stays as it is. Of any
// other, each run of characters that a #Name doesn't have becomes one _, and _ stands before a digit or - at
// the beginning; where that loses what tells names apart, because the name is too long, has characters beyond
// ASCII, or has no letter or digit, it is cut to 54 characters and ends in _ and eight hexadecimal digits of
// the SHA-256 of the whole name.
func portableName(name string) string {
	if portable.MatchString(name) {
		return name
	}
	mapped := foreign.ReplaceAllString(name, "_")
	if mapped == "" || mapped[0] == '-' || mapped[0] >= '0' && mapped[0] <= '9' {
		mapped = "_" + mapped
	}
	if len(mapped) <= maxName && utf8.RuneCountInString(name) == len(name) && strings.Trim(mapped, "_-") != "" {
		return mapped
	}
	sum := sha256.Sum256([]byte(name))
	return mapped[:min(len(mapped), maxName-nameDigest-1)] + "_" + hex.EncodeToString(sum[:])[:nameDigest]
}
