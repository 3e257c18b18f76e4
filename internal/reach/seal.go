//go:build unix

package reach

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// sealListed marks every descriptor that dir lists, above the three streams, to be closed in children.
func sealListed(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the daemon's own descriptors: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
