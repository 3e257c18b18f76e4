//go:build linux

package daemon

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/test/internal/harness"
)

// TestShippedBuildIsConfined: what `make build` makes has its compile worker under every layer that this
// kernel knows. A program with cgo would not: Go can't put the threads of a C library under Landlock.
func TestShippedBuildIsConfined(t *testing.T) {
	t.Parallel()
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno != 0 {
		t.Skipf("this kernel lacks Landlock: landlock_create_ruleset: %v", errno)
	}
	program := filepath.Join(t.TempDir(), "catalogd")
	build := exec.Command("make", "build", "BIN="+program)
	// The flags of this run may ask for the race detector, which needs cgo.
	build.Env = append(os.Environ(), "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-race", ""), "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	log := &daemonLog{}
	process := exec.Command(program, "serve", harness.Starter(t), "--addr", "127.0.0.1:0", "--format", "json", "--state", filepath.Join(t.TempDir(), "state"))
	process.Stderr = log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmp.Or(process.Process.Signal(syscall.SIGTERM), process.Wait()); err != nil {
			t.Errorf("the daemon's end: %v", err)
		}
	})
	harness.Await(t, "the daemon to serve", func() bool { return log.url() != "" })
	resp, err := http.Get(log.url() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var status daemon.Status
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.Worker == nil {
		t.Fatalf("/status: %v, worker %v", err, status.Worker)
	}
	got := slices.Sorted(slices.Values(status.Worker.Sandbox))
	if want := []string{"landlock", "rlimit_data", "seccomp"}; !slices.Equal(got, want) {
		t.Errorf("worker.sandbox: got %v, want %v", got, want)
	}
}
