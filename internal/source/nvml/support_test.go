//go:build cgo && linux

package nvml

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestWhatIsRefusedIsAskedOnce(t *testing.T) {
	for _, answer := range []nvml.Return{
		nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_DEPRECATED, nvml.ERROR_NO_PERMISSION,
	} {
		t.Run(answer.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(1)
				b := m.boards[0]
				b.gpm, b.metrics = true, maps.Clone(counted)
				delete(b.metrics, nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC)
				b.say("nvmlDeviceGetPowerUsage", answer)
				b.say("nvmlDeviceGetRemappedRows", answer)
				b.say("field 82", answer)
				r := newReader(t, m, nil)
				defer r.Close()
				for range 4 {
					all := r.read()
					for _, family := range []string{"DEV_POWER_USAGE", "DEV_ROW_REMAP_FAILURE", "DEV_MEMORY_TEMP", "PROF_NVLINK_RX_BYTES"} {
						if v, ok := all["0 DCGM_FI_"+family]; ok {
							t.Errorf("%s %s", family, v)
						}
					}
					if all["0 DCGM_FI_DEV_GPU_TEMP"] != "61" {
						t.Error("other readings are absent too")
					}
				}
				for _, call := range []string{"nvmlDeviceGetPowerUsage", "nvmlDeviceGetRemappedRows", "field 82", "metric 60"} {
					if n := b.asked(call); n != 1 {
						t.Errorf("%s was asked %d times", call, n)
					}
				}
				want := 0
				if answer == nvml.ERROR_NO_PERMISSION {
					want = 1
				}
				for _, call := range []string{"nvmlDeviceGetPowerUsage", "nvmlDeviceGetFieldValues"} {
					if n := r.log.count("call="+call, "remedy="); n != want {
						t.Errorf("%d lines about %s", n, call)
					}
				}
			})
		})
	}
}

// A transient error makes the value absent while it lasts.
func TestTransientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		r := newReader(t, m, nil)
		defer r.Close()
		for i, answer := range []nvml.Return{nvml.ERROR_UNKNOWN, nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_TIMEOUT, nvml.SUCCESS} {
			b.say("nvmlDeviceGetPowerUsage", answer)
			b.say("field 82", answer)
			all := r.read()
			for _, family := range []string{"DEV_POWER_USAGE", "DEV_MEMORY_TEMP"} {
				if _, ok := all["0 DCGM_FI_"+family]; ok != (answer == nvml.SUCCESS) {
					t.Errorf("round %d, %v: %s is there: %v", i, answer, family, ok)
				}
			}
		}
	})
}

func TestNothingSupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		m.boards[0].say("", nvml.ERROR_NOT_SUPPORTED)
		m.boards[0].say("nvmlDeviceGetHandleByIndex", nvml.SUCCESS)
		m.boards[0].say("nvmlDeviceGetUUID", nvml.SUCCESS)
		r := newReader(t, m, nil)
		defer r.Close()
		for range 3 {
			err := r.Read(context.Background(), &r.b)
			if e := source.AsError(err); err == nil || e.Failure != source.Broken || !strings.Contains(e.Remedy, "nvidia-smi") {
				t.Errorf("%v", err)
			}
		}
		for i := range boardReadings {
			if n := m.boards[0].asked(boardReadings[i].call); n > 4 || boardReadings[i].call == "nvmlDeviceGetPowerUsage" && n != 1 {
				t.Errorf("%s was asked %d times", boardReadings[i].call, n)
			}
		}
	})
}

// A symbol that the library lacks must not be called: the process would end.
func TestOldLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, counted
		for _, call := range []string{gpmMetricsCall, migModeCall, "nvmlDeviceGetMemoryInfo_v2", "nvmlEventSetWait"} {
			m.lacks[call] = true
		}
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		want := maps.Clone(steady)
		maps.DeleteFunc(want, func(family, _ string) bool { return strings.HasPrefix(family, "DEV_FB_") })
		check(t, r.read(), "0", want, linkTraffic, standIn)
		for call := range m.lacks {
			if b.asked(call) > 0 {
				t.Errorf("%s was called", call)
			}
		}
		if n := b.asked(gpmSampleCall); n > 0 {
			t.Errorf("%d GPM samples were taken", n)
		}
		if e := r.Streams(nil)[profiling].Failure; e == nil || e.Failure != source.ProfilingUnavailable {
			t.Errorf("the profiling stream says %v", e)
		}
	})
}
