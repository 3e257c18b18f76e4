package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/buildcache"
	"github.com/catalogd/catalogd/internal/intent"
)

const (
	// leastSpace is what a state directory needs for its next builds and intents; below wantedSpace it is a
	// warning.
	leastSpace  = 64 << 20
	wantedSpace = 512 << 20
)

// State checks the state directory: that it can be made or used, that it is this user's alone, the free space,
// and that the store of intents may be on its file system. It is not created.
func State(dir string) []Finding {
	const check = "state"
	info, err := os.Stat(dir)
	at := dir
	var found []Finding
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if at, err = existing(dir); err == nil {
			err = unix.Access(at, unix.W_OK|unix.X_OK)
		}
		if err != nil {
			return []Finding{{check, Error, dir, fmt.Sprintf("it does not exist, and can't be created in %s: %v", at, err),
				"create it with mode 0700 for this user, or name another directory with --state"}}
		}
		found = append(found, Finding{check, OK, dir, "it does not exist yet; serve creates it", ""})
	case err != nil:
		return []Finding{{check, Error, dir, fmt.Sprintf("it can't be looked at: %v", reason(err)), "name a directory with --state"}}
	case !info.IsDir():
		return []Finding{{check, Error, dir, "it is not a directory", "remove the file, or name a directory with --state"}}
	default:
		if err := buildcache.CheckPrivate(dir, info); err != nil {
			return []Finding{{check, Error, dir, err.Error(), "chown it to this user and chmod 0700 it, or name another with --state"}}
		}
		if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
			return []Finding{{check, Error, dir, fmt.Sprintf("this user can't write it: %v", err),
				"chmod 0700 it, mount its file system writable, or name another with --state"}}
		}
		found = append(found, Finding{check, OK, dir, "it is writable, and closed to other users", ""})
	}
	found = append(found, space(dir, at))
	if err := intent.CheckFileSystem(at); err != nil {
		found = append(found, Finding{check, Error, dir, err.Error(),
			"name a directory on a local disk with --state: calls with a side effect need one"})
	}
	return found
}

// existing returns the nearest directory above dir that exists.
func existing(dir string) (string, error) {
	for {
		up := filepath.Dir(dir)
		info, err := os.Stat(up)
		switch {
		case err == nil && !info.IsDir():
			return up, syscall.ENOTDIR
		case err == nil:
			return up, nil
		case !errors.Is(err, fs.ErrNotExist) || up == dir:
			return up, reason(err)
		}
		dir = up
	}
}

// space checks the free space of the file system of at, which is dir or above it.
func space(dir, at string) Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return Finding{"state", Warning, dir, fmt.Sprintf("the free space is not known: %v", err), "look at it with df"}
	}
	return spaceFinding(dir, uint64(st.Bavail)*uint64(st.Bsize), st.Files > 0 && st.Ffree == 0)
}

func spaceFinding(dir string, free uint64, noInodes bool) Finding {
	const fix = "free some, or name a directory on another disk with --state"
	switch {
	case noInodes:
		return Finding{"state", Error, dir, "its file system has no inode left", fix}
	case free < leastSpace:
		return Finding{"state", Error, dir, fmt.Sprintf("%s are free, and intents and builds need %s", bytesText(free), bytesText(leastSpace)), fix}
	case free < wantedSpace:
		return Finding{"state", Warning, dir, fmt.Sprintf("only %s are free", bytesText(free)), fix}
	}
	return Finding{"state", OK, dir, fmt.Sprintf("%s are free", bytesText(free)), ""}
}

// Watched checks that changes below the root of a catalog are reported by its file system.
func Watched(root string) []Finding {
	if err := intent.CheckFileSystem(root); err != nil {
		return []Finding{{"watch", Warning, root, "its file system may report no changes, as of other machines: they are found by --poll, every 5 s",
			"serve a copy on a local disk, choose --poll, or send SIGHUP after a change"}}
	}
	return nil
}

// reason returns an error without the name of the file.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
