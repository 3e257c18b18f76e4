package reach

import (
	"os"
	"os/exec"
	"runtime"
)

// Self starts this very program again, as the process that compiles catalogs: with args behind its own name, no
// environment, the root as its directory, and otherwise as Start does. It takes no Trust, because nothing of a catalog
// decides what runs here.
func Self(args ...string) (*Process, error) {
	path := "/proc/self/exe" // this program even when its file has been replaced since
	if runtime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	p := &Process{grace: DefaultGrace, stderr: &tail{}, done: make(chan struct{})}
	err := p.start(&exec.Cmd{
		Path:        path,
		Args:        append([]string{os.Args[0]}, args...),
		Env:         []string{},
		Dir:         "/",
		SysProcAttr: processAttributes(),
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
