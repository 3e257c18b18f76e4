package egress

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/catalogd/catalogd/decision/trust"
)

// pinnedFile holds the file that a trust entry has pinned open, from the check of its digest until it runs. A
// program is started through the open file, so that what stands at its path meanwhile doesn't matter. A
// script can't be: its interpreter opens the path anew. Both are looked at once more when they have started,
// and ended if the file was written to meanwhile.
type pinnedFile struct {
	file *os.File
	id   identity
}

// openPinned opens the command's file, and is nil where nothing pins it. The file must have the digest of the
// trust entry.
func openPinned(tr trust.Trust, c trust.Command, digests *Digests) (*pinnedFile, error) {
	want := tr.SHA256()
	if want == "" {
		return nil, nil
	}
	refuse := func(err error) error {
		return fmt.Errorf("command %q is pinned by trust entry %q: %w", c.Declared, tr.Name(), err)
	}
	f, err := openProgram(c.Path)
	if err != nil {
		return nil, refuse(err)
	}
	if digests == nil {
		digests = new(Digests)
	}
	sum, id, err := digests.of(f)
	if err == nil && sum != want {
		err = fmt.Errorf("its sha256 is %s there, and %s is now %s; review it, then renew the pin", want, c.Path, sum)
	}
	if err != nil {
		f.Close()
		return nil, refuse(err)
	}
	return &pinnedFile{f, id}, nil
}

// openProgram opens a regular file; a pipe that has taken its place is no reason to wait.
func openProgram(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return f, nil
}

// apply makes cmd start the open file where that can be done: a program, on a system that shows open files as
// paths.
func (p *pinnedFile) apply(cmd *exec.Cmd) {
	magic := make([]byte, 4)
	if _, err := p.file.ReadAt(magic, 0); runtime.GOOS == "linux" && err == nil && string(magic) == "\x7fELF" {
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", p.file.Fd())
	}
}

// release closes the file. The error says that the file at path is not what was checked any more.
func (p *pinnedFile) release(path string) error {
	defer p.file.Close()
	if now, err := identify(p.file); err != nil || now != p.id {
		return fmt.Errorf("%s was changed while it started, so it was ended", path)
	}
	return nil
}
