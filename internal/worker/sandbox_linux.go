package worker

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes from this process, for good, what evaluating CUE or jq never needs. Each layer is applied where the
// kernel and the container allow it. It returns the layers that were applied:
//
//	seccomp      opens no file, makes no socket, starts no program or process, touches no other process
//	landlock     reaches no path and no port
//	rlimit_data  a single allocation can't exceed the memory limit by more than a quarter
func confine(limit int64) []string {
	applied := []string{}
	if limitData(limit) == nil {
		applied = append(applied, "rlimit_data")
	}
	if landlock() == nil {
		applied = append(applied, "landlock")
	}
	if seccomp() == nil {
		applied = append(applied, "seccomp")
	}
	return applied
}

// limitData limits the data segment to 1.25 times the limit more than the runtime has reserved already.
func limitData(limit int64) error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages [6]uint64
	if _, err := fmt.Sscan(string(statm), &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]); err != nil {
		return err
	}
	most := pages[5]*uint64(os.Getpagesize()) + uint64(limit/4*5)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}

// landlock denies every path and port that the kernel's version of Landlock can deny. It applies to threads,
// and fails in a program with cgo, where Go can't reach all of them.
func landlock() error {
	const withNet, withDevices = 4, 5
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errno
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= withNet {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Handled_access_net)
	}
	if version >= withDevices {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(ruleset))
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// seccomp installs the filter on all threads.
func seccomp() error {
	program := filter()
	if program == nil {
		return unix.ENOSYS
	}
	runtime.LockOSThread() // no_new_privs must be set on the thread that installs the filter
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&f)))
	if errno != 0 {
		return errno
	}
	return nil
}
