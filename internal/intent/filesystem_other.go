//go:build !linux

package intent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func localFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("can't find out on which file system %s is: %w", dir, err)
	}
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 {
		return notLocal(dir, unix.ByteSliceToString(st.Fstypename[:]))
	}
	return nil
}
