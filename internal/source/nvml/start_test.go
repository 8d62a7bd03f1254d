//go:build cgo && linux

package nvml

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestFailuresToStart(t *testing.T) {
	answers := func(answer nvml.Return) func(*machine) {
		return func(m *machine) { m.InitFunc = func() nvml.Return { return answer } }
	}
	tests := []struct {
		name    string
		set     func(*machine)
		failure source.Failure
		says    string
	}{
		{"no library", answers(nvml.ERROR_LIBRARY_NOT_FOUND), source.Unreachable, "--backend=prometheus"},
		{"no driver", answers(nvml.ERROR_DRIVER_NOT_LOADED), source.Unreachable, "modprobe nvidia"},
		{"other driver", answers(nvml.ERROR_LIB_RM_VERSION_MISMATCH), source.Unreachable, "different versions"},
		{"no permission", answers(nvml.ERROR_NO_PERMISSION), source.PermissionDenied, "/dev/nvidia"},
		{"no GPU", func(m *machine) { m.boards = nil }, source.Unreachable, "sees no GPU"},
		{"lost GPU", func(m *machine) { m.boards[0].say("nvmlDeviceGetHandleByIndex", nvml.ERROR_GPU_IS_LOST) }, source.Broken, "no GPU can be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				tt.set(m)
				s := newSource(Options{}, m)
				for _, err := range []error{s.Check(t.Context()), s.Read(t.Context(), new(raw.Batch))} {
					if e := source.AsError(err); err == nil || e.Failure != tt.failure || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("%v (%s)", err, source.AsError(err).Failure)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A start that hangs is reported after openPatience, with the call, and delays Close
// by at most a second; once it has returned, readings begin.
func TestTheStartHangs(t *testing.T) {
	for _, call := range []string{"nvmlInit_v2", "nvmlDeviceGetCount_v2", "GPU 0: nvmlDeviceGetName"} {
		for _, released := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				gate := make(chan struct{})
				release := func() { close(gate) }
				switch call {
				case "nvmlInit_v2":
					m.InitFunc = func() nvml.Return { <-gate; return nvml.SUCCESS }
				case "nvmlDeviceGetCount_v2":
					m.DeviceGetCountFunc = func() (int, nvml.Return) { <-gate; return 1, nvml.SUCCESS }
				default:
					release = m.boards[0].hang("nvmlDeviceGetName")
				}
				r := newReader(t, m, nil)
				begun := time.Now()
				if err := r.Check(t.Context()); err != nil || time.Since(begun) != openPatience {
					t.Errorf("%s: a check says %v after %v", call, err, time.Since(begun))
				}
				for range 3 {
					begun := time.Now()
					err := r.Read(t.Context(), &r.b)
					if e := source.AsError(err); err == nil || e.Failure != source.Timeout || !strings.HasPrefix(e.Cause, call+" has not returned for ") || e.Remedy == "" {
						t.Errorf("%s: %v", call, err)
					}
					if d := time.Since(begun); d > 0 {
						t.Errorf("%s: Read waits another %v", call, d)
					}
					time.Sleep(time.Second)
				}
				if released {
					release()
					synctest.Wait()
					check(t, r.read(), "0", steady, linkTraffic, standIn)
					if err := r.Close(); err != nil || m.shut != 1 {
						t.Errorf("%s: close: %v, %d shutdowns", call, err, m.shut)
					}
					return
				}
				begun = time.Now()
				if err := r.Close(); err == nil || !strings.Contains(err.Error(), call) || time.Since(begun) > time.Second {
					t.Errorf("%s: close: %v after %v", call, err, time.Since(begun))
				}
				release()
			})
		}
	}
}

// The next Read retries a failed start.
func TestTheStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		boards := m.boards
		m.boards = nil
		r := newReader(t, m, nil)
		if err := r.Read(t.Context(), &r.b); err == nil || m.shut != 1 {
			t.Errorf("%v, %d shutdowns", err, m.shut)
		}
		m.boards = boards
		check(t, r.read(), "0", steady, linkTraffic, standIn)
		if err := r.Close(); err != nil || m.shut != 2 {
			t.Errorf("close: %v, %d shutdowns", err, m.shut)
		}
	})
}

// While a board hangs the start waits for it, and the library is neither unloaded nor started again.
func TestABoardHangsAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		starts := 0
		m.InitFunc = func() nvml.Return { starts++; return nvml.SUCCESS }
		release := m.boards[1].hang("nvmlDeviceGetUUID")
		r := newReader(t, m, nil)
		for range 100 {
			err := r.Read(t.Context(), &r.b)
			if e := source.AsError(err); err == nil || e.Failure != source.Timeout || !strings.HasPrefix(e.Cause, "GPU 1: nvmlDeviceGetUUID has not returned for ") {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		release()
		synctest.Wait()
		check(t, r.read(), "0", steady, linkTraffic, standIn)
		if err := r.Close(); err != nil || starts != 1 || m.shut != 1 {
			t.Errorf("close: %v, %d starts, %d shutdowns", err, starts, m.shut)
		}
	})
}

// A board without a UUID has no series, and is reported as left out.
func TestABoardIsLostAtTheStart(t *testing.T) {
	for _, call := range []string{"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(2)
			m.boards[1].say(call, nvml.ERROR_GPU_IS_LOST)
			r := newReader(t, m, nil)
			defer r.Close()
			if all := r.read(); has(all, "1") || !has(all, "0") || !isLost(all, "1") || isLost(all, "0") || r.silent() != "" {
				t.Errorf("%v", all)
			}
			e := r.Streams(nil)[device].Failure
			if e == nil || !strings.HasPrefix(e.Cause, "GPU 1 did not answer at the start (ERROR_GPU_IS_LOST)") || e.Remedy != leftRemedy {
				t.Errorf("after %s the device stream says %v", call, e)
			}
			if n := m.boards[1].asked("nvmlDeviceGetPowerUsage"); n > 0 {
				t.Errorf("after %s it is asked %d times", call, n)
			}
		})
	}
}

// A board that fails at the start in another way is not called lost.
func TestABoardFailsAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].say("nvmlDeviceGetHandleByIndex", nvml.ERROR_UNKNOWN)
		r := newReader(t, m, nil)
		defer r.Close()
		if all := r.read(); has(all, "1") || !isLost(all, "1") || r.silent() != "1" {
			t.Errorf("silent %s: %v", r.silent(), all)
		}
	})
}

// A board that we may not read belongs to somebody else, and is not lost.
func TestABoardIsDeniedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		m.boards[1].say("nvmlDeviceGetHandleByIndex", nvml.ERROR_NO_PERMISSION)
		r := newReader(t, m, nil)
		defer r.Close()
		if all := r.read(); has(all, "1") || isLost(all, "1") || !has(all, "0") {
			t.Errorf("%v", all)
		}
	})
}
