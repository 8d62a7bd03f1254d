//go:build !linux

package dcgm

import (
	"os/exec"
	"syscall"
)

// startChild fails before it calls either.

func attributes() *syscall.SysProcAttr { return nil }

func signalGroup(*exec.Cmd, syscall.Signal) {}
