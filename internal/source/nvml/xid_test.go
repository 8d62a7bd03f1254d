//go:build cgo && linux

package nvml

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// reported returns the XIDs of the last reading: GPU, code and count.
func (r *reader) reported() string {
	var all []string
	for _, x := range r.b.XIDs {
		all = append(all, fmt.Sprintf("%s:%d=%d", label(r.b.Dict.Block(x.Labels), "{gpu"), x.Code, x.Count))
	}
	return strings.Join(all, " ")
}

// xid returns an XID event of a device.
func xid(device nvml.Device, code uint64) nvml.EventData {
	return nvml.EventData{Device: device, EventType: nvml.EventTypeXidCriticalError, EventData: code}
}

// Every XID counts, however many come between two readings, including those of lost
// boards. A board without XIDs has none of code 0.
func TestXIDsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(3)
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		if got := r.reported(); got != "0:0=0 1:0=0 2:0=0" {
			t.Errorf("at first %s", got)
		}
		for range 500 {
			m.events <- xid(m.boards[1], 45)
		}
		m.events <- xid(m.boards[1], 48)
		m.events <- xid(m.boards[1], 45)
		m.events <- xid(m.boards[0], 94)
		m.events <- xid(m.boards[1], 1<<40)
		m.events <- xid(m.boards[1], 0)
		m.events <- nvml.EventData{Device: m.boards[0], EventType: nvml.EventTypePState, EventData: 5}
		m.boards[2].say("", nvml.ERROR_GPU_IS_LOST)
		m.events <- xid(m.boards[2], 79)
		synctest.Wait()
		at := time.Now()
		for range 2 {
			all := r.read()
			if got := r.reported(); got != "0:94=1 1:45=501 1:48=1 2:79=1" || !isLost(all, "2") {
				t.Errorf("%s, GPU 2 lost: %v", got, isLost(all, "2"))
			}
			if last := all["1 DCGM_FI_DEV_XID_ERRORS"]; last != "45" || all["0 DCGM_FI_DEV_XID_ERRORS"] != "94" {
				t.Errorf("the last XID of GPU 1 is %q", last)
			}
			if last := r.b.XIDs[3].Last; !last.Equal(at) {
				t.Errorf("79 came at %v, not at %v", last, at)
			}
		}
		if text := string(r.b.AppendAll(nil)); !strings.Contains(text, `,xid="45"} 501`) || strings.Contains(text, `,xid="0"`) {
			t.Errorf("the exposition\n%s", text)
		}
	})
}

// An XID of an unknown device is logged, and attributed to no board.
func TestXIDOfNoBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		other := newBoard(5)
		m.events <- xid(other, 79)
		synctest.Wait()
		r.read()
		if got := r.reported(); got != "0:0=0" || r.log.count("XID of an unknown GPU", "xid=79") != 1 {
			t.Errorf("%s\n%s", got, r.log.text.String())
		}
	})
}

// If NVML does not report XIDs, the log says so once, as does the device stream, which
// continues.
func TestNoXIDs(t *testing.T) {
	for _, test := range []struct {
		name, cause string
		ofOthers    int // boards whose XIDs are reported
		spoil       func(*machine)
	}{
		{"no call", "NVML does not report XIDs: nvmlEventSetCreate: ", 0, func(m *machine) { m.lacks["nvmlEventSetWait"] = true }},
		{"no set", "NVML does not report XIDs: nvmlEventSetCreate: ", 0, func(m *machine) {
			m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		}},
		{"no wait", "NVML does not report XIDs: nvmlEventSetWait: ", 0, func(m *machine) {
			m.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
				return &mock.EventSet{
					FreeFunc: func() nvml.Return { return nvml.SUCCESS },
					WaitFunc: func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_NOT_SUPPORTED },
				}, nvml.SUCCESS
			}
		}},
		{"of one GPU", "NVML does not report XIDs of GPU 1: nvmlDeviceRegisterEvents: ", 1, func(m *machine) {
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
				if got, want := r.reported(), strings.TrimSpace("0:0=0 "[:6*test.ofOthers]); got != want {
					t.Errorf("reports %q, want %q", got, want)
				}
				if n := r.log.count("does not report XIDs"); n != 1 {
					t.Errorf("the log says so %d times", n)
				}
			})
		})
	}
}
