package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// leastFiles is what a daemon needs at least: its files, its workers' pipes, some clients and upstream servers.
	// wantedFiles has room for its 2,048 connections.
	leastFiles  = 256
	wantedFiles = 4096
	// leastProcesses has room for the workers and some commands, each with threads.
	leastProcesses = 256
	// daemonMemory is what a daemon needs beside the worker that compiles.
	daemonMemory = 256 << 20
)

// Files checks the limit of open files of this process, which serve inherits alike.
func Files() Finding {
	const check, where = "limits", "open files (ulimit -n)"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Finding{check, Warning, where, fmt.Sprintf("the limit is not known: %v", err), "look at it with ulimit -n"}
	}
	const fix = "raise it: ulimit -Hn, LimitNOFILE= of the unit, or the container's --ulimit nofile"
	switch n := limit.Max; { // Go raises the soft limit at the start
	case n < leastFiles:
		return Finding{check, Error, where, fmt.Sprintf("the limit is %d, and a daemon needs %d", n, leastFiles), fix}
	case n < wantedFiles:
		return Finding{check, Warning, where, fmt.Sprintf("the limit is %d: connections are refused before the limit of 2,048", n), fix}
	default:
		return Finding{check, OK, where, "the limit is " + number(n), ""}
	}
}

func number(n uint64) string {
	if n >= 1<<62 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// folders counts the directories of a catalog that are watched; those whose names begin with a dot are not.
func folders(root string) (n uint64) {
	// What can't be read is a problem that catalogd check reports.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case !d.IsDir():
		case path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		default:
			n++
		}
		return nil
	})
	return n
}

// numberIn reads a file of the kernel that has one number, or max for none; ok is false if there is none.
func numberIn(name string) (n uint64, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
