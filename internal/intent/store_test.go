package intent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// refused is the error of an Open that must fail.
func refused(t *testing.T, dir string) error {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
	if err == nil {
		must(t, s.Close())
		t.Fatal("it was opened, want it refused")
	}
	return err
}

func says(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want it to say %q", err, w)
		}
	}
}

// isStoreError says that it is one, of a file.
func isStoreError(t *testing.T, err error, name string) {
	t.Helper()
	var e *StoreError
	if !errors.As(err, &e) || !strings.HasSuffix(e.Path, name) || e.Op == "" {
		t.Fatalf("got %v, want a StoreError about %s", err, name)
	}
	says(t, err, e.Path, "; ")
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir := filepath.Join(t.TempDir(), "deep", "intents")
	s := open(t, dir)
	stage(t, s, anIntent(`{}`))
	seen := 0
	must(t, filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info, err := d.Info()
		must(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		seen++
		return nil
	}))
	if seen < 8 { // deep, intents, owners, a lock each, the database, -wal, -shm
		t.Errorf("%d files, want 8", seen)
	}
}

func TestModesOfARestoredStoreAreTightened(t *testing.T) {
	dir := newDir(t)
	must(t, open(t, dir).Close())
	must(t, os.Chmod(filepath.Join(dir, dbName), 0o644))
	s := open(t, dir)
	stage(t, s, anIntent(`{}`))
	for _, name := range []string{dbName, dbName + "-wal", dbName + "-shm"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestUnsafeFoldersAreRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o750, 0o705, 0o777, 0o710} {
		dir := newDir(t)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.Chmod(dir, mode))
		err := refused(t, dir)
		if !errors.Is(err, ErrUnsafe) {
			t.Errorf("mode %04o: got %v, want ErrUnsafe", mode, err)
		}
		says(t, err, dir, fmt.Sprintf("%04o", mode), "chmod 0700")
	}
	real, link := newDir(t), newDir(t)
	must(t, os.Mkdir(real, 0o700))
	must(t, os.Symlink(real, link))
	if err := refused(t, link); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a symbolic link: got %v, want ErrUnsafe", err)
	}
	file := newDir(t)
	must(t, os.WriteFile(file, nil, 0o600))
	if err := refused(t, file); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a file: got %v, want ErrUnsafe", err)
	}
	for name, make := range map[string]func(path, other string) error{
		"a symbolic link": func(path, other string) error { return os.Symlink(other, path) },
		"a hard link":     func(path, other string) error { return os.Link(other, path) },
		"a folder":        func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"a pipe":          func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
	} {
		elsewhere, dir := newDir(t), newDir(t)
		must(t, open(t, elsewhere).Close())
		must(t, os.Mkdir(dir, 0o700))
		must(t, make(filepath.Join(dir, dbName), filepath.Join(elsewhere, dbName)))
		t.Log(name)
		isStoreError(t, refused(t, dir), dbName)
	}
	if os.Geteuid() == 0 {
		dir := newDir(t)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.Chown(dir, 65534, 65534))
		err := refused(t, dir)
		if !errors.Is(err, ErrUnsafe) {
			t.Errorf("another user's: got %v, want ErrUnsafe", err)
		}
		says(t, err, "65534")
	}
}

func TestVersionsAndStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		spoil string
		want  string
	}{
		"a newer version's":   {fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1), "newer"},
		"another program's":   {"PRAGMA application_id = 17", "another program's"},
		"a version before 1":  {"PRAGMA user_version = 0", "another program's"},
		"a rollback journal":  {"PRAGMA journal_mode = DELETE", "journal mode"},
		"a table that's gone": {"DROP TABLE totals", "totals"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			s, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
			must(t, err)
			stage(t, s, anIntent(`{}`))
			// PRAGMA journal_mode needs the database for itself.
			must(t, s.stmts.close())
			s.stmts.all = nil
			must(t, s.read.Close())
			_, err = s.conn.ExecContext(t.Context(), c.spoil)
			must(t, err)
			must(t, s.Close())
			was, err := os.ReadFile(filepath.Join(dir, dbName))
			must(t, err)
			err = refused(t, dir)
			isStoreError(t, err, dbName)
			says(t, err, c.want)
			if is, err := os.ReadFile(filepath.Join(dir, dbName)); err != nil || !bytes.Equal(was, is) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, file string){
		"gone":     func(t *testing.T, file string) { must(t, os.Remove(file)) },
		"emptied":  func(t *testing.T, file string) { must(t, os.Truncate(file, 0)) },
		"cut":      func(t *testing.T, file string) { must(t, os.Truncate(file, 4096+100)) },
		"its head": func(t *testing.T, file string) { scribble(t, file, 0, 100) },
		"all of it but the head": func(t *testing.T, file string) {
			info, err := os.Stat(file)
			must(t, err)
			scribble(t, file, 100, int(info.Size())-100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			s := open(t, dir)
			for n := range 100 {
				stage(t, s, anIntent(fmt.Sprintf(`{"n":%d}`, n)))
			}
			must(t, s.Close())
			spoil(t, filepath.Join(dir, dbName))
			err := refused(t, dir)
			isStoreError(t, err, dbName)
			says(t, err, "backup")
			if name == "gone" {
				if _, err := os.Lstat(filepath.Join(dir, dbName)); err == nil {
					t.Error("a new one was made in its place")
				}
			}
		})
	}
}

func scribble(t *testing.T, file string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5, 0x5a, 0x17}, n/3+1)[:n], at)
	must(t, errors.Join(err, f.Close()))
}

// TestDamagedPagesAreFound: pages behind those that Open reads. What can't be read is an error, of that call.
func TestDamagedPagesAreFound(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	var ids []string
	for n := range 3000 {
		ids = append(ids, stage(t, s, anIntent(fmt.Sprintf(`{"n":%d}`, n))).ID)
	}
	must(t, s.Close())
	file := filepath.Join(dir, dbName)
	info, err := os.Stat(file)
	must(t, err)
	for page := info.Size() / 4096 / 2; page < info.Size()/4096-20; page++ {
		scribble(t, file, page*4096, 4096)
	}
	s, err = Open(t.Context(), Config{Dir: dir, Durability: Process})
	if err != nil {
		isStoreError(t, err, dbName)
		return
	}
	defer s.Close()
	bad := 0
	for _, id := range ids {
		in, err := s.Get(t.Context(), id)
		if err == nil {
			if in.ID != id || string(in.Arguments) != strings.TrimPrefix(in.Digest, "sha256:") {
				t.Fatalf("damaged intent read as %+v", in)
			}
			continue
		}
		bad++
		isStoreError(t, err, dbName)
		err = s.Change(t.Context(), id, Staged, Change{Steps: steps(Attempted)})
		isStoreError(t, err, dbName)
	}
	if bad == 0 {
		t.Error("no page of the damaged was read")
	}
}

// TestTruncatedWAL cuts a write-ahead log at many places. What is left is a store as it was at some moment: whole, and with
// every intent that was committed before the last one that is there.
func TestTruncatedWAL(t *testing.T) {
	dir := newDir(t)
	s := open(t, dir)
	for n := range 20 {
		in := stage(t, s, anIntent(fmt.Sprintf(`{"n":%d}`, n)))
		must(t, s.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Attempted)}))
	}
	files := map[string][]byte{}
	for _, name := range []string{dbName, dbName + "-wal"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		files[name] = text
	}
	whole := len(files[dbName+"-wal"])
	last := 0
	for cut := 0; cut <= whole; cut += 1 + whole/25 {
		copied := newDir(t)
		must(t, os.Mkdir(copied, 0o700))
		must(t, os.WriteFile(filepath.Join(copied, dbName), files[dbName], 0o600))
		must(t, os.WriteFile(filepath.Join(copied, dbName+"-wal"), files[dbName+"-wal"][:cut], 0o600))
		must(t, os.Mkdir(filepath.Join(copied, ownersName), 0o700))
		s, err := Open(t.Context(), Config{Dir: copied, Durability: Process})
		if err != nil {
			isStoreError(t, err, dbName) // the schema itself was cut off
			continue
		}
		checkIntegrity(t, s)
		checkCounts(t, s)
		list, err := s.List(t.Context(), Filter{})
		must(t, err)
		for i, in := range list {
			if in.Seq != int64(len(list)-i) || i > 0 && in.State != Attempted {
				t.Errorf("cut at %d of %d: intent %d is %s", cut, whole, in.Seq, in.State)
			}
		}
		if len(list) < last {
			t.Errorf("cut at %d of %d: %d intents, and %d with less", cut, whole, len(list), last)
		}
		last = len(list)
		must(t, s.Close())
	}
	if last < 15 {
		t.Errorf("%d intents at last, want about 20", last)
	}
}

// TestFileLostWhileOpen removes or replaces a file of an open store. The next change is an error, as are all after it.
func TestFileLostWhileOpen(t *testing.T) {
	for _, name := range []string{dbName, dbName + "-wal", dbName + "-shm", ownersName} {
		for _, how := range []string{"removed", "replaced"} {
			t.Run(name+" "+how, func(t *testing.T) {
				dir := newDir(t)
				s, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
				must(t, err)
				in := stage(t, s, anIntent(`{}`))
				file := filepath.Join(dir, name)
				if name == ownersName {
					file = s.owner.path
				}
				must(t, os.Remove(file))
				if how == "replaced" {
					must(t, os.WriteFile(file, nil, 0o600))
				}
				for range 2 {
					err = s.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Attempted)})
					isStoreError(t, err, filepath.Base(file))
					if _, made, err := s.Stage(t.Context(), anIntent(`{"n":2}`)); err == nil || made {
						t.Fatal("staged into a file that is gone")
					}
					_, err = s.Get(t.Context(), in.ID)
					isStoreError(t, err, filepath.Base(file))
					_, err = s.List(t.Context(), Filter{})
					isStoreError(t, err, filepath.Base(file))
					_, err = s.Counts(t.Context())
					isStoreError(t, err, filepath.Base(file))
				}
				must(t, s.Close())
			})
		}
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	s := open(t, newDir(t))
	in := stage(t, s, anIntent(`{}`))
	must(t, s.Close())
	must(t, s.Close())
	_, _, err := s.Stage(t.Context(), anIntent(`{}`))
	isStoreError(t, err, dbName)
	isStoreError(t, s.Change(t.Context(), in.ID, Staged, Change{Steps: steps(Attempted)}), dbName)
	_, err = s.Get(t.Context(), in.ID)
	isStoreError(t, err, dbName)
	_, err = s.List(t.Context(), Filter{})
	isStoreError(t, err, dbName)
	_, err = s.Recover(t.Context())
	isStoreError(t, err, dbName)
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{}, {Dir: newDir(t), Durability: "disk"}, {Dir: newDir(t), MaxAge: -1}, {Dir: newDir(t), MaxCount: -1},
		{Dir: newDir(t), KeyRetention: -1}, {Dir: newDir(t), MaxBytes: -1}, {Dir: newDir(t), MaxResult: -1}} {
		if s, err := Open(t.Context(), cfg); err == nil {
			must(t, s.Close())
			t.Errorf("%+v: want it refused", cfg)
		}
	}
}

// TestNamesThatNeedQuoting: the folder's name is part of a URI for SQLite.
func TestNamesThatNeedQuoting(t *testing.T) {
	for _, name := range []string{"a b", "a?mode=memory", "a%20b", "a#b", "ü&_pragma=x", "a;b'c\"d"} {
		dir := filepath.Join(t.TempDir(), name)
		s := open(t, dir)
		stage(t, s, anIntent(`{}`))
		for _, file := range []string{dbName, dbName + "-wal"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// TestDurability: what SQLite was told is what was asked for.
func TestDurability(t *testing.T) {
	for d, want := range map[Durability]int{"": 2, Power: 2, Process: 1} {
		s := open(t, newDir(t), func(c *Config) { c.Durability = d })
		var got int
		must(t, s.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got))
		if got != want {
			t.Errorf("%q: synchronous=%d, want %d", d, got, want)
		}
	}
}

// TestOpenWaitsForOpen: a store that somebody is just making is waited for, and not for ever.
func TestOpenWaitsForOpen(t *testing.T) {
	dir := newDir(t)
	must(t, os.Mkdir(dir, 0o700))
	unlock, err := lockFile(t.Context(), filepath.Join(dir, openName))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Config{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want context.DeadlineExceeded", err)
	}
	unlock()
	open(t, dir)
}

// TestFailedBatchLeavesNothing commits three operations together, of which one fails after it has written. All are notified,
// nothing of them is there, and the store goes on.
func TestFailedBatchLeavesNothing(t *testing.T) {
	s := open(t, newDir(t))
	before := stage(t, s, anIntent(`{"before":1}`))
	hold, held := make(chan struct{}), make(chan struct{})
	go s.do(context.Background(), "hold", func(*batch) error { close(held); <-hold; return nil })
	<-held
	told := make(chan error, 3)
	queued := func(n int) {
		for {
			s.writer.mu.Lock()
			waiting := len(s.writer.waiting)
			s.writer.mu.Unlock()
			if waiting == n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	in := anIntent(`{"together":1}`)
	in.ID = newID()
	in.Principal = "new" // a scope of its own, which is not there either
	go func() { _, _, err := s.Stage(context.Background(), in); told <- err }()
	queued(1)
	go func() {
		told <- s.do(context.Background(), "fail", func(b *batch) error {
			b.exec(&s.stmts.remove, before.Seq, Staged.number())
			b.err = errors.Join(b.err, errDamaged)
			return nil
		})
	}()
	queued(2)
	go func() {
		told <- s.Change(context.Background(), before.ID, Staged, Change{Steps: steps(Attempted)})
	}()
	queued(3)
	close(hold)
	for range 3 {
		isStoreError(t, <-told, dbName)
	}
	if got := get(t, s, before.ID); got.State != Staged {
		t.Errorf("it is %s", got.State)
	}
	if _, err := s.Get(t.Context(), in.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("what was refused is there: %v", err)
	}
	checkCounts(t, s)
	stage(t, s, in)
	must(t, s.Change(t.Context(), before.ID, Staged, Change{Steps: steps(Attempted)}))
	if got := get(t, s, in.ID); got.Principal != "new" {
		t.Errorf("its principal is %q", got.Principal)
	}
	checkCounts(t, s)
}

// TestBusyStore: another process holds the database for writing. Changes wait; readings don't.
func TestBusyStore(t *testing.T) {
	dir := newDir(t)
	s, other := open(t, dir), open(t, dir)
	in := stage(t, s, anIntent(`{}`))
	hold, held := make(chan struct{}), make(chan struct{})
	go other.do(context.Background(), "hold", func(*batch) error { close(held); <-hold; return nil })
	<-held
	done := make(chan error, 1)
	go func() {
		done <- s.Change(context.Background(), in.ID, Staged, Change{Steps: steps(Attempted)})
	}()
	time.Sleep(100 * time.Millisecond)
	if got := get(t, s, in.ID); got.State != Staged {
		t.Errorf("it is %s already", got.State)
	}
	select {
	case err := <-done:
		t.Fatalf("it was changed, %v, while another process writes", err)
	default:
	}
	close(hold)
	must(t, <-done)
}

// TestUpgrade checks that a store of version 1 is opened with what is in it, and that its intents are of no
// conversation branch.
func TestUpgrade(t *testing.T) {
	dir := newDir(t)
	s, err := Open(t.Context(), Config{Dir: dir, Durability: Process})
	must(t, err)
	old := stage(t, s, anIntent(`{}`))
	must(t, s.stmts.close())
	s.stmts.all = nil
	must(t, s.read.Close())
	_, err = s.conn.ExecContext(t.Context(), "ALTER TABLE intents DROP COLUMN session; PRAGMA user_version = 1")
	must(t, err)
	must(t, s.Close())
	s, err = Open(t.Context(), Config{Dir: dir, Durability: Process})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	got, err := s.Get(t.Context(), old.ID)
	must(t, err)
	if got.Session != "" || got.Branch != old.Branch {
		t.Errorf("got branch %q and session %q, want %q and none", got.Branch, got.Session, old.Branch)
	}
	in := anIntent(`{"n":1}`)
	in.Session = "session-of-a-test"
	if got, err = s.Get(t.Context(), stage(t, s, in).ID); err != nil || got.Address() != in.Session {
		t.Errorf("got address %q (%v), want %q", got.Address(), err, in.Session)
	}
	of, none := in.Session, ""
	for session, want := range map[*string]int{nil: 2, &of: 1, &none: 1} {
		if list, err := s.List(t.Context(), Filter{Session: session}); err != nil || len(list) != want {
			t.Errorf("got %d intents (%v), want %d", len(list), err, want)
		}
	}
}
