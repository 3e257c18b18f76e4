package state

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// identity names this very program, so that nothing is taken from what another version compiled or decided: two builds of
// one version number may differ. It covers the executable's beginning, where Go writes the build ID (a digest of the whole
// program), its size and time, and what Go knows of the build. Reading the whole file would take longer than a start may.
func identity() ([]byte, error) {
	name := "/proc/self/exe" // this program even when its file has been replaced since
	if runtime.GOOS != "linux" {
		var err error
		if name, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, min(64<<10, info.Size())); err != nil {
		return nil, err
	}
	fmt.Fprintln(h, info.Size(), info.ModTime().UnixNano())
	if built, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(h, built)
	}
	return h.Sum(nil), nil
}
