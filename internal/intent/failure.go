package intent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnknown is the kind of error for an id that names no intent of the store.
var ErrUnknown = errors.New("no such intent")

// errClosed is what a closed store answers.
var errClosed = errors.New("the store is closed")

var (
	errLost    = errors.New("the file is gone or was replaced")
	errLock    = errors.New("the lock file of this process is gone or was replaced")
	errForeign = errors.New("the file is another program's database")
	errNewer   = errors.New("a newer catalogd made it")
)

// StoreError says that the store could not be read or written. Where it comes from a change, nothing may be
// run on the strength of that change.
type StoreError struct {
	Op   string // what was tried: open, stage, change, ...
	Path string // the file
	Err  error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("store of intents: %s %s: %v; %s", e.Op, e.Path, e.Err, e.remedy())
}

func (e *StoreError) Unwrap() error { return e.Err }

// remedy says what to do about it.
func (e *StoreError) remedy() string {
	var code int
	if err := (*sqlite.Error)(nil); errors.As(e.Err, &err) {
		code = err.Code()
	}
	const backup = "restore the folder from a backup; or, where none of its intents matters any more," +
		" remove it while no catalogd runs"
	switch {
	case errors.Is(e.Err, errClosed):
		return "open it again"
	case errors.Is(e.Err, errLost):
		return "end every catalogd that uses the folder, then " + backup
	case errors.Is(e.Err, errLock):
		return "start this catalogd again"
	case errors.Is(e.Err, errForeign):
		return "name another folder with --intents"
	case errors.Is(e.Err, errNewer):
		return "run that version, or name another folder with --intents"
	case code&0xff == sqlite3.SQLITE_FULL, code == sqlite3.SQLITE_IOERR_SHMSIZE, errors.Is(e.Err, unix.ENOSPC), errors.Is(e.Err, unix.EDQUOT):
		return "free space on its disk"
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB, errors.Is(e.Err, errDamaged):
		return "the file is damaged: " + backup
	case code&0xff == sqlite3.SQLITE_READONLY, code&0xff == sqlite3.SQLITE_PERM,
		code&0xff == sqlite3.SQLITE_CANTOPEN, errors.Is(e.Err, fs.ErrPermission), errors.Is(e.Err, unix.EROFS):
		return "let this user read and write the folder and its files"
	case code&0xff == sqlite3.SQLITE_BUSY, errors.Is(e.Err, os.ErrDeadlineExceeded):
		return "another process holds it; end the one that hangs"
	case code&0xff == sqlite3.SQLITE_IOERR, errors.Is(e.Err, unix.EIO):
		return "check the disk, and the space that is free on it"
	}
	return "check the folder and its disk"
}

// MovedError says that an intent is not in the state from which it was to be changed.
type MovedError struct {
	ID         string
	From, Have State
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("intent %s is %s, no longer %s", e.ID, e.Have, e.From)
}

// OwnedError says that an intent is another living process's to change.
type OwnedError struct{ ID, Owner string }

func (e *OwnedError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("intent %s has no owner: it must be claimed first", e.ID)
	}
	return fmt.Sprintf("intent %s is executed by another process (%s)", e.ID, e.Owner)
}

// ConflictError says that an idempotency key already names an intent with other arguments.
type ConflictError struct {
	Key    string
	Intent string // its id
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the idempotency key %q already names intent %s, which has other arguments;"+
		" use another key, or the same arguments", e.Key, e.Intent)
}

// failed makes a *StoreError of err, unless it says already what is wrong.
func (s *Store) failed(op, name string, err error) error {
	if e := (*StoreError)(nil); errors.As(err, &e) {
		return err
	}
	return &StoreError{Op: op, Path: s.path(name), Err: err}
}

// wrap is failed, nil for nil.
func (s *Store) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return s.failed(op, name, err)
}
