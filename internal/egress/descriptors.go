//go:build unix

package egress

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// closeListedOnExec marks every descriptor above the three streams that dir lists as close-on-exec.
func closeListedOnExec(dir string) error {
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
