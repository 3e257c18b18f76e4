package token_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/catalogd/catalogd/internal/token"
)

// A daemon begins with a file that is good, and nobody else may write.
func TestThreatTokens(t *testing.T) {
	t.Parallel()
	t.Run("T24/modes of the file", modes)
}

func modes(t *testing.T) {
	t.Parallel()
	_, hash := token.New()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := token.Add(path, token.Token{Name: "a", Hash: hash, Branches: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "warning: others may read", 0o644: "warning: others may read",
		0o620: "others may write", 0o602: "others may write", 0o666: "others may write", 0o777: "others may write",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, warning, err := token.Load(path)
		got := ""
		if err != nil {
			got = err.Error()
		} else if warning != "" {
			got = "warning: " + warning
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%04o: %q", mode, got)
		}
	}
	if _, _, err := token.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := token.Open(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "make one with its first token") {
		t.Errorf("no file: %v", err)
	}
}

// A change counts when it is good; else the last good one goes on, and why is reported once.
func TestReload(t *testing.T) {
	t.Parallel()
	first, firstHash := token.New()
	second, secondHash := token.New()
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(line("a", firstHash, `["x"]`, ""))
	var log bytes.Buffer
	s, err := token.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, changed, wantChanged, one, two, failed bool) {
		t.Helper()
		if changed != wantChanged || (s.Find(first) != nil) != one || (s.Find(second) != nil) != two || (s.Failed() != nil) != failed {
			t.Errorf("%s: changed %v, first %v, second %v, failed %v", when, changed, s.Find(first), s.Find(second), s.Failed())
		}
	}
	expect("open", false, false, true, false, false)
	expect("the same", s.Reload(), false, true, false, false)
	write(line("a", firstHash, `["x"]`, "") + line("b", secondHash, `["x"]`, ""))
	expect("added", s.Reload(), true, true, true, false)
	write("{")
	expect("broken", s.Reload(), false, true, true, true)
	expect("still broken", s.Reload(), false, true, true, true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("gone", s.Reload(), false, true, true, true)
	if n := strings.Count(log.String(), "is refused"); n != 2 {
		t.Errorf("%d lines of two failures: %s", n, &log)
	}
	write(line("b", secondHash, `["x"]`, ""))
	expect("mended", s.Reload(), true, false, true, false)
	write("# nobody\n")
	expect("empty", s.Reload(), true, false, false, false)
	for _, secret := range []string{first, second} {
		if strings.Contains(log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// Run tells of a change of the file, and of a token that expires while nothing changes.
func TestRun(t *testing.T) {
	t.Parallel()
	secret, hash := token.New()
	var path string
	var s *token.Store
	for good := 2 * time.Second; s == nil || s.Find(secret) == nil; good *= 2 { // it may expire before a busy machine has read it
		path = filepath.Join(t.TempDir(), "tokens")
		if err := token.Add(path, token.Token{Name: "a", Hash: hash, Branches: []string{"*"}, Expires: time.Now().Add(good)}); err != nil {
			t.Fatal(err)
		}
		var err error
		if s, err = token.Open(path, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var told atomic.Int32
	ended := make(chan struct{})
	go func() { s.Run(ctx, func() { told.Add(1) }); close(ended) }()
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("the expiry is not told", func() bool { return told.Load() == 1 })
	if s.Find(secret) != nil || s.Len() != 0 {
		t.Error("the token is still good")
	}
	other, hash := token.New()
	if err := token.Add(path, token.Token{Name: "b", Hash: hash, Branches: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	until("the change is not told", func() bool { return told.Load() == 2 })
	if s.Find(other) == nil || s.Len() != 1 {
		t.Error("the new token is not good")
	}
	cancel()
	<-ended
}
