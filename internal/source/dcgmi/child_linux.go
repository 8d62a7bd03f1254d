package dcgmi

import (
	"os"
	"syscall"
)

// attributes make the child the leader of a process group, and have the kernel
// kill it when the thread that starts it ends. SIGKILL, because a dcgmi that
// hangs may not listen to less.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signal sends sig to p's process group.
func signal(p *os.Process, sig syscall.Signal) { _ = syscall.Kill(-p.Pid, sig) }

// awaitExit returns when p has ended, and leaves it to be reaped.
func awaitExit(p *os.Process) {
	const pPID = 1 // P_PID of waitid(2)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(p.Pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
