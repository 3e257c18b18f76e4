package reach

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the child into a group of its own, and has the kernel kill it when the daemon dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// sealDescriptors keeps from children what the daemon itself inherited: Go marks only the descriptors that it opens.
func sealDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.ENOSYS || err == unix.EINVAL || err == unix.EPERM { // before Linux 5.11, or filtered by a sandbox
		return sealListed("/proc/self/fd")
	}
	return err
}
