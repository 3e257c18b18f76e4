// Package secret is everything that is done with secrets: it resolves references to them, takes their values
// out of texts, and finds those that somebody has written out where a reference belongs.
//
// A declaration never holds a secret. It holds a reference, env:NAME or file:PATH (Value), which is resolved
// at the moment of use, each time anew, and kept nowhere (Read). What a child process or a service answers
// may repeat what it was given, so whoever resolves a Value also masks the answer (MaskerFor). The same
// Masker redacts what a contract or a policy says is secret (NewMasker). Pasted secrets are found by their
// form and by the name that they are written under (FindInText, FindInField, FindInSetting, FindInArgument,
// FindInLine).
//
// No error and no message of this package holds the value of a secret.
package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MaxSize is the size in bytes of the largest file that is read as a secret.
const MaxSize = 64 << 10

// Value is a literal, or a reference to a secret and a prefix such as "Bearer ". It has the fields of
// registry.Value, so that one converts to the other.
type Value struct {
	Literal string
	// Secret is env:NAME or file:PATH; empty for a literal.
	Secret string
	Prefix string
}

// References are the distinct secrets that the values refer to, sorted. A variable that takes the value of
// the daemon's variable of the same name is left out: that is what an entry's env grants.
func References(values map[string]Value) []string {
	var refs []string
	for name, v := range values {
		if v.Secret != "" && v.Secret != "env:"+name {
			refs = append(refs, v.Secret)
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// Resolve returns the value to use now. A secret is read anew at each call. root is the catalog's directory,
// to which a file: path is relative.
func (v Value) Resolve(root string) (string, error) {
	if v.Secret == "" {
		return v.Literal, nil
	}
	s, err := Read(v.Secret, root)
	if err != nil {
		return "", err
	}
	return v.Prefix + s, nil
}

// Masked returns the value as it may be shown: *** in the place of a secret.
func (v Value) Masked() string {
	if v.Secret == "" {
		return v.Literal
	}
	return v.Prefix + mark
}

var referenceForm = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$`)

// CheckReference returns nil when ref has the form of a reference. It reads nothing.
func CheckReference(ref string) error {
	if !referenceForm.MatchString(ref) || strings.ContainsRune(ref, 0) {
		// The text may be a secret that was pasted in place of its reference, so it is not repeated.
		return errors.New("a secret is a reference, env:NAME or file:PATH, never the value itself")
	}
	return nil
}

// Read returns the secret that ref names: env:NAME from the process's environment, where an empty variable
// counts as unset, or file:PATH from a regular file of at most MaxSize bytes, without one trailing newline. A
// relative path is below root.
func Read(ref, root string) (string, error) {
	if err := CheckReference(ref); err != nil {
		return "", err
	}
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("secret %s: the environment in which catalogd was started has no %s", ref, name)
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
	value, err := readFile(path)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", ref, err)
	}
	return value, nil
}

func readFile(path string) (string, error) {
	// Stat before open, because opening a named pipe would wait for a writer.
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
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return "", err
	}
	if len(b) > MaxSize {
		return "", fmt.Errorf("larger than %d bytes", MaxSize)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if value == "" {
		return "", errors.New("the file is empty")
	}
	return value, nil
}
