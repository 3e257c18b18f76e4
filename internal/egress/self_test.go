package egress_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/internal/egress"
)

// TestSelfStandsBack: the program that compiles catalogs gives way to calls, with every thread that it has or makes.
func TestSelfStandsBack(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the priority of a thread is read from /proc")
	}
	p, err := egress.Self(egress.Background, "child", "sleep")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
	if err != nil || len(stats) == 0 {
		t.Fatalf("%v %v", stats, err)
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// proc(5): the fields behind the command in brackets, of which nice is the 17th.
		_, rest, _ := strings.Cut(string(stat), ") ")
		if nice := strings.Fields(rest)[16]; nice != "5" {
			t.Errorf("%s: nice %s", name, nice)
		}
	}
}
