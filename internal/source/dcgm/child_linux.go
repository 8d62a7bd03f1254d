package dcgm

import (
	"os"
	"syscall"
)

// attributes makes the child the leader of a process group, and the kernel kill
// it when the thread that starts it ends: with SIGKILL, because a hanging dcgmi
// may ignore other signals.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signal sends sig to p's process group.
func signal(p *os.Process, sig syscall.Signal) { _ = syscall.Kill(-p.Pid, sig) }

// awaitExit returns when p has ended, and does not reap it.
func awaitExit(p *os.Process) {
	const pPID = 1 // P_PID of waitid(2)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(p.Pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
