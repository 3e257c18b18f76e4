package servetest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/internal/token"
)

// Holders are the bearers of tokens of a test, by name.
type Holders struct {
	Path  string
	Store *token.Store
	// Header is what each sends.
	Header map[string][]string
	Secret map[string]string
}

// Issue makes a file of tokens.
func Issue(t testing.TB, log *slog.Logger, tokens ...token.Token) *Holders {
	t.Helper()
	h := &Holders{Path: filepath.Join(t.TempDir(), "tokens"), Header: map[string][]string{"nobody": nil}, Secret: map[string]string{}}
	for _, one := range tokens {
		h.add(t, one)
	}
	var err error
	if h.Store, err = token.Open(h.Path, log); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *Holders) add(t testing.TB, one token.Token) {
	t.Helper()
	secret, hash := token.New()
	one.Hash = hash
	if err := token.Add(h.Path, one); err != nil {
		t.Fatal(err)
	}
	h.Secret[one.Name], h.Header[one.Name] = secret, []string{"Authorization", "Bearer " + secret}
}
