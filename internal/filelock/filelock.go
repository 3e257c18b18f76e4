// Package filelock makes processes take turns at a file, by flock(2). The kernel releases a lock when its file is closed,
// and so when its process ends for any reason. Two opened files of one process exclude each other too.
//
// On a file system without locks, every function returns an error that is errors.ErrUnsupported.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// poll is how often a lock that another has is asked for again: flock(2) itself would wait beyond the end of a context.
const poll = 2 * time.Millisecond

// Lock waits for the exclusive lock of f until ctx ends. The error is then the cause of that.
func Lock(ctx context.Context, f *os.File) error {
	for {
		if locked, err := TryLock(f); locked || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process keeps %s locked: %w", f.Name(), context.Cause(ctx))
		case <-time.After(poll):
		}
	}
}

// TryLock takes the exclusive lock of f, unless another has a lock of it.
func TryLock(f *os.File) (locked bool, err error) { return try(f, unix.LOCK_EX) }

// TryShared takes a shared lock of f, unless another has the exclusive one.
func TryShared(f *os.File) (locked bool, err error) { return try(f, unix.LOCK_SH) }

// Unlock releases the lock of f. Closing f does too.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func try(f *os.File, how int) (bool, error) {
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func flock(f *os.File, how int) error {
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return err
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP):
			return fmt.Errorf("locking %s: %w: %w", f.Name(), errors.ErrUnsupported, err)
		default:
			return fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
}
