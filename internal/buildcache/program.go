package buildcache

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// programID identifies this very program, so that nothing is used that another one compiled or decided: two
// programs of one version number may differ. It is a digest of the executable's beginning, where Go writes
// the build ID (a digest of the whole program), its size and time, and the build information. Reading the
// whole file would slow every start.
func programID() ([]byte, error) {
	name := "/proc/self/exe" // this program even after its file has been replaced
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
