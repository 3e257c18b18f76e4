package lockfile

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/catalogd/catalogd/registry"
)

// LocalName returns the catalog name of a server's tool: the one given in `discover`, or its own name with
// the server's prefix, made portable by portableName.
func LocalName(s registry.Server, tool string) string {
	if s.Discover != nil {
		if name := s.Discover.Tools[tool].Rename; name != "" {
			return name
		}
	}
	return portableName(s.Prefix + tool)
}

// portable is the pattern of the schema's #Name.
var portable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// foreign matches the characters that #Name does not allow.
var foreign = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

const (
	maxName = 63
	// nameDigest is how many digest digits keep names apart that would be the same without them.
	nameDigest = 8
)

// portableName returns a name that every client and provider accepts. A valid #Name is kept. In any other
// name, each run of characters that #Name does not allow becomes one _, and a leading digit or - gets a _
// before it. Where that could make different names equal, because the name is too long, has non-ASCII
// characters, or has no letter or digit, it is cut to 54 characters and ends in _ and the first eight
// hexadecimal digits of the SHA-256 of the whole name.
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
