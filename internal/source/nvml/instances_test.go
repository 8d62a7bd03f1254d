//go:build cgo && linux

package nvml

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/selection"
)

func TestMIG(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		b := m.boards[1]
		b.gpm, b.metrics = true, counted
		b.addInstance(9, "1g.10gb").mig = counted
		b.addInstance(2, "1c.3g.40gb").mig = map[nvml.GpmMetricId]float64{nvml.GPM_METRIC_SM_UTIL: 7, nvml.GPM_METRIC_PCIE_TX_PER_SEC: 1}
		b.say("nvmlDeviceGetUtilizationRates", nvml.ERROR_NOT_SUPPORTED)
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		all := r.read()
		parents := maps.Clone(steady)
		for _, own := range []string{"DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL", "DEV_DEC_UTIL"} {
			delete(parents, own)
		}
		memory := map[string]string{"DEV_FB_TOTAL": "10240", "DEV_FB_FREE": "9216", "DEV_FB_RESERVED": "1", "DEV_FB_USED": "9"}
		check(t, all, "1/9", parents, counts, memory)
		memory["DEV_FB_USED"] = "2"
		check(t, all, "1/2", parents, memory, map[string]string{"PROF_SM_ACTIVE": "0.070000"})
		if !has(all, "1") || all["1 DCGM_FI_DEV_GPU_UTIL"] != "" {
			t.Error("the board itself is wrong")
		}
		for _, want := range []string{`GPU_I_PROFILE="1g.10gb",GPU_I_ID="9"`, `GPU_I_PROFILE="3g.40gb",GPU_I_ID="2"`} {
			if !strings.Contains(string(r.b.AppendAll(nil)), want) {
				t.Errorf("no %s", want)
			}
		}
		if n := len(r.MIGPlaces()); n != 2 {
			t.Errorf("%d MIG devices have a place", n)
		}
		b.instances = b.instances[:1]
		for range 12 {
			all = r.read()
		}
		if p := r.MIGPlaces(); len(p) != 1 || p[0].UUID == "" || p[0].Board == "" || p[0].Instance != "9" || p[0].Profile != "1g.10gb" {
			t.Errorf("MIG devices are at %+v", p)
		}
		if has(all, "1/2") || !has(all, "1/9") {
			t.Error("the removed instance is still there, or the other is not")
		}
	})
}

// An instance that fails to answer once is not gone.
func TestInstancesThatAreSilentForOnce(t *testing.T) {
	for _, call := range []string{migCall, migIDCall} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			m.boards[0].addInstance(9, "1g.10gb")
			r := newReader(t, m, nil)
			defer r.Close()
			r.read()
			m.boards[0].say(call, nvml.ERROR_UNKNOWN)
			m.boards[0].instances[0].say(call, nvml.ERROR_UNKNOWN)
			for range 25 {
				if !has(r.read(), "0/9") {
					t.Fatalf("%s fails, and the instance is gone", call)
				}
			}
			if n := r.log.count("MIG instances of the GPUs have changed"); n > 0 {
				t.Errorf("%d lines about it", n)
			}
		})
	}
}

// With MIG instances, a board may refuse readings that it has otherwise; GPM may
// work for instances only, or for the board.
func TestABoardIsCutAndMadeWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		b := m.boards[0]
		b.gpm, b.metrics = true, counted
		b.addInstance(9, "1g.10gb").mig = counted
		b.say(gpmSampleCall, nvml.ERROR_NOT_SUPPORTED)
		b.say("nvmlDeviceGetUtilizationRates", nvml.ERROR_NOT_SUPPORTED)
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		all := r.read()
		if all["0/9 DCGM_FI_PROF_SM_ACTIVE"] == "" || all["0 DCGM_FI_PROF_SM_ACTIVE"] != "" {
			t.Error("GPM counts for the instance alone, but not here")
		}
		if e := r.Streams(nil)[profiling].Failure; e != nil {
			t.Errorf("the profiling stream says %v", e)
		}
		b.say(gpmSampleCall, nvml.SUCCESS)
		b.say("nvmlDeviceGetUtilizationRates", nvml.SUCCESS)
		b.instances = nil
		for range 12 {
			all = r.read()
		}
		if has(all, "0/9") {
			t.Error("the removed instance is still there")
		}
		check(t, all, "0", steady, linkTraffic, counts, traffic)
	})
}

func TestChoice(t *testing.T) {
	tests := []struct {
		gpus, devices, err string
	}{
		{gpus: "", devices: "0 1 1/9"},
		{gpus: "1", devices: "1 1/9"},
		{gpus: "MIG-1-9", devices: "1/9"},
		{gpus: "GPU-00000000", devices: "0"},
		{gpus: "4", err: "--gpus=4: there is no GPU 4"},
	}
	for _, tt := range tests {
		t.Run(tt.gpus, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(2)
				m.boards[1].addInstance(9, "1g.10gb")
				s := newSource(Options{Choose: selection.Request{GPUs: tt.gpus}.Select}, m)
				defer s.Close()
				if err := s.Check(t.Context()); err != nil {
					if tt.err == "" || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("%v, want %q", err, tt.err)
					}
					return
				}
				r := &reader{Source: s, t: t}
				all := r.read()
				for _, device := range []string{"0", "1", "1/9"} {
					if got, want := has(all, device), slices.Contains(strings.Fields(tt.devices), device); got != want {
						t.Errorf("%s is there: %v", device, got)
					}
				}
				if asked := m.boards[0].asked("nvmlDeviceGetPowerUsage"); (asked > 0) != strings.Contains(tt.devices, "0") {
					t.Errorf("GPU 0 was asked %d times", asked)
				}
			})
		})
	}
}
