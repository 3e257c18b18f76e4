package catalogd

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/catalogd/catalogd/internal/buildcache"
)

// sessionKey returns the key that seals the ids of MCP sessions, so that a session outlives a restart: it is
// derived from the key for request states, else kept in the state directory. Without both it is nil, and
// sessions end with the process.
func (c Config) sessionKey(stateKey []byte, state bool) ([]byte, error) {
	if stateKey != nil {
		h := hmac.New(sha256.New, stateKey)
		h.Write([]byte("catalogd session key 1"))
		return h.Sum(nil), nil
	}
	if !state || c.Once {
		return nil, nil
	}
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	key, err := keptKey(buildcache.SessionKey(c.State, root))
	if err != nil {
		return nil, fmt.Errorf("the key of sessions: %w; remove the file, or keep nothing with --state none", err)
	}
	return key, nil
}

// keptKey returns the 32 bytes in a file of mode 0600, which it makes if there is none. Several processes may
// do that at once: all get the same bytes.
func keptKey(name string) ([]byte, error) {
	key, err := readKey(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	made := make([]byte, sha256.Size)
	rand.Read(made) // never fails (crypto/rand, Go 1.24)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	temporary := name + "." + rand.Text()
	if err := os.WriteFile(temporary, made, 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(name)
}

func readKey(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() != sha256.Size {
		return nil, fmt.Errorf("%s is not a file of mode 0600 with %d bytes", name, sha256.Size)
	}
	return os.ReadFile(name)
}
