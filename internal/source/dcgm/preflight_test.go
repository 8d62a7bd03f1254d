//go:build linux

package dcgm

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

func TestPreflight(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"good/dcgmi": 0o755, "bad/dcgmi": 0o644} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n"), mode)); err != nil {
			t.Fatal(err)
		}
	}
	page := func(text string) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return []byte(text), nil }
	}
	nobody := page("")
	running := func(commands ...string) func() []string { return func() []string { return commands } }
	const exposition = "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 40\n"
	tests := []struct {
		name     string
		path     string // of dcgmi, "" by PATH
		dirs     string // PATH, in dir
		host     string
		commands func() []string
		fetch    func(context.Context) ([]byte, error)
		want     source.Failure // "" is none
		says     []string
	}{
		{name: "all is well", dirs: "good"},
		{name: "by path", path: filepath.Join(dir, "good/dcgmi")},
		{name: "missing", dirs: "none", want: source.HostEngineUnavailable, says: []string{"dcgmi was not found", "datacenter-gpu-manager", "--backend=prometheus"}},
		{name: "missing at its path", path: "/no/dcgmi", want: source.HostEngineUnavailable, says: []string{"/no/dcgmi was not found"}},
		{name: "not executable", dirs: "none:bad", want: source.PermissionDenied, says: []string{"bad/dcgmi", "chmod"}},
		{name: "not executable at its path", path: filepath.Join(dir, "bad/dcgmi"), want: source.PermissionDenied, says: []string{"chmod"}},
		{name: "a good one after a bad one", dirs: "bad:good"},
		{name: "an exporter runs", dirs: "good", commands: running("/sbin/init", "/usr/bin/dcgm-exporter"), want: source.ExporterCollision,
			says: []string{"/usr/bin/dcgm-exporter", "--backend=prometheus", "http://localhost:9400/metrics"}},
		{name: "one that uses our host engine", dirs: "good", commands: running("/usr/bin/dcgm-exporter\x00-f\x00x.csv\x00-r\x00localhost:5555")},
		{name: "the same by a long flag", dirs: "good", commands: running("dcgm-exporter\x00--remote-hostengine-info=127.0.0.1")},
		{name: "the same by its environment", dirs: "good", commands: running("dcgm-exporter\x00DCGM_REMOTE_HOSTENGINE_INFO=localhost:5555")},
		{name: "one on the same socket", dirs: "good", host: "unix:///run/x", commands: running("dcgm-exporter\x00-r\x00unix:///run/x")},
		{name: "others run", dirs: "good", commands: running("dcgm-exporter.sh", "vim", "nv-hostengine")},
		{name: "an exporter answers", dirs: "good", fetch: page(exposition), want: source.ExporterCollision, says: []string{":9400", "--backend=prometheus"}},
		{name: "an exporter of 1.x answers", dirs: "good", fetch: page("# x\ndcgm_gpu_temp{gpu=\"0\"} 40\n"), want: source.ExporterCollision, says: []string{":9400"}},
		{name: "something else answers", dirs: "good", fetch: page("node_load1 4\n")},
		{name: "we answer ourselves", dirs: "good", fetch: page(exposition + "kpulse_gpu_power_watts 4\n")},
		{name: "an exporter here, but the GPUs are elsewhere", dirs: "good", host: "node7", fetch: page(exposition), commands: running("dcgm-exporter")},
		{name: "an option for a host", dirs: "good", host: "-i", want: source.Unsupported, says: []string{"--dcgm.host=-i is an option", "--dcgm.host=node7:5555"}},
		{name: "a socket of this machine", dirs: "good", host: "unix:///run/x", commands: running("dcgm-exporter"), want: source.ExporterCollision, says: []string{"dcgm-exporter"}},
		{name: "missing goes before the exporter", dirs: "none", fetch: page(exposition), want: source.HostEngineUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dirs []string
			for d := range strings.SplitSeq(tt.dirs, ":") {
				dirs = append(dirs, filepath.Join(dir, d))
			}
			t.Setenv("PATH", strings.Join(dirs, ":"))
			probes := probes{LookPath: exec.LookPath, Commands: tt.commands, Fetch: tt.fetch}
			if probes.Commands == nil {
				probes.Commands = running()
			}
			if probes.Fetch == nil {
				probes.Fetch = nobody
			}
			_, err := New(Options{Path: tt.path, Host: tt.host, probes: probes}).preflight(t.Context())
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
	s := New(Options{Path: "/bin/true", Host: "--help", probes: noProbes})
	defer s.Close()
	if e, ok := errors.AsType[*source.Error](s.Check(t.Context())); !ok || e.Failure != source.Unsupported {
		t.Errorf("%v", e)
	}
	w := &world{Source: s, t: t}
	if e := w.untilFailure(); e.Failure != source.Unsupported {
		t.Errorf("%v", e)
	}
}

// Beside an exporter with its own host engine, GPUs from Hopper on are read, and earlier
// ones are refused.
func TestExporterBesideEachGeneration(t *testing.T) {
	for name, collides := range map[string]bool{"NVIDIA H100 80GB HBM3": false, "NVIDIA A100-SXM4-80GB": true} {
		s := dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}
		s.GPUs[0].Name, s.GPUs[1].Name = name, name
		w := newWorld(t, s, func(o *Options) {
			o.probes.Commands = func() []string { return []string{"/usr/bin/dcgm-exporter"} }
		})
		if !collides {
			w.untilWhole()
		} else if e := w.untilFailure(); e.Failure != source.ExporterCollision || !strings.Contains(e.Cause, "before Hopper") || !strings.Contains(e.Remedy, "-r localhost:5555") {
			t.Errorf("%s: %v", name, e)
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
		s := New(Options{Path: exe, probes: noProbes})
		w := &world{Source: s, t: t}
		if e := w.untilFailure(); e.Failure != tt.want || !strings.Contains(e.Error(), exe) || e.Remedy == "" {
			t.Errorf("%s: %s: %v", name, e.Failure, e)
		}
		s.Close()
	}
}

func TestRealProbes(t *testing.T) {
	p := realProbes
	self, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		t.Skip("no /proc")
	}
	name, _, _ := strings.Cut(string(self), "\x00")
	if !slices.ContainsFunc(p.Commands(), func(c string) bool { return c == name || strings.HasPrefix(c, name+"\x00") }) {
		t.Errorf("we, %s, do not run", name)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusBadGateway)
		}
		w.Write([]byte("DCGM_FI_X 1\n"))
	}))
	defer server.Close()
	if page, err := fetch(t.Context(), server.URL+"/metrics"); err != nil || string(page) != "DCGM_FI_X 1\n" {
		t.Errorf("%q, %v", page, err)
	}
	if page, err := fetch(t.Context(), server.URL+"/other"); err == nil {
		t.Errorf("%q of a failure", page)
	}
	server.Close()
	if page, err := fetch(t.Context(), server.URL+"/metrics"); err == nil {
		t.Errorf("%q without a server", page)
	}
}
