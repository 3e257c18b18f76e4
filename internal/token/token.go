// Package token implements bearer tokens: their format, the file that lists them, and the set of valid ones.
//
// A token is a secret that `catalogd token create` generates and shows once. The file stores its SHA-256, the
// name of its principal and the branches that it opens, as one JSON object per line (wrapped here):
//
//	{"name":"ci","sha256":"9f86...","branches":["research"],"groups":["bots"],
//	 "created":"2026-01-02T15:04:05Z","expires":"2026-04-02T15:04:05Z"}
//
// A secret has 256 random bits, so it can't be guessed from its hash; a slow password hash would only slow
// down requests. A Store follows changes of the file: a changed file is accepted as a whole, or refused as a
// whole and reported while the last good content remains in effect.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The format of a secret: Prefix, 43 base-62 digits that encode 256 random bits, and 6 that encode the CRC-32
// of everything before them. Scanners for leaked secrets recognize it by prefix and checksum, and a mistyped
// one is refused without hashing.
const (
	Prefix   = "cat_"
	random   = 43
	checksum = 6
	length   = len(Prefix) + random + checksum
)

// AllBranches, as the only element of Token.Branches, opens every branch, including those of later
// generations.
const AllBranches = "*"

// MaxLine is the maximum length of a line of the file, in bytes; MaxTokens is the maximum number of tokens.
const (
	MaxLine   = 64 << 10
	MaxTokens = 10_000
)

// Hash is the SHA-256 of a secret.
type Hash [sha256.Size]byte

// MarshalText returns the hash in hex.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return errNoHash
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return errNoHash
	}
	return nil
}

// Token is one line of the file: a principal, and what the bearer of the secret may do. A Token in a Set is
// never modified.
type Token struct {
	// Name is the name of the principal, unique in a file.
	Name string `json:"name"`
	Hash Hash   `json:"sha256"`
	// Branches are the branches that the token opens, or AllBranches alone.
	Branches []string `json:"branches"`
	Groups   []string `json:"groups,omitempty"`
	// Admin allows the bearer to see the details of the daemon and to reload it.
	Admin   bool      `json:"admin,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Expires is when the token expires; zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// Opens reports whether the token opens the branch.
func (t *Token) Opens(branch string) bool {
	return len(t.Branches) == 1 && t.Branches[0] == AllBranches || slices.Contains(t.Branches, branch)
}

// Expired reports whether the token has expired at a time.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// New generates a secret and its hash.
func New() (secret string, hash Hash) {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails (crypto/rand)
	secret = Prefix + base62(new(big.Int).SetBytes(bits[:]), random)
	secret += sum(secret)
	return secret, sha256.Sum256([]byte(secret))
}

// wellFormed reports whether a secret has the format of New.
func wellFormed(secret string) bool {
	if len(secret) != length || !strings.HasPrefix(secret, Prefix) {
		return false
	}
	return sum(secret[:length-checksum]) == secret[length-checksum:]
}

func sum(text string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), checksum)
}

// base62 returns a number in base 62, padded to width.
func base62(n *big.Int, width int) string {
	digits := n.Text(62)
	return strings.Repeat("0", width-len(digits)) + digits
}

// name matches the names of principals and groups, branch those of branches (schema.cue, #Name).
var (
	name   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$`)
	branch = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
)

// Local is the name of the local operator, who needs no token. No token may have it.
const Local = "local"

var errNoHash = errors.New("sha256 must be 64 digits in hex")

// check returns an error that says what is wrong with a token and how to fix it.
func (t *Token) check() error {
	switch {
	case !name.MatchString(t.Name):
		return fmt.Errorf("the name %q is not one: letters, digits and . _ @ -, at most 128, the first a letter or digit", t.Name)
	case t.Name == Local:
		return fmt.Errorf("the name %q is the operator's, who needs no token; choose another", Local)
	case len(t.Branches) == 0:
		return fmt.Errorf("token %q opens no branch; name some, or %q for all", t.Name, AllBranches)
	case t.Hash == Hash{}:
		return fmt.Errorf("token %q has no sha256", t.Name)
	}
	for _, b := range t.Branches {
		if b == AllBranches && len(t.Branches) > 1 {
			return fmt.Errorf("token %q opens %q, which is all, and names others; say one of both", t.Name, AllBranches)
		}
		if b != AllBranches && !branch.MatchString(b) {
			return fmt.Errorf("token %q opens %q, which is not a branch name", t.Name, b)
		}
	}
	for _, g := range t.Groups {
		if !name.MatchString(g) {
			return fmt.Errorf("token %q has the group %q, which is not a valid name: letters, digits and . _ @ -, at most 128, the first a letter or digit", t.Name, g)
		}
	}
	return nil
}
