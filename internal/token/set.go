package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Set is the content of a token file. It is immutable and safe for concurrent use.
type Set struct {
	// by is looked up by the hash of what a client sends. Timing differences between hashes disclose nothing:
	// whoever could choose a secret by its hash could choose the right one.
	by  map[Hash]*Token
	all []*Token
}

// Parse parses a token file. Errors name the line. Empty lines and lines that begin with # are ignored.
func Parse(data []byte) (*Set, error) {
	s := &Set{by: map[Hash]*Token{}}
	names := map[string]int{}
	for i, line := range bytes.Split(data, []byte("\n")) {
		n := i + 1
		if blank(line) {
			continue
		}
		t, err := parseLine(line)
		if err == nil {
			err = t.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if first, ok := names[t.Name]; ok {
			return nil, fmt.Errorf("line %d: the name %q is taken by line %d; revoke one of them", n, t.Name, first)
		}
		if twin, ok := s.by[t.Hash]; ok {
			return nil, fmt.Errorf("line %d: %q has the secret of %q; revoke one of them and make a new one", n, t.Name, twin.Name)
		}
		if len(s.all) == MaxTokens {
			return nil, fmt.Errorf("line %d: there are more than %d tokens", n, MaxTokens)
		}
		names[t.Name] = n
		s.by[t.Hash] = t
		s.all = append(s.all, t)
	}
	return s, nil
}

func blank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// parseLine parses one token. An unknown member is an error: a misspelt one must not grant more than
// intended. The decoder's own errors may quote the line, so only their kind is reported.
func parseLine(line []byte) (*Token, error) {
	if len(line) > MaxLine {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxLine)
	}
	var t Token
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&t)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
	case errors.As(err, &wrongType):
		return nil, fmt.Errorf("%s has the wrong type", wrongType.Field)
	case errors.Is(err, errNoHash):
		return nil, err
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	default:
		return nil, errors.New("it is no JSON object of a token; `catalogd token create` writes such lines")
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the token; each token has its own line")
	}
	if err := checkMembers(line); err != nil {
		return nil, err
	}
	return &t, nil
}

// members are the members that a line may have, in this spelling only: the decoder also accepts them in other
// cases, and takes the last of duplicates.
var members = []string{"name", "sha256", "branches", "groups", "admin", "created", "expires"}

// checkMembers refuses an object with a duplicate member, or one in another case.
func checkMembers(object []byte) error {
	var seen []string
	d := json.NewDecoder(bytes.NewReader(object))
	depth, key := 0, false
	for {
		word, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if name, ok := word.(string); ok && depth == 1 && key {
			if !slices.Contains(members, name) {
				return fmt.Errorf("unknown field %q", name)
			}
			if slices.Contains(seen, name) {
				return fmt.Errorf("%s is given twice", name)
			}
			seen = append(seen, name)
			key = false
			continue
		}
		switch word {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		key = depth == 1
	}
}

// Find returns the valid token with that secret; nil if there is none.
func (s *Set) Find(secret string, now time.Time) *Token {
	if !wellFormed(secret) {
		return nil
	}
	return s.Get(sha256.Sum256([]byte(secret)), now)
}

// Get returns the valid token with that hash; nil if there is none.
func (s *Set) Get(h Hash, now time.Time) *Token {
	if t := s.by[h]; t != nil && !t.Expired(now) {
		return t
	}
	return nil
}

// All returns the tokens in the order of the file, including expired ones.
func (s *Set) All() []*Token { return slices.Clone(s.all) }

func (s *Set) equal(o *Set) bool {
	return slices.EqualFunc(s.all, o.all, func(a, b *Token) bool {
		return a.Name == b.Name && a.Hash == b.Hash && a.Admin == b.Admin && a.Expires.Equal(b.Expires) &&
			slices.Equal(a.Branches, b.Branches) && slices.Equal(a.Groups, b.Groups)
	})
}
