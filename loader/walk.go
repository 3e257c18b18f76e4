package loader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/catalogd/catalogd/problem"
)

// found is one file of the catalog that a walk found.
type found struct {
	// name is its path from the root, real its absolute path on disk.
	name, real string
	stamp      stamp
}

// stamp is what a file's stat reveals about its content. Equal stamps can still hide a change within the
// clock's resolution; the digest of the contents decides.
type stamp struct {
	size    int64
	changed time.Time
	inode   uint64
	mode    fs.FileMode
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), changed: info.ModTime(), mode: info.Mode()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = uint64(sys.Ino)
	}
	return s
}

// walk finds the files of a catalog. It follows symlinks whose target is inside the root, as a mounted
// ConfigMap needs (catalog.cue -> ..data/catalog.cue, ..data -> ..2026_10_01).
type walk struct {
	root     string // absolute, symlinks resolved
	limit    int
	seen     int
	files    []found
	dirs     []string // every directory on disk that was read, for Watch
	refused  map[string]bool
	problems problem.List
}

var errTooMany = errors.New("too many files")

// tree walks the whole root. It returns an error if nothing can be read or ctx has ended.
func (w *walk) tree(ctx context.Context, root string) error {
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	if w.root, err = filepath.Abs(resolved); err != nil {
		return err
	}
	info, err := os.Stat(w.root)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", root)
	}
	w.refused = map[string]bool{}
	err = w.dir(ctx, ".", w.root, nil)
	if errors.Is(err, errTooMany) {
		w.problems.Errorf(problem.TooManyFiles, problem.Position{File: "."}, "",
			"the catalog has more than %d files and directories; remove what is not part of it, or raise the limit", w.limit)
		return nil
	}
	return err
}

// dir walks one directory. above holds the real paths of its parent directories, to detect a loop.
func (w *walk) dir(ctx context.Context, name, real string, above []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		if name == "." {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) { // removed meanwhile: the next walk sees that
			w.refuse(name, problem.Unreadable, "the directory can't be read: %v", reason(err))
		}
		return nil
	}
	w.dirs = append(w.dirs, real)
	above = append(slices.Clip(above), real)
	before := len(w.files)
	for _, e := range entries {
		p := path.Join(name, e.Name())
		if err := w.entry(ctx, p, filepath.Join(real, e.Name()), e.Type(), above); err != nil {
			return err
		}
	}
	if len(w.files) > before {
		w.writable(name, real)
	}
	return nil
}

// writable warns of a directory with files of the catalog that everybody can write: a file can be added there, or
// replaced, whatever the modes of those in it.
func (w *walk) writable(name, real string) {
	info, err := os.Stat(real)
	if err == nil && info.Mode().Perm()&0o002 != 0 {
		w.problems.Warnf(problem.WorldWritable, problem.Position{File: printable(name)}, "",
			"every user of this machine can add files to the directory, or replace them (mode %04o); chmod o-w it", info.Mode().Perm())
	}
}

func (w *walk) entry(ctx context.Context, name, real string, typ fs.FileMode, above []string) error {
	if skipped(name, typ.IsDir()) {
		return nil
	}
	if typ&fs.ModeSymlink != 0 {
		return w.link(ctx, name, real, above)
	}
	if typ.IsDir() {
		if err := w.count(); err != nil {
			return err
		}
		if nestedModule(name, real) {
			if name == rootName || name == "policy" {
				w.refuse(name, problem.NoCatalog, nestedRoot, name)
			}
			return nil
		}
		return w.dir(ctx, name, real, above)
	}
	return w.file(name, real)
}

// link follows a symlink. Its target decides whether it matters: a broken link without the name of a catalog
// file is ignored.
func (w *walk) link(ctx context.Context, name, real string, above []string) error {
	target, err := filepath.EvalSymlinks(real)
	if err != nil {
		if wanted(name) {
			w.refuse(name, problem.BadSymlink, "the symlink leads nowhere: %v", reason(err))
		}
		return nil
	}
	info, err := os.Stat(target)
	if err != nil || skipped(name, info.IsDir()) || !info.IsDir() && !wanted(name) {
		return nil
	}
	if !inside(w.root, target) {
		w.refuse(name, problem.BadSymlink, "the symlink leaves the catalog's root; copy what it points at into the catalog")
		return nil
	}
	if !info.IsDir() {
		return w.file(name, target)
	}
	if slices.Contains(above, target) {
		w.refuse(name, problem.BadSymlink, "the symlink points at a directory that contains it, which never ends; remove it")
		return nil
	}
	if err := w.count(); err != nil {
		return err
	}
	return w.dir(ctx, name, target, above)
}

func (w *walk) file(name, real string) error {
	if !wanted(name) {
		return nil
	}
	if err := w.count(); err != nil {
		return err
	}
	if !clean(name) {
		w.refuse(name, problem.NotUTF8, badName)
		return nil
	}
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed meanwhile
	case err != nil:
		w.refuse(name, problem.Unreadable, "the file can't be read: %v", reason(err))
	case !info.Mode().IsRegular():
		w.refuse(name, problem.NotRegular, "this is not a regular file (%s); remove it or give it another name", kind(info.Mode()))
	default:
		if info.Mode().Perm()&0o002 != 0 {
			w.problems.Warnf(problem.WorldWritable, problem.Position{File: name}, "",
				"every user of this machine can change the file (mode %04o); chmod o-w it", info.Mode().Perm())
		}
		w.files = append(w.files, found{name, real, stampOf(info)})
	}
	return nil
}

func (w *walk) count() error {
	w.seen++
	if w.seen > w.limit {
		return errTooMany
	}
	return nil
}

func (w *walk) refuse(name string, code problem.Code, format string, args ...any) {
	w.refused[name] = true
	w.problems.Errorf(code, problem.Position{File: printable(name)}, "", format, args...)
}

const nestedRoot = "the folder has a cue.mod, which makes it another module whose files this catalog does not see; " +
	"remove %s/cue.mod, with what else `catalogd init` wrote there"

// nestedModule reports whether the directory is the root of another CUE module, which is not part of this
// one.
func nestedModule(name, real string) bool {
	if name == "cue.mod" {
		return false
	}
	info, err := os.Stat(filepath.Join(real, "cue.mod"))
	return err == nil && info.IsDir()
}

func inside(root, p string) bool {
	rel, err := filepath.Rel(root, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a directory"
	}
	return "a special file"
}

// reason returns the cause of a file error without the absolute path, which is meaningless to a reader of the
// catalog.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// badName is the message for a file whose name is not clean.
const badName = "the file's name is not UTF-8 or has characters that can't be seen; rename it"

// clean reports whether a name can be printed unescaped: it is UTF-8, without control characters and without
// bidirectional controls.
func clean(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}) < 0
}

// printable escapes the characters of a name that could affect a terminal or a log, and truncates a long
// name.
func printable(name string) string {
	if len(name) > 255 {
		name = strings.ToValidUTF8(name[:255], "") + "..."
	}
	if clean(name) {
		return name
	}
	quoted := strconv.QuoteToASCII(name)
	return quoted[1 : len(quoted)-1]
}
