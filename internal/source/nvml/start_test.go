//go:build cgo && linux

package nvml

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestFailuresToStart(t *testing.T) {
	tests := []struct {
		name    string
		set     func(*machine)
		failure source.Failure
		says    string
	}{
		{"no library", func(m *machine) { m.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND } }, source.Unreachable, "--backend=prometheus"},
		{"no driver", func(m *machine) { m.InitFunc = func() nvml.Return { return nvml.ERROR_DRIVER_NOT_LOADED } }, source.Unreachable, "modprobe nvidia"},
		{"other driver", func(m *machine) { m.InitFunc = func() nvml.Return { return nvml.ERROR_LIB_RM_VERSION_MISMATCH } }, source.Unreachable, "different versions"},
		{"no permission", func(m *machine) { m.InitFunc = func() nvml.Return { return nvml.ERROR_NO_PERMISSION } }, source.PermissionDenied, "/dev/nvidia"},
		{"start hangs", func(m *machine) {
			m.InitFunc = func() nvml.Return { time.Sleep(time.Hour); return nvml.SUCCESS }
		}, source.Timeout, "nvmlInit_v2 has not returned for 20s"},
		{"no GPU", func(m *machine) { m.boards = nil }, source.Unreachable, "sees no GPU"},
		{"lost GPU", func(m *machine) { m.boards[0].say("nvmlDeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST) }, source.Broken, "no GPU can be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				tt.set(m)
				_, err := newSource(Options{}, m)
				if e := source.AsError(err); err == nil || e.Failure != tt.failure || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v (%s)", err, source.AsError(err).Failure)
				}
				time.Sleep(time.Hour) // the start that hangs ends
			})
		})
	}
}

// A board that hangs when the program starts does not keep it from the others.
func TestABoardHangsAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		release := m.boards[0].hang("nvmlDeviceGetUUID")
		r := newReader(t, m, nil)
		if all := r.read(); has(all, "0") || !has(all, "1") {
			t.Errorf("%v", all)
		}
		if n := r.log.count("left out", "gpu=0"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
