package egress

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the child into a group of its own, and has the kernel kill it when the daemon dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// closeInheritedOnExec keeps descriptors that the daemon inherited from its children: Go marks only those
// that it opens.
func closeInheritedOnExec() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.ENOSYS || err == unix.EINVAL || err == unix.EPERM { // before Linux 5.11, or filtered by a sandbox
		return closeListedOnExec("/proc/self/fd")
	}
	return err
}
