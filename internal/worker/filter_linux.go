//go:build linux && (amd64 || arm64)

package worker

import (
	"os"

	"golang.org/x/sys/unix"
)

// denied are the system calls that fail with EPERM; deniedHere has those of one architecture. The filter
// denies what reaches out and allows the rest, because what a Go runtime needs differs by version.
var denied = []uint32{
	// Files. The child opens none: what it needs was open when it was started.
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_MEMFD_CREATE,
	unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_TRUNCATE, unix.SYS_UTIMENSAT, unix.SYS_READLINKAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_CHDIR, unix.SYS_CHROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_PIVOT_ROOT,
	unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT,
	// Network, and queues that other processes read.
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG,
	unix.SYS_MQ_OPEN, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_SHMGET, unix.SYS_SHMAT,
	// Programs and other processes.
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_SETPGID, unix.SYS_SETSID, unix.SYS_PRLIMIT64, unix.SYS_SETPRIORITY, unix.SYS_SETNS, unix.SYS_UNSHARE,
	// The kernel, and ways around this list.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_SETUP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_PERSONALITY, unix.SYS_SYSLOG,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
}

// Offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16 // the low half, on little endian
)

// filter is the seccomp program for this architecture.
func filter() []unix.SockFilter {
	const (
		allow = unix.SECCOMP_RET_ALLOW
		deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		noSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(test uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	self := uint32(os.Getpid())

	program := []unix.SockFilter{
		load(offsetArch), jump(unix.BPF_JEQ, auditArch, 1, 0), answer(deny), // another architecture's numbers
		load(offsetNumber), jump(unix.BPF_JGE, tooHigh, 0, 1), answer(deny), // another ABI's
		// New threads are allowed, new processes are not. The filter can't see which of them clone3 makes; a
		// runtime that gets ENOSYS uses clone.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), answer(noSys),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), load(offsetArg0), jump(unix.BPF_JSET, unix.CLONE_THREAD, 1, 0), answer(deny), answer(allow),
		// Signals to this process are allowed: the runtime interrupts its own threads with them.
		jump(unix.BPF_JEQ, unix.SYS_TGKILL, 1, 0), jump(unix.BPF_JEQ, unix.SYS_KILL, 0, 4),
		load(offsetArg0), jump(unix.BPF_JEQ, self, 1, 0), answer(deny), answer(allow),
	}
	for _, list := range [][]uint32{denied, deniedHere} {
		for _, number := range list {
			program = append(program, jump(unix.BPF_JEQ, number, 0, 1), answer(deny))
		}
	}
	return append(program, answer(allow))
}
