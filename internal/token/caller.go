package token

import (
	"slices"

	"github.com/catalogd/catalogd/decision"
)

// Caller is the sender of a request.
type Caller struct {
	Principal decision.Principal
	// Token is the caller's token; nil for the operator.
	Token *Token
}

// Operator returns the local operator, the caller of every request if there are no tokens, and of stdio.
func Operator() Caller { return Caller{Principal: decision.Local()} }

// Bearer returns the caller that a token authenticates.
func Bearer(t *Token) Caller {
	groups := slices.Clone(t.Groups)
	if groups == nil {
		groups = []string{}
	}
	return Caller{decision.Principal{Name: t.Name, Groups: groups, Admin: t.Admin}, t}
}

// MayOpen reports whether the caller may open the branch, and so know that it exists.
func (c Caller) MayOpen(branch string) bool { return c.Token == nil || c.Token.Opens(branch) }

// Key identifies the caller, so that no caller can use what another has open.
func (c Caller) Key() Hash {
	if c.Token == nil {
		return Hash{}
	}
	return c.Token.Hash
}

// Credential returns the token's hash in hex; empty for the operator.
func (c Caller) Credential() string {
	if c.Token == nil {
		return ""
	}
	text, err := c.Token.Hash.MarshalText()
	if err != nil {
		panic("token: a hash always encodes: " + err.Error())
	}
	return string(text)
}

// SameAs reports whether a valid token is that of the same caller, unchanged, and still opens the branch.
func (c Caller) SameAs(now *Token, branch string) bool {
	return now != nil && now.Opens(branch) && now.Name == c.Token.Name && now.Admin == c.Token.Admin && slices.Equal(now.Groups, c.Token.Groups)
}
