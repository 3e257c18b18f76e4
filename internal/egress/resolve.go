package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Resolve finds the file of a declared command: a bare name through the daemon's PATH, whose relative and
// empty entries are ignored; a relative path with a slash below root, the catalog's directory (empty: there
// is none); an absolute path as it is. Symbolic links are followed. The result is the absolute path of a
// regular, executable file without setuid and setgid; each other case has its own error, which is a
// fs.ErrNotExist where there is no such file.
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
		if unusable == nil && !errors.Is(err, fs.ErrNotExist) {
			unusable = err
		}
	}
	if unusable != nil {
		return "", unusable
	}
	if strings.ContainsAny(name, " \t") {
		return "", fmt.Errorf("command %q is not on PATH: it is one program's name, not a command line; put arguments into argv", name)
	}
	return "", notHere(fmt.Sprintf("command %q is not on PATH (relative entries of PATH are ignored); install it or write its path", name))
}

// NotHere says of a server or tool that its command is not on this machine; the error of Resolve follows.
const NotHere = "its command is not on this machine: "

// notHere is the error for a command of which there is no file. It is a fs.ErrNotExist.
type notHere string

func (e notHere) Error() string { return string(e) }

func (notHere) Is(target error) bool { return target == fs.ErrNotExist }

func executable(declared, path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", notHere(fmt.Sprintf("command %q: %s does not exist; install it or correct the path", declared, path))
	}
	if err != nil {
		return "", fmt.Errorf("command %q: %w", declared, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("command %q: %w", declared, err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "", fmt.Errorf("command %q: %s is a directory, not a program", declared, real)
	case !mode.IsRegular():
		return "", fmt.Errorf("command %q: %s is not a regular file", declared, real)
	case mode.Perm()&0o111 == 0:
		return "", fmt.Errorf("command %q: %s is not executable; chmod +x it", declared, real)
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return "", fmt.Errorf("command %q: %s is setuid or setgid, and tools don't run as another user", declared, real)
	}
	return real, nil
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
