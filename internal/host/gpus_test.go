package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestGPUs: GPUs returns the boards that may be opened, in CUDA's order. A container lacks
// the nodes of others. The test makes no cgroup, which refuses as permissions do.
func TestGPUs(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	buses := func() (list []string) {
		for _, g := range GPUs(root+"/proc", root+"/dev") {
			list = append(list, g.PCIBusID+" "+g.UUID)
		}
		return list
	}
	if got := buses(); got != nil {
		t.Errorf("without a driver: %v", got)
	}
	for minor, bus := range []string{"0000:c1:00.0", "0000:41:00.0", "0000:01:00.0"} {
		uuid := fmt.Sprintf("GPU-%d", minor)
		if minor == 1 {
			uuid = "GPU-????????-????-????-????-????????????"
		}
		write("proc/driver/nvidia/gpus/"+bus+"/information", fmt.Sprintf("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 42\n"+
			"GPU UUID: \t %s\nBus Location: \t %s\nDevice Minor: \t %d\nGPU Excluded:\t No\n", uuid, bus, minor), 0o400)
	}
	if got := buses(); got != nil {
		t.Errorf("without a node: %v", got)
	}
	write("dev/nvidia0", "", 0o600)
	write("dev/nvidia1", "", 0o600)
	if got, want := buses(), []string{"0000:41:00.0 ", "0000:c1:00.0 GPU-0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	write("proc/driver/nvidia/gpus/0000:e1:00.0/information", "Model: NVIDIA\n", 0o400)
	if got := buses(); got != nil {
		t.Errorf("with a description that lacks the minor number: %v", got)
	}
}

// TestInstances: the instances whose capability may be opened are known; if none may, the
// driver may not have made their nodes yet.
func TestInstances(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/driver/nvidia/gpus/0000:41:00.0/information", "GPU UUID: GPU-a\nBus Location: 0000:41:00.0\nDevice Minor: 1\n")
	write("dev/nvidia1", "")
	its := func() []string { return GPUs(root+"/proc", root+"/dev")[0].Instances }
	if got := its(); got != nil {
		t.Errorf("without MIG: %q", got)
	}
	for i, id := range []string{"1", "2", "13"} {
		write("proc/driver/nvidia/capabilities/gpu1/mig/gi"+id+"/access", fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", 30+i))
	}
	write("proc/driver/nvidia/capabilities/gpu0/mig/gi5/access", "DeviceFileMinor: 40\n")
	if got := its(); got != nil {
		t.Errorf("without nodes: %q", got)
	}
	write("dev/nvidia-caps/nvidia-cap31", "")
	write("dev/nvidia-caps/nvidia-cap40", "")
	if got := its(); !slices.Equal(got, []string{"2"}) {
		t.Errorf("got %q", got)
	}
}
