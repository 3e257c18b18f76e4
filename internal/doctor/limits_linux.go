package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits checks what the kernel and the container let a daemon use: open files, processes, memory, and watches of
// the folders of the catalog at root. compileMemory is the limit of the worker that compiles, in bytes.
func Limits(root string, compileMemory int64) []Finding {
	found := []Finding{Files()}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err == nil && limit.Cur < leastProcesses {
		found = append(found, Finding{"limits", Warning, "processes (ulimit -u)",
			fmt.Sprintf("the limit is %d, of all processes and threads of this user", limit.Cur), "raise it, or LimitNPROC= of the unit"})
	}
	need := uint64(compileMemory)/4*5 + daemonMemory
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err == nil && limit.Cur < 4*need {
		found = append(found, Finding{"limits", Warning, "address space (ulimit -v)",
			fmt.Sprintf("the limit is %s; Go programs reserve more than they use", bytesText(limit.Cur)), "remove it, and limit memory by a cgroup"})
	}
	found = append(found, cgroup("/proc/self/cgroup", "/sys/fs/cgroup", need)...)
	return append(found, watches("/proc/sys/fs/inotify", folders(root)))
}

// cgroup checks the limits of the cgroups (version 2) that this process is in.
func cgroup(self, mount string, need uint64) (found []Finding) {
	text, err := os.ReadFile(self)
	if err != nil {
		return nil
	}
	memory, pids := uint64(1<<62), uint64(1<<62)
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for dir := path; ok; dir = filepath.Dir(dir) {
			if n, set := numberIn(filepath.Join(mount, dir, "memory.max")); set {
				memory = min(memory, n)
			}
			if n, set := numberIn(filepath.Join(mount, dir, "pids.max")); set {
				pids = min(pids, n)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	switch {
	case memory < daemonMemory:
		found = append(found, Finding{"limits", Error, "memory (cgroup)", fmt.Sprintf("the limit is %s, and a daemon needs %s",
			bytesText(memory), bytesText(daemonMemory)), "raise MemoryMax= of the unit, or the container's memory limit"})
	case memory < need:
		found = append(found, Finding{"limits", Warning, "memory (cgroup)",
			fmt.Sprintf("the limit is %s: a large catalog can have the kernel end the daemon before the worker's own limit does (%s in all)", bytesText(memory), bytesText(need)),
			"raise MemoryMax= of the unit or the container's memory limit, or lower --compile-memory"})
	default:
		found = append(found, Finding{"limits", OK, "memory (cgroup)", "the limit is " + memoryText(memory), ""})
	}
	if pids < leastProcesses {
		found = append(found, Finding{"limits", Warning, "processes (cgroup)",
			fmt.Sprintf("the limit is %d, of processes and threads", pids), "raise TasksMax= of the unit, or the container's pids limit"})
	}
	return found
}

func memoryText(n uint64) string {
	if n >= 1<<62 {
		return "unlimited"
	}
	return bytesText(n)
}

// watches checks that each of so many folders can be watched. It opens an inotify instance and closes it.
func watches(settings string, folders uint64) Finding {
	const check, where = "watch", "inotify"
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		fix := "raise fs.inotify.max_user_instances with sysctl; until then changes are found every second by --poll"
		if !errors.Is(err, unix.EMFILE) {
			fix = "until then changes are found every second by --poll"
		}
		return Finding{check, Warning, where, fmt.Sprintf("no instance can be opened: %v", err), fix}
	}
	if err := unix.Close(fd); err != nil {
		return Finding{check, Warning, where, err.Error(), "try again"}
	}
	if most, ok := numberIn(filepath.Join(settings, "max_user_watches")); ok && most < folders {
		return Finding{check, Warning, where, fmt.Sprintf("%d folders are to be watched, and a user may watch %d", folders, most),
			"raise fs.inotify.max_user_watches with sysctl; until then changes are found every second by --poll"}
	}
	return Finding{check, OK, where, fmt.Sprintf("%d folders can be watched", folders), ""}
}
