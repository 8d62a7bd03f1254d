package dcgm

import (
	"os/exec"
	"syscall"
)

// attributes makes the child the leader of a process group, and the kernel kill it when the thread that starts it ends:
// with SIGKILL, because a hanging dcgmi may ignore other signals.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalGroup sends sig to a command's process group.
func signalGroup(cmd *exec.Cmd, sig syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, sig) }
