//go:build linux

package dcgm

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good/dcgmi": 0o755, "bad/dcgmi": 0o644} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"), mode)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		path string         // of dcgmi, "" by PATH
		dirs string         // PATH, in dir
		want source.Failure // "" is none
		says []string
	}{
		{name: "all is well", dirs: "good"},
		{name: "by path", path: filepath.Join(dir, "good/dcgmi")},
		{name: "missing", dirs: "none", want: source.HostEngineUnavailable, says: []string{"dcgmi was not found", "datacenter-gpu-manager", "--backend=prometheus"}},
		{name: "missing at its path", path: "/no/dcgmi", want: source.HostEngineUnavailable, says: []string{"/no/dcgmi was not found"}},
		{name: "not executable", dirs: "none:bad", want: source.HostEngineUnavailable, says: []string{"executable for this user"}},
		{name: "not executable at its path", path: filepath.Join(dir, "bad/dcgmi"), want: source.PermissionDenied, says: []string{"bad/dcgmi", "ls -l"}},
		{name: "a good one after a bad one", dirs: "bad:good"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dirs []string
			for d := range strings.SplitSeq(tt.dirs, ":") {
				dirs = append(dirs, filepath.Join(dir, d))
			}
			t.Setenv("PATH", strings.Join(dirs, ":"))
			_, err := New(Options{Path: tt.path}).command()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e, ok := errors.AsType[*source.Error](err)
			if !ok || e.Failure != tt.want || e.Remedy == "" {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			for _, words := range tt.says {
				if !strings.Contains(e.Error(), words) {
					t.Errorf("%q does not contain %q", e, words)
				}
			}
		})
	}
}

func TestHost(t *testing.T) {
	for option, want := range map[string]source.Caps{
		"":                   {Local: true},
		"unix:///run/x.sock": {Local: true},
		"node7":              {Host: "node7"},
		"node7.cluster:5555": {Host: "node7.cluster"},
		"10.0.0.7:5555":      {Host: "10.0.0.7"},
		"[fe80::1]:5555":     {Host: "fe80::1"},
		"[fe80::1]":          {Host: "fe80::1"},
		"fe80::1":            {Host: "fe80::1"},
		"localhost":          {Host: "localhost"},
	} {
		caps := New(Options{Host: option}).Caps()
		if caps.Local != want.Local || caps.Host != want.Host {
			t.Errorf("%q: %+v", option, caps)
		}
	}
}

// An exporter that answers explains why the profiling counters are held, unless the host engine is elsewhere.
func TestExporterThatHoldsTheCounters(t *testing.T) {
	for host, want := range map[string]source.Failure{"": source.ExporterCollision, "unix:///run/x": source.ExporterCollision, "node7": source.ReservationDenied} {
		w := newWorld(t, dcgmtest.Scenario{Failures: []dcgmtest.Failure{{Kind: dcgmtest.WatchRefused, Profiling: true, Code: -37}}}, func(o *Options) {
			o.Host = host
			o.exporter = func() bool { return true }
		})
		w.until("a refusal", func(b *raw.Batch, err error) bool { return has(b, "POWER") && w.stream(profiling).Failure != nil })
		e := w.stream(profiling).Failure
		if e.Failure != want || want == source.ExporterCollision && !(strings.Contains(e.Cause, exporterURL) && strings.Contains(e.Remedy, "-r localhost:5555") &&
			strings.Contains(e.Remedy, "--backend=prometheus")) {
			t.Errorf("%q: %s: %v", host, e.Failure, e)
		}
	}
}

func TestUnstartable(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		text string
		want source.Failure
	}{
		"no interpreter": {"#!/no/such/shell\n", source.HostEngineUnavailable},
		"no program":     {"\x7fELF but not really", source.HostEngineUnavailable},
	} {
		exe := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(exe, []byte(tt.text), 0o700); err != nil {
			t.Fatal(err)
		}
		s := New(unprobed(Options{Path: exe}))
		w := &world{Source: s, t: t}
		if e := w.untilFailure(); e.Failure != tt.want || !strings.Contains(e.Error(), exe) || e.Remedy == "" {
			t.Errorf("%s: %s: %v", name, e.Failure, e)
		}
		s.Close()
	}
}

func TestIsExporter(t *testing.T) {
	const page = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 40\n"
	pages := map[string]string{
		"/4": page, "/1": "# x\ndcgm_gpu_temp{gpu=\"0\"} 40\n", "/node": "node_load1 4\n", "/ourselves": page + "kpulse_gpu_power_watts 4\n", "/none": "",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(pages[r.URL.Path])) }))
	defer server.Close()
	for path := range pages {
		if got, want := isExporter(server.URL+path, time.Minute), path == "/4" || path == "/1"; got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	server.Close()
	if isExporter(server.URL+"/4", time.Minute) {
		t.Error("nothing answers")
	}
}
