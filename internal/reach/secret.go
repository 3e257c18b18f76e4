package reach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// MaxSecret caps the size of a secret's file, in bytes.
const MaxSecret = 64 << 10

// Value is a literal, or a reference to a secret with what stands before it. It has the fields of registry.Value, so
// that one converts to the other.
type Value struct {
	Literal string
	// Secret is env:NAME or file:PATH; empty for a literal.
	Secret string
	Prefix string
}

// Resolve is the value to use now. A secret's value is read anew at each call and kept nowhere. root is the catalog's
// directory, below which a relative file: path lies.
func (v Value) Resolve(root string) (string, error) {
	if v.Secret == "" {
		return v.Literal, nil
	}
	s, err := Secret(v.Secret, root)
	if err != nil {
		return "", err
	}
	return v.Prefix + s, nil
}

// Masked is the value as it may be shown: a secret stands as ***.
func (v Value) Masked() string {
	if v.Secret == "" {
		return v.Literal
	}
	return v.Prefix + "***"
}

var secretRef = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$`)

// CheckSecret is nil when ref has the form of a reference to a secret. It reads nothing.
func CheckSecret(ref string) error {
	if !secretRef.MatchString(ref) || strings.ContainsRune(ref, 0) {
		// The text may be a secret that was pasted in place of its reference, so it is not repeated.
		return errors.New("a secret is a reference, env:NAME or file:PATH, never the value itself")
	}
	return nil
}

// Secret reads the secret that ref names: env:NAME from the daemon's environment, where an empty variable counts as
// unset; file:PATH from a regular file of at most MaxSecret bytes, one trailing newline taken off. Errors name the
// reference, never the value.
func Secret(ref, root string) (string, error) {
	if err := CheckSecret(ref); err != nil {
		return "", err
	}
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("secret %s: the daemon's environment has no %s", ref, name)
		}
		return value, nil
	}
	path := strings.TrimPrefix(ref, "file:")
	if !filepath.IsAbs(path) {
		if !filepath.IsAbs(root) {
			return "", fmt.Errorf("secret %s: the path is relative, and this catalog has no directory", ref)
		}
		path = filepath.Join(root, path)
	}
	value, err := readSecret(path)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", ref, err)
	}
	return value, nil
}

func readSecret(path string) (string, error) {
	// Looked at before it is opened: opening a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxSecret+1))
	if err != nil {
		return "", err
	}
	if len(b) > MaxSecret {
		return "", fmt.Errorf("larger than %d bytes", MaxSecret)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if value == "" {
		return "", errors.New("the file is empty")
	}
	return value, nil
}
