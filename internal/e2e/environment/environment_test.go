package environment

import (
	"os"
	"testing"
)

func TestClear(t *testing.T) {
	gone := []string{
		"KPULSE_SOURCE", "KPULSE_NO_SUCH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURMD_NODENAME", "PMI_RANK", "PMIX_RANK",
		"RANK", "LOCAL_RANK", "DCGM_HOST", "HTTP_LISTEN_PORT", "NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBECONFIG", "GOMAXPROCS", "LISTEN_FDS", "TERM", "LC_ALL",
	}
	kept := []string{"PATH", "HOME", "GOFLAGS", "GOCACHE", "KPULSE_REQUIRE_TMUX", "KPULSE_SLOW", "KPULSE_DCGM_STACK", "TERMINFO", "PBSX"}
	for _, name := range append(gone, kept...) {
		t.Setenv(name, "set")
	}
	t.Setenv("LANG", "C")
	Clear()
	for _, name := range gone {
		if value, there := os.LookupEnv(name); there {
			t.Errorf("%s is %q after Clear", name, value)
		}
	}
	for _, name := range kept {
		if os.Getenv(name) != "set" {
			t.Errorf("Clear removed %s", name)
		}
	}
	if got := os.Getenv("LANG"); got != "C.UTF-8" {
		t.Errorf("LANG is %q", got)
	}
}
