package intent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/intent/attempt"
	"github.com/catalogd/catalogd/registry"
)

// tmpfs mounts a small disk at a new folder, of which the store is a folder.
func tmpfs(t *testing.T, size string) (mount, dir string) {
	t.Helper()
	mount = t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skip("a disk of its own can't be mounted here: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(mount, 0)) })
	return mount, filepath.Join(mount, "intents")
}

// TestFullDisk fills the disk of a store. Changes are refused and leave nothing behind, readings go on, and so do changes
// once there is room.
func TestFullDisk(t *testing.T) {
	mount, dir := tmpfs(t, "1m")
	s, err := Open(t.Context(), Config{Dir: dir, Durability: Power})
	must(t, err)
	defer s.Close()
	first := stage(t, s, anIntent(`{"n":0}`))
	must(t, os.WriteFile(filepath.Join(mount, "other"), make([]byte, 300<<10), 0o600))
	var failed error
	n := 1
	for ; failed == nil && n < 10000; n++ {
		in := anIntent(fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("x", 2000)))
		var made bool
		if _, made, failed = s.Stage(t.Context(), in); failed != nil && made {
			t.Fatal("made, and an error")
		}
	}
	isStoreError(t, failed, dbName)
	says(t, failed, "free space")
	staged := n - 1
	for range 3 { // and again, and nothing of it is there
		_, _, err := s.Stage(t.Context(), anIntent(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 9000))))
		isStoreError(t, err, dbName)
		err = s.Change(t.Context(), first.ID, Staged, Change{Steps: []Step{{State: Refused, Why: strings.Repeat("y", 9000)}}})
		isStoreError(t, err, dbName)
		if got := get(t, s, first.ID); got.State != Staged {
			t.Fatalf("it is %s, and its change failed", got.State)
		}
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts[Staged] != int64(staged) {
		t.Fatalf("counts %v, %v, want %d staged", counts, err, staged)
	}
	checkCounts(t, s)
	must(t, os.Remove(filepath.Join(mount, "other")))
	must(t, s.Change(t.Context(), first.ID, Staged, Change{Steps: steps(Attempted)}))
	stage(t, s, anIntent(`{"after":1}`))
	must(t, s.Close())
	s, err = Open(t.Context(), Config{Dir: dir})
	must(t, err)
	defer s.Close()
	checkIntegrity(t, s)
	checkCounts(t, s)
}

func TestOpenOnAFullDisk(t *testing.T) {
	mount, dir := tmpfs(t, "1m")
	must(t, os.WriteFile(filepath.Join(mount, "other"), make([]byte, 1<<20-3*4096), 0o600))
	err := refused(t, dir)
	var e *StoreError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StoreError", err)
	}
	says(t, err, "free space")
	// Half a store was made. It is made whole once there is room.
	must(t, os.Remove(filepath.Join(mount, "other")))
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	stage(t, s, anIntent(`{}`))
	must(t, s.Close())
}

// TestReadOnlyDisk remounts the disk of a store.
func TestReadOnlyDisk(t *testing.T) {
	mount, dir := tmpfs(t, "4m")
	s, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	stage(t, s, anIntent(`{}`))
	must(t, s.Close())
	must(t, unix.Mount("tmpfs", mount, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	err = refused(t, dir)
	var e *StoreError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StoreError", err)
	}
	says(t, err, "let this user read and write")
	must(t, unix.Mount("tmpfs", mount, "tmpfs", unix.MS_REMOUNT, ""))
	s, err = Open(t.Context(), Config{Dir: dir})
	must(t, err)
	if counts, err := s.Counts(t.Context()); err != nil || counts[Staged] != 1 {
		t.Errorf("counts %v, %v", counts, err)
	}
	must(t, s.Close())
}

// TestReadOnlyFiles takes the right to write from the folder, and from each file. Root has it all the same, so there a
// child without rights does it.
func TestReadOnlyFiles(t *testing.T) {
	for _, name := range []string{"", dbName, ownersName} {
		t.Run("read-only "+name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "intents")
			must(t, open(t, dir).Close())
			must(t, os.Chmod(filepath.Join(dir, name), map[string]os.FileMode{"": 0o500, dbName: 0o400, ownersName: 0o500}[name]))
			defer os.Chmod(dir, 0o700)
			c := start(t, "powerless", dir)
			said := strings.Join(c.rest(), "\n")
			if !strings.Contains(said, "let this user read and write the folder and its files") || !strings.Contains(said, dir) {
				t.Errorf("got %q, want it refused", said)
			}
		})
	}
}

func init() {
	// powerless opens the store without root's right to pass over modes (CAP_DAC_OVERRIDE), on all threads.
	children["powerless"] = func(dir string, _ []string) error {
		if os.Geteuid() == 0 {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			// Capabilities are a thread's: the one that opens keeps its goroutine.
			lockThread()
			if err := unix.Capset(&header, &none[0]); err != nil {
				return err
			}
		}
		s, err := Open(context.Background(), Config{Dir: dir})
		if err != nil {
			return err
		}
		return s.Close()
	}
	// limited works until its files may grow no more (RLIMIT_FSIZE), and says what it was told.
	children["limited"] = func(dir string, _ []string) error {
		signal.Ignore(unix.SIGXFSZ)
		s, err := Open(context.Background(), Config{Dir: dir, Durability: Power})
		if err != nil {
			return err
		}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}); err != nil {
			return err
		}
		return worsen(s)
	}
	// failing works until no sync succeeds any more (a filter of system calls answers EIO).
	children["failing"] = func(dir string, _ []string) error {
		s, err := Open(context.Background(), Config{Dir: dir, Durability: Power})
		if err != nil {
			return err
		}
		for n := range 20 {
			in, _, err := s.Stage(context.Background(), anIntent(fmt.Sprintf(`{"before":%d}`, n)))
			if err != nil {
				return err
			}
			fmt.Println("staged", in.ID)
		}
		if err := failSyncs(); err != nil {
			return err
		}
		return worsen(s)
	}
}

// worsen stages and attempts intents until that fails, and says what it was told. Then it holds what is read to that.
func worsen(s *Store) error {
	ctx := context.Background()
	for n := range 100_000 {
		in := anIntent(fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("x", 1000)))
		in.ID = newID()
		_, _, err := s.Stage(ctx, in)
		if err == nil {
			fmt.Println("staged", in.ID)
			if err = s.Change(ctx, in.ID, Staged, Change{Steps: steps(Released, Attempted)}); err == nil {
				fmt.Println("attempted", in.ID)
				continue
			}
			if got, e := s.Get(ctx, in.ID); e != nil || got.State != Staged {
				return fmt.Errorf("its change failed (%w), and it is read as %s, %w", err, got.State, e)
			}
		}
		if e := (*StoreError)(nil); !errors.As(err, &e) {
			return fmt.Errorf("no StoreError: %w", err)
		}
		if _, e := s.Get(ctx, in.ID); !errors.Is(e, ErrUnknown) {
			fmt.Println("changing", in.ID) // it was staged before, and its change was refused
		} else {
			fmt.Println("unstaged", in.ID)
		}
		fmt.Println("refused", err)
		counts, err := s.Counts(ctx)
		if err != nil {
			return err
		}
		fmt.Println("counts", counts[Staged], counts[Attempted])
		return nil
	}
	return errors.New("nothing ever failed")
}

// TestDiskThatFails: what the child was told is in the store that is opened after it, and what was refused was not done,
// or looks as after a death.
func TestDiskThatFails(t *testing.T) {
	for _, how := range []string{"limited", "failing"} {
		t.Run(how, func(t *testing.T) {
			dir := newDir(t)
			c := start(t, how, dir)
			lines := c.rest()
			if err := c.cmd.Wait(); err != nil {
				t.Fatalf("%v: %q", err, lines[max(0, len(lines)-3):])
			}
			said, refused := map[string]State{}, ""
			var counted string
			notDone := map[string]string{}
			for _, line := range lines {
				word, rest, _ := strings.Cut(line, " ")
				switch word {
				case "refused":
					refused = rest
				case "unstaged", "changing":
					notDone[rest] = word
				case "counts":
					counted = rest
				default:
					said[rest] = State(word)
				}
			}
			t.Log(refused)
			if !strings.Contains(refused, "check the disk") {
				t.Errorf("refused with %q", refused)
			}
			var n [2]int
			for _, state := range said {
				n[map[State]int{Staged: 0, Attempted: 1}[state]]++
			}
			if want := fmt.Sprint(n[0], n[1]); counted != want {
				t.Errorf("it counted %s, and was told %s", counted, want)
			}
			s := open(t, dir)
			for id, what := range notDone { // not even after the process is gone
				in, err := s.Get(t.Context(), id)
				if what == "unstaged" && !errors.Is(err, ErrUnknown) || what == "changing" && in.State != Staged {
					t.Errorf("%s was refused (%s), and it is %s, %v", id, what, in.State, err)
				}
			}
			for id, state := range said {
				in, err := s.Get(t.Context(), id)
				if err != nil {
					t.Fatalf("%s was %s: %v", id, state, err)
				}
				if in.State != state {
					t.Errorf("%s was said to be %s, and is %s", id, state, in.State)
				}
			}
			if _, err := s.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			for id, state := range said {
				if in := get(t, s, id); in.State != Cancelled && in.State != Unknown || state == Attempted && in.State != Unknown {
					t.Errorf("%s was %s, and is %s after its process", id, state, in.State)
				}
			}
			checkCounts(t, s)
			checkIntegrity(t, s)
		})
	}
}

// TestFileSystemsThatAreNotLocal names what is refused.
func TestFileSystemsThatAreNotLocal(t *testing.T) {
	for kind, name := range map[uint32]string{
		0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x517b: "smb", 0x01021997: "9p", 0x65735546: "fuse", 0x00c36400: "ceph",
		0x12345: "type 0x12345",
	} {
		err := localKind("/x", kind)
		says(t, err, "/x", "("+name+")", "--intents")
	}
	for kind, name := range localKinds {
		if err := localKind("/x", kind); err != nil || remoteKinds[kind] != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOutcomeOnAFullDisk: an outcome that the disk has no room for is answered as unknown, and written down once there is
// room again.
func TestOutcomeOnAFullDisk(t *testing.T) {
	mount, dir := tmpfs(t, "1m")
	s, err := Open(t.Context(), Config{Dir: dir, Durability: Power})
	must(t, err)
	e := NewEffector(EffectorConfig{Store: s, Log: slog.New(slog.DiscardHandler)})
	other := filepath.Join(mount, "other")
	answer := strings.Repeat("x", 100_000)
	in := anIntent(`{"n":1}`)
	in.ID = newID()
	got, err := e.Submit(t.Context(), Submission{Intent: in, Wait: time.Minute, Begin: func(context.Context, Intent) Turn {
		return Turn{Timeout: time.Minute, End: func() {}, Execute: func(context.Context, attempt.Attempt) Ran {
			for size := 1 << 20; size > 0; size /= 2 { // until nothing fits any more
				f, err := os.OpenFile(other, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				must(t, err)
				for _, err = f.Write(make([]byte, size)); err == nil; _, err = f.Write(make([]byte, size)) {
				}
				must(t, f.Close())
			}
			return Ran{State: Succeeded, Result: &registry.Result{Content: []json.RawMessage{registry.Text(answer)}}}
		}}
	}})
	if err != nil || got.Err == nil || got.Intent.State != Attempted {
		t.Fatalf("answered %+v, %v", got, err)
	}
	if now := get(t, s, in.ID); now.State != Attempted {
		t.Errorf("on the full disk it is %s", now.State)
	}
	must(t, os.Remove(other))
	running, stop := context.WithCancel(t.Context())
	defer stop()
	go e.Run(running)
	now, err := e.Await(t.Context(), Intent{ID: in.ID}, time.Minute)
	if err != nil || now.State != Succeeded || now.Result == nil {
		t.Errorf("with room again: %+v, %v", now, err)
	}
	e.Close(t.Context())
	must(t, s.Close())
}
