package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/catalogd/catalogd/internal/filelock"
)

// TestLocks: who may have which lock beside whom, and what ends a wait.
func TestLocks(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b, c := open(), open(), open()
	hold := func(what string, want bool, got bool, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Fatalf("%s: %v, %v", what, got, err)
		}
	}
	try := func(what string, want bool, lock func(*os.File) (bool, error), f *os.File) {
		t.Helper()
		got, err := lock(f)
		hold(what, want, got, err)
	}
	try("the first", true, filelock.TryLock, a)
	try("a second", false, filelock.TryLock, b)
	try("a shared one", false, filelock.TryShared, b)
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	if err := filelock.Lock(ctx, b); !errors.Is(err, stopped) {
		t.Fatalf("a wait that is ended: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- filelock.Lock(t.Context(), b) }()
	if err := filelock.Unlock(a); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatalf("the next in turn: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	try("shared, after a close", true, filelock.TryShared, a)
	try("shared beside shared", true, filelock.TryShared, c)
	try("exclusive beside shared", false, filelock.TryLock, open())
}

// TestClosed: what can't be locked is an error, not a lock.
func TestClosed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	if locked, err := filelock.TryLock(r); locked || err == nil {
		t.Errorf("a closed file: %v, %v", locked, err)
	}
}
