package worker

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc/PID/stat (USER_HZ), a hundredth of a second on every architecture.
const tick = 10 * time.Millisecond

// cpuTime is the processor time that a process has used, user and system (proc(5), fields 14 and 15 of
// /proc/PID/stat). ok is false where it can't be read.
func cpuTime(pid int) (used time.Duration, ok bool) {
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
