package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The pages of the program go, and come back when they are needed.
func TestUnmapProgram(t *testing.T) {
	before := fileBacked(t)
	if err := unmapProgram(); err != nil {
		t.Fatal(err)
	}
	if after := fileBacked(t); after >= before/2 {
		t.Errorf("%d KiB of files are resident, and were %d", after, before)
	}
}

// fileBacked is how much of mapped files is resident, in KiB.
func fileBacked(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	amount, _, _ := strings.Cut(rest, "kB")
	n, err := strconv.Atoi(strings.TrimSpace(amount))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
