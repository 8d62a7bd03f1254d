//go:build cgo && linux

package nvml

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestXIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		r := newReader(t, m, nil)
		defer r.Close()
		if all := r.read(); all["0 DCGM_FI_DEV_XID_ERRORS"] != "" {
			t.Error("an XID before the first")
		}
		for _, e := range []nvml.EventData{
			{Device: m.boards[1], EventType: nvml.EventTypeXidCriticalError, EventData: 31},
			{Device: m.boards[1], EventType: nvml.EventTypeXidCriticalError, EventData: 94},
			{Device: m.boards[0], EventType: nvml.EventTypePState, EventData: 5},
		} {
			m.events <- e
		}
		synctest.Wait()
		for range 3 {
			all := r.read()
			if all["1 DCGM_FI_DEV_XID_ERRORS"] != "94" || all["0 DCGM_FI_DEV_XID_ERRORS"] != "" {
				t.Errorf("XIDs %q and %q", all["1 DCGM_FI_DEV_XID_ERRORS"], all["0 DCGM_FI_DEV_XID_ERRORS"])
			}
		}
	})
}

// Where NVML tells of no XIDs, the log says so once, and the device stream, which goes
// on.
func TestNoXIDs(t *testing.T) {
	for _, test := range []struct {
		name, cause string
		spoil       func(*machine)
	}{
		{"no call", "NVML tells of no XIDs: nvmlEventSetWait: ", func(m *machine) { m.lacks["nvmlEventSetWait"] = true }},
		{"no set", "NVML tells of no XIDs: nvmlEventSetCreate: ", func(m *machine) {
			m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		}},
		{"no wait", "NVML tells of no XIDs: nvmlEventSetWait: ", func(m *machine) {
			m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
				return &mock.EventSet{
					FreeFunc: func() nvml.Return { return nvml.SUCCESS },
					WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_NOT_SUPPORTED },
				}, nvml.SUCCESS
			}
		}},
		{"of one GPU", "NVML tells of no XIDs of GPU 1: nvmlDeviceRegisterEvents: ", func(m *machine) {
			m.boards[1].say("nvmlDeviceRegisterEvents", nvml.ERROR_NOT_SUPPORTED)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(2)
				test.spoil(m)
				r := newReader(t, m, nil)
				defer r.Close()
				for range 3 {
					if r.read()["1 DCGM_FI_DEV_GPU_TEMP"] == "" {
						t.Error("no reading")
					}
				}
				e := r.Streams(nil)[device].Failure
				if e == nil || e.Failure != source.Unsupported || !strings.HasPrefix(e.Cause, test.cause) || !strings.Contains(e.Remedy, "dmesg") {
					t.Errorf("the stream fails for %+v, want %s", e, test.cause)
				}
				if n := r.log.count("tells of no XIDs"); n != 1 {
					t.Errorf("the log says so %d times", n)
				}
			})
		})
	}
}
