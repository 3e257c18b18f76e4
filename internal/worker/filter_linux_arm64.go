package worker

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	tooHigh   = 0x40000000
)

// deniedHere are denied system calls that not every architecture has.
var deniedHere = []uint32{unix.SYS_RENAMEAT, unix.SYS_SETRLIMIT, unix.SYS_KEXEC_FILE_LOAD}
