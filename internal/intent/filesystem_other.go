//go:build !linux

package intent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckFileSystem returns an error that names the file system of dir if it is not known to be local: a store of
// intents can't be there, and changes made elsewhere may not be reported.
func CheckFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("can't find out on which file system %s is: %w", dir, err)
	}
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 {
		return notLocal(dir, unix.ByteSliceToString(st.Fstypename[:]))
	}
	return nil
}
