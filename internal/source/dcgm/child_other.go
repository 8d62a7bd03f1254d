//go:build !linux

package dcgm

import (
	"os"
	"syscall"
)

// startChild fails before it calls any of these.

func attributes() *syscall.SysProcAttr { return nil }

func signal(p *os.Process, _ syscall.Signal) { _ = p.Kill() }

func awaitExit(*os.Process) {}
