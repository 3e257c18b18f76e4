//go:build unix && !linux

package egress

import "syscall"

// processAttributes puts the child into a group of its own.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// closeInheritedOnExec keeps descriptors that the daemon inherited from its children: Go marks only those
// that it opens.
func closeInheritedOnExec() error { return closeListedOnExec("/dev/fd") }
