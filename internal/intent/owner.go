package intent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/filelock"
)

// owner is one opening of a store by a process. It is alive while its file in the folder of owners is locked
// (flock(2)). The kernel releases the lock when the process ends for any reason, so process ids don't matter.
// Names are random and never reused, so a dead owner stays dead.
type owner struct {
	name string
	path string
	file *os.File
}

// ownerInfo is the content of an owner's file.
type ownerInfo struct {
	PID    int  `json:"pid"` // information for people only
	Serves bool `json:"serves"`
	// Base is the base of its clock.
	Base int64 `json:"base"`
}

const lockSuffix = ".lock"

// register makes this process an owner, and sets the store's clock.
func (s *Store) register() error {
	dir := s.path(ownersName)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return s.failed("open", ownersName, err)
	}
	others, err := s.owners()
	if err != nil {
		return s.failed("open", ownersName, err)
	}
	s.clock.base.Store(s.cfg.wall().UnixNano() - uptime())
	joined := false
	for _, o := range others {
		if o.live && o.Base != 0 && (!joined || o.Base > s.clock.base.Load()) {
			s.clock.base.Store(o.Base)
			joined = true
		}
	}
	// A process that checks for dead owners may lock a file that was just created, and take its owner for
	// dead. Nothing is owned under that name yet, so another name is tried.
	for range 100 {
		o, err := s.newOwner(dir)
		if err != nil {
			return s.failed("open", ownersName, err)
		}
		if o != nil {
			s.owner = o
			return nil
		}
	}
	return s.failed("open", ownersName, errors.New("can't lock a new file in it"))
}

// newOwner creates and locks the file of a new owner; nil if another process locked it first.
func (s *Store) newOwner(dir string) (_ *owner, err error) {
	name := rand.Text()
	o := &owner{name: name, path: filepath.Join(dir, name+lockSuffix)}
	if o.file, err = os.OpenFile(o.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	drop := func(err error) error {
		if e := os.Remove(o.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		return errors.Join(err, o.file.Close())
	}
	if locked, err := filelock.TryLock(o.file); !locked {
		return nil, drop(err)
	}
	text, err := json.Marshal(ownerInfo{os.Getpid(), s.cfg.Serves, s.clock.base.Load()})
	if err == nil {
		_, err = o.file.Write(append(text, '\n'))
	}
	if err != nil {
		return nil, drop(err)
	}
	if same, err := isAt(o.path, o.file); err != nil || !same {
		return nil, drop(err)
	}
	return o, nil
}

// end removes the owner's file and releases its lock.
func (o *owner) end() error {
	err := os.Remove(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, o.file.Close())
}

// knownOwner is an owner with a file.
type knownOwner struct {
	ownerInfo
	name string
	live bool
}

// owners returns all owners that have a file, live or dead.
func (s *Store) owners() ([]knownOwner, error) {
	files, err := os.ReadDir(s.path(ownersName))
	if err != nil {
		return nil, err
	}
	var all []knownOwner
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), lockSuffix)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		o := knownOwner{name: name}
		if o.live, err = s.alive(name); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(s.ownerPath(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// The file of an owner that is just being created may be empty.
		if json.Unmarshal(text, &o.ownerInfo) != nil {
			o.ownerInfo = ownerInfo{}
		}
		all = append(all, o)
	}
	return all, nil
}

func (s *Store) ownerPath(name string) string {
	return filepath.Join(s.path(ownersName), name+lockSuffix)
}

// alive reports whether the owner is alive. It returns true with an error if that can't be found out, because
// recovering a dead owner's intents can wait, and recovering a live owner's can't be undone.
func (s *Store) alive(name string) (bool, error) {
	if s.owner != nil && name == s.owner.name {
		return true, nil
	}
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return false, nil
	}
	f, err := os.OpenFile(s.ownerPath(name), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer f.Close()
	// A shared lock, so that two processes that check don't take each other for the owner.
	dead, err := filelock.TryShared(f)
	return !dead, err
}

// Alive reports whether the process of an owner still has the store open. If that can't be found out, it logs
// a warning and returns true.
func (s *Store) Alive(owner string) bool {
	live, err := s.alive(owner)
	if err != nil {
		s.cfg.Log.Warn("can't find out whether an owner of intents is alive; assuming that it is", "owner", owner, "err", err)
	}
	return live
}

// Servers reports whether a live owner serves the store (Config.Serves).
func (s *Store) Servers(context.Context) (bool, error) {
	all, err := s.owners()
	if err != nil {
		return false, s.failed("list owners", ownersName, err)
	}
	for _, o := range all {
		if o.live && o.Serves {
			return true, nil
		}
	}
	return false, nil
}

// forget removes the file of a dead owner while holding its lock: an owner that has just created its file and
// not locked it yet is not dead.
func (s *Store) forget(name string) (err error) {
	f, err := os.OpenFile(s.ownerPath(name), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if locked, err := filelock.TryLock(f); !locked {
		return err
	}
	if err := os.Remove(s.ownerPath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func isAt(path string, f *os.File) (bool, error) {
	have, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(have, there), err
}

// lockFile locks a file until unlock is called. It creates the file if it doesn't exist, and waits for the
// lock for at most busyWait.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, busyWait,
		fmt.Errorf("waited %s for its lock: %w", busyWait, os.ErrDeadlineExceeded))
	defer cancel()
	if err := filelock.Lock(waiting, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // which drops the lock, whatever it returns
}

// newID makes the id of an intent.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
