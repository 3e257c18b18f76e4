package buildcache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Announcement says at which address a daemon serves a catalog. It stands in the catalog's folder of the state
// directory while the daemon listens, so that this user's commands find it. Nobody else can read it, and the
// daemon at the address must prove that it knows Key before a token is sent to it: another program may have
// the address by then.
type Announcement struct {
	// URL is http:// and a loopback address with its port.
	URL string `json:"url"`
	// Key is random, and new with each start.
	Key   []byte    `json:"key"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	// Serves is the catalog's directory or build file, for messages.
	Serves string `json:"serves"`
}

// NewKey returns a key for an Announcement.
func NewKey() []byte { return []byte(rand.Text()) }

// Proof is what a daemon with this key answers a challenge that came to its local address, ip:port. The
// address keeps a program at one address from having the daemon at another one answer.
func Proof(key []byte, challenge, local string) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "catalogd %s\n%s", challenge, local)
	return hex.EncodeToString(h.Sum(nil))
}

const announcedPrefix = "daemon-"

// Announce writes a for the catalogs at roots (absolute paths), in the state directory at path. end removes
// what it wrote. It also removes what ended processes have left there.
func Announce(path string, roots []string, a Announcement) (end func() error, err error) {
	d, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(a)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	var written []string
	end = func() error {
		var failed error
		for _, name := range written {
			failed = errors.Join(failed, d.root.Remove(name))
		}
		return errors.Join(failed, d.close())
	}
	for _, folder := range announcedFolders(roots) {
		name := filepath.Join(folder, fmt.Sprintf("%s%d-%s", announcedPrefix, a.PID, rand.Text()))
		err := d.root.MkdirAll(folder, 0o700)
		if err == nil {
			err = d.sweep(folder)
		}
		if err == nil {
			err = writeAtomic(d.root, name, data)
		}
		if err != nil {
			return nil, errors.Join(err, end())
		}
		written = append(written, name)
	}
	return end, nil
}

// announcedFolders are the folders of the catalogs by their real paths, by which every link to them leads to
// the same announcement.
func announcedFolders(roots []string) (folders []string) {
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		if folder := catalogFolder(root); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// sweep removes the announcements of processes that have ended.
func (d *directory) sweep(folder string) error {
	all, err := d.announced(folder)
	for name, a := range all {
		if errors.Is(syscall.Kill(a.PID, 0), syscall.ESRCH) {
			err = errors.Join(err, ignoreMissing(d.root.Remove(name)))
		}
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// announced reads the announcements in a folder, by file. One that can't be read counts as none.
func (d *directory) announced(folder string) (map[string]Announcement, error) {
	names, err := fs.ReadDir(d.root.FS(), folder)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	all := map[string]Announcement{}
	for _, entry := range names {
		name := path.Join(folder, entry.Name())
		if !strings.HasPrefix(entry.Name(), announcedPrefix) {
			continue
		}
		data, err := readIn(d.root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its daemon has ended meanwhile
		}
		var a Announcement
		if err == nil {
			err = json.Unmarshal(data, &a)
		}
		if err != nil {
			return nil, fmt.Errorf("%s can't be read: %w; remove it", filepath.Join(d.path, name), err)
		}
		all[name] = a
	}
	return all, nil
}

// Announced returns the announcements of the catalog at root (an absolute path), the newest first; none if
// there is no state directory. What it says may be outdated. Its error is an ErrUnsafe, or says what can't be
// read.
func Announced(path, root string) ([]Announcement, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // openDirectory would make it
	}
	d, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	var found []Announcement
	all, err := d.announced(announcedFolders([]string{root})[0])
	for _, a := range all {
		found = append(found, a)
	}
	slices.SortFunc(found, func(a, b Announcement) int { return b.Since.Compare(a.Since) })
	return found, errors.Join(err, d.close())
}
