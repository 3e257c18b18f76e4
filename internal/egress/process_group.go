//go:build unix

package egress

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group that is gone, or on macOS only has zombies left, answers with an error; there is nothing more to do
// then.
func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }
func killGroup(pid int)      { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func exitOf(cmd *exec.Cmd, err error) Exit {
	state := cmd.ProcessState
	if state == nil {
		return Exit{Code: -1, Signal: "unknown (" + err.Error() + ")"}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}
