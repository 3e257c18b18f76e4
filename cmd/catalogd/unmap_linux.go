package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram gives back the pages of the program itself: of the 60 MB of catalogd, a start touches half, and serving
// little of that. The system maps a page again where it is needed, as a rule from its cache.
//
// Only mappings that can't be written and hold what the file holds are given back. One with pages of its own (anonymous
// ones, such as relocated data or a debugger's breakpoints) would lose them, so it stays.
func unmapProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var start, end uint64 // of the mapping whose lines are being read, if it is one of the program's
	for line := range strings.Lines(string(maps)) {
		line = strings.TrimSuffix(line, "\n")
		if amount, ok := strings.CutPrefix(line, "Anonymous:"); ok {
			if end == 0 || strings.TrimSpace(amount) != "0 kB" {
				continue
			}
			if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED); errno != 0 {
				return fmt.Errorf("madvise: %w", errno)
			}
			continue
		}
		// 00400000-01f8f000 r-xp 00000000 fe:00 1234    /usr/bin/catalogd
		if name, _, ok := strings.Cut(line, " "); !ok || strings.HasSuffix(name, ":") {
			continue
		}
		start, end = 0, 0
		fields := strings.SplitN(line, " ", 6)
		if len(fields) < 6 || strings.TrimSpace(fields[5]) != program || (fields[1] != "r--p" && fields[1] != "r-xp") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		if start, err = strconv.ParseUint(from, 16, 64); err != nil {
			return err
		}
		if end, err = strconv.ParseUint(to, 16, 64); err != nil {
			return err
		}
	}
	return nil
}
