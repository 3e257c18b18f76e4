package worker

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/PID/stat, which Linux shows as a hundredth of a second on every architecture (USER_HZ).
const tick = 10 * time.Millisecond

// processorTime is how much processor time a process has used so far, user and system (proc(5), fields 14 and 15 of
// /proc/PID/stat). ok is false where that can't be read.
func processorTime(pid int) (used time.Duration, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * tick
	}
	return used, true
}
