//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

func TestLostGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		r := newReader(t, m, nil)
		defer r.Close()
		r.read()
		m.boards[1].say("nvmlDeviceGetTemperature", nvml.ERROR_GPU_IS_LOST)
		for range 20 {
			all := r.read()
			if has(all, "1") || !isLost(all, "1") || r.silent() != "" || all["0 DCGM_FI_DEV_GPU_TEMP"] != "61" {
				t.Fatalf("%v", all)
			}
		}
		e := r.Streams(nil)[device].Failure
		if e == nil || e.Cause != "GPU 1 is lost" || e.Remedy == "" {
			t.Errorf("the stream says %v", e)
		}
		if n := r.log.count("lost", "gpu=1"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		m.boards[1].say("nvmlDeviceGetTemperature", nvml.SUCCESS)
		for range 20 {
			r.read()
		}
		if all := r.read(); !has(all, "1") || isLost(all, "1") || r.Streams(nil)[device].Failure != nil {
			t.Errorf("it is not back: %v", r.Streams(nil)[device].Failure)
		}
	})
}

func TestAllLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		r := newReader(t, m, nil)
		defer r.Close()
		m.boards[0].say("nvmlDeviceGetPowerUsage", nvml.ERROR_GPU_IS_LOST)
		err := r.Read(context.Background(), &r.b)
		if e := source.AsError(err); err == nil || e.Cause != "GPU 0 is lost" || len(r.b.Samples) > 0 {
			t.Errorf("%v", err)
		}
	})
}

// A hanging call affects only its board, starting with the reading in which it hangs. The board is named, but not as lost.
func TestHungCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(3)
		r := newReader(t, m, nil)
		r.read()
		release := m.boards[1].hang("nvmlDeviceGetEnforcedPowerLimit")
		last := r.b.At
		for i := range 30 {
			all := r.read()
			if has(all, "1") || !has(all, "0") || !has(all, "2") {
				t.Fatalf("reading %d: %v", i, slices.Sorted(maps.Keys(all)))
			}
			if i > 0 && (!isLost(all, "1") || r.silent() != "1") {
				t.Errorf("reading %d: lost %t, silent %s", i, isLost(all, "1"), r.silent())
			}
			if d := r.b.At.Sub(last); d != time.Second || r.b.Took > 500*time.Millisecond {
				t.Errorf("reading %d began after %v and took %v", i, d, r.b.Took)
			}
			last = r.b.At
			e := r.Streams(nil)[device].Failure
			if i > 0 && (e == nil || e.Failure != source.Timeout || e.Cause != "GPU 1: nvmlDeviceGetEnforcedPowerLimit hangs") {
				t.Errorf("reading %d: the stream says %v", i, e)
			}
		}
		if n := m.boards[1].asked("nvmlDeviceGetEnforcedPowerLimit"); n != 3 {
			t.Errorf("the call was made %d times", n)
		}
		if n := r.log.count("hangs", "call=nvmlDeviceGetEnforcedPowerLimit", "gpu=1"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		release()
		synctest.Wait()
		check(t, r.read(), "1", steady, standIn) // the rate starts again
		if e := r.Streams(nil)[device].Failure; e != nil {
			t.Errorf("the stream still says %v", e)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A board that takes less than two periods still has readings, none of them twice.
func TestSlowBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		slow := m.boards[1]
		energy := uint64(0)
		slow.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) {
			time.Sleep(700 * time.Millisecond)
			energy++
			return energy, nvml.SUCCESS
		}
		r := newReader(t, m, nil)
		defer r.Close()
		seen := map[string]bool{}
		for range 10 {
			all := r.read()
			v, ok := all["1 DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
			if ok && seen[v] {
				t.Errorf("%s was served twice", v)
			}
			seen[v] = true
		}
		if len(seen) < 9 {
			t.Errorf("seen %v", seen)
		}
		if n := r.log.count("hangs"); n > 0 {
			t.Error("it does not hang")
		}
	})
}

func TestAllHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		release := m.boards[0].hang("nvmlDeviceGetPowerUsage")
		r := newReader(t, m, nil)
		for range 3 {
			begun := time.Now()
			err := r.Read(context.Background(), &r.b)
			if e := source.AsError(err); err == nil || e.Failure != source.Timeout || !strings.Contains(e.Cause, "GPU 0: nvmlDeviceGetPowerUsage hangs") {
				t.Errorf("%v", err)
			}
			if d := time.Since(begun); d > 6*time.Second {
				t.Errorf("Read took %v", d)
			}
		}
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "nvmlDeviceGetPowerUsage") || m.shut > 0 {
			t.Errorf("close: %v, %d shutdowns under a call", err, m.shut)
		}
		release()
	})
}

func TestReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(1)
		release := m.boards[0].hang("nvmlDeviceGetPowerUsage")
		r := newReader(t, m, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := r.Read(ctx, &r.b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		done := make(chan error)
		go func() { done <- r.Read(context.Background(), new(raw.Batch)) }()
		synctest.Wait()
		release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
		if err := r.Read(context.Background(), &r.b); err == nil {
			t.Error("a closed source reads")
		}
		if r.Close() != nil || m.shut != 1 {
			t.Errorf("%d shutdowns", m.shut)
		}
	})
}
