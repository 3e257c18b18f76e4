package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/catalogd/catalogd/internal/strictjson"
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
// intended. Errors of decoding may quote the line, so only their kind is reported.
func parseLine(line []byte) (*Token, error) {
	if len(line) > MaxLine {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxLine)
	}
	if err := checkJSON(line); err != nil {
		return nil, err
	}
	var t Token
	err := json.Unmarshal(line, &t)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return &t, nil
	case errors.As(err, &wrongType):
		return nil, fmt.Errorf("%s has the wrong type", wrongType.Field)
	case errors.Is(err, errNoHash):
		return nil, err
	}
	return nil, errNoToken
}

var errNoToken = errors.New("it is no JSON object of a token; `catalogd token create` writes such lines")

// members are the members that a line may have, in this spelling only.
var members = []string{"name", "sha256", "branches", "groups", "admin", "created", "expires"}

// checkJSON refuses a line that is not strictly one object of these members: encoding/json accepts them in
// other cases, and takes the last of duplicates.
func checkJSON(line []byte) error {
	var bad *strictjson.Error
	switch err := strictjson.Check(line, strictjson.Options{}); {
	case err == nil:
	case strictjson.Is(err, strictjson.Trailing):
		return errors.New("there is text after the token; each token has its own line")
	case errors.As(err, &bad) && bad.Problem == strictjson.Duplicate:
		return fmt.Errorf("%s is given twice", bad.Text)
	default:
		return errNoToken
	}
	var unknown error
	err := strictjson.Members(line, func(name, _, _ []byte) {
		if unknown == nil && !slices.Contains(members, string(name)) {
			unknown = fmt.Errorf("unknown field %q", name)
		}
	})
	if err != nil {
		return errNoToken
	}
	return unknown
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
