//go:build cgo && linux

package nvml

import (
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
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
