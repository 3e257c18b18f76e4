//go:build unix && !linux

package reach

import "syscall"

// processAttributes puts the child into a group of its own.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// sealDescriptors keeps from children what the daemon itself inherited: Go marks only the descriptors that it opens.
func sealDescriptors() error { return sealListed("/dev/fd") }
