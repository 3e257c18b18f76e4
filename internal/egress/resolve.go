package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Resolve finds the file of a declared command: a bare name through the daemon's PATH, whose relative and
// empty entries are ignored; a relative path with a slash below root, the catalog's directory (empty: there
// is none); an absolute path as it is. Symbolic links are followed. The result is the absolute path of a
// regular, executable file without setuid and setgid, whose interpreter exists if it names one. Each other case
// has its own error: an UnusableError where another machine may have what is declared, and else the
// declaration is wrong.
func Resolve(declared, root string) (string, error) {
	switch {
	case declared == "":
		return "", errors.New("the command is empty; name a program")
	case strings.ContainsRune(declared, 0):
		return "", fmt.Errorf("command %q holds a NUL byte", declared)
	case filepath.IsAbs(declared):
		return executable(declared, filepath.Clean(declared))
	case strings.ContainsRune(declared, '/'):
		if !filepath.IsAbs(root) {
			return "", fmt.Errorf("command %q is relative, and this catalog has no directory to look in; write an absolute path or a name that is on PATH", declared)
		}
		return executable(declared, filepath.Join(root, declared))
	}
	return lookPath(declared)
}

// lookPath returns the first usable file of that name in PATH. Where there is none, the reason why a file
// could not be used is reported: it says more than "not found".
func lookPath(name string) (string, error) {
	if name == "." || name == ".." {
		return "", fmt.Errorf("command %q is a directory", name)
	}
	var unusable error
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := executable(name, filepath.Join(dir, name))
		if err == nil {
			return path, nil
		}
		if e := new(UnusableError); unusable == nil && !(errors.As(err, &e) && e.absent) {
			unusable = err
		}
	}
	if unusable != nil {
		return "", unusable
	}
	if strings.ContainsAny(name, " \t") {
		return "", fmt.Errorf("command %q is not on PATH: it is one program's name, not a command line; put arguments into argv", name)
	}
	text := fmt.Sprintf("command %q is not on PATH (relative entries of PATH are ignored); install it or write its path", name)
	return "", &UnusableError{text, true}
}

// Place returns the path that a declared command names, whatever is there, with its links followed as far as
// they lead; empty for a name that is looked up in PATH, and for a relative path without a root.
func Place(declared, root string) string {
	switch {
	case filepath.IsAbs(declared):
		return realPath(declared)
	case strings.ContainsRune(declared, '/') && filepath.IsAbs(root):
		return realPath(filepath.Join(root, declared))
	}
	return ""
}

// UnusableError says why this machine can't run a declared command.
type UnusableError struct {
	text   string
	absent bool // there is no such file
}

func (e *UnusableError) Error() string { return e.text }

// NotHere and NotRunnable say of a server or tool that its command is not on this machine, or that it can't be
// run there; an UnusableError follows.
const (
	NotHere     = "its command is not on this machine: "
	NotRunnable = "its command can't be run on this machine: "
)

// Unusable returns the reason for hiding a server or tool, if err is an UnusableError. It begins with NotHere or
// NotRunnable.
func Unusable(err error) (why string, unusable bool) {
	var e *UnusableError
	switch {
	case !errors.As(err, &e):
		return "", false
	case e.absent:
		return NotHere + e.text, true
	}
	return NotRunnable + e.text, true
}

// executable returns the file at path with its links followed, if it can be run. Its errors are UnusableErrors.
func executable(declared, path string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", &UnusableError{text: fmt.Sprintf("command %q: %s", declared, fmt.Sprintf(format, args...))}
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if to, err := os.Readlink(path); err == nil {
			return bad("%s is a symbolic link to %s, and what it leads to does not exist; correct the link or remove it",
				path, to)
		}
		text := fmt.Sprintf("command %q: %s does not exist; install it or correct the path", declared, path)
		return "", &UnusableError{text, true}
	}
	if err != nil {
		return bad("%v", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return bad("%v", err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return bad("%s is a directory, not a program", real)
	case !mode.IsRegular():
		return bad("%s is not a regular file", real)
	case mode.Perm()&0o111 == 0:
		return bad("%s is not executable; chmod +x it", real)
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return bad("%s is setuid or setgid, and tools don't run as another user", real)
	}
	if err := unix.Access(real, unix.X_OK); err != nil {
		return bad("this user may not run %s, whose mode is %v: %v", real, info.Mode(), err)
	}
	if why := badInterpreter(real); why != "" {
		return bad("%s can't be started: its first line names the interpreter %s", real, why)
	}
	return real, nil
}

// badInterpreter says what is wrong with the interpreter that the first line of a script names as an absolute
// path. It returns nothing for other files, and for those that this user can't read.
func badInterpreter(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256) // as much as Linux reads
	n, _ := io.ReadFull(f, head)
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	rest, script := strings.CutPrefix(string(first), "#!")
	fields := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	if !script || len(fields) == 0 || !filepath.IsAbs(fields[0]) {
		return ""
	}
	switch info, err := os.Stat(fields[0]); {
	case err != nil && strings.HasSuffix(fields[0], "\r"):
		return fmt.Sprintf("%q, with a carriage return; end its lines with \\n alone", fields[0])
	case err != nil:
		return fmt.Sprintf("%q, which does not exist; install it or correct the line", fields[0])
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Sprintf("%q, which is not executable", fields[0])
	}
	return ""
}

// Dir returns the directory of a declared cwd: below root where it is relative, and root itself where it is
// empty, so that relative paths of the declaration refer to root. Without a root (a catalog that is not a
// directory) it is relative to the file system's root.
func Dir(cwd, root string) string {
	switch {
	case filepath.IsAbs(cwd):
		return filepath.Clean(cwd)
	case root == "":
		return filepath.Join("/", cwd)
	}
	return filepath.Join(root, cwd)
}
