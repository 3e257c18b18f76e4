package worker

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	tooHigh   = 0x40000000 // the numbers of x32
)

// deniedHere are older forms of the denied system calls, which only this architecture has.
var deniedHere = []uint32{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_MKNOD, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_RENAMEAT,
	unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	unix.SYS_READLINK, unix.SYS_INOTIFY_INIT, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_SETRLIMIT, unix.SYS_USELIB, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_CREATE_MODULE, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
}
