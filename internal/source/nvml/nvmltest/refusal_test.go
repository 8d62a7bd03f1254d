//go:build cgo && linux

package nvmltest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kpulse/kpulse-proxy/internal/source/nvml/nvmltest"
)

// childEnv names the library to a child of TestRefusals.
const childEnv = "KPULSE_FAKE_NVML_LIBRARY"

// TestRefusals checks that an invalid scenario ends the process, with the line
// on stderr. The child runs this test again.
func TestRefusals(t *testing.T) {
	if library := os.Getenv(childEnv); library != "" {
		nvml.New(nvml.WithLibraryPath(library)).Init()
		return
	}
	library, path := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
	for _, line := range []string{
		"what 1", "driver", "gpu 0 GPU-0 0000:1", "gpu 64 GPU-0 0000:1 A", "instance 0/16 0 MIG 1 1 A", "instance 0 0 MIG 1 1 A",
		"value 0 power_mw", "value 0 power_mw 1x", "value 0/ power_mw 1", "value x power_mw 1", "value -1 power_mw 1", "value 0/1/2 power_mw 1", "value 0/-2 power_mw 1", "value 0 power_mw 1 2 3",
		"fail nvmlInit", "fail nvmlInit NO_SUCH_RESULT", "fail nvmlInit SUCCESS", "fail nvmlInit TIMEOUT 0x", "slow nvmlInit 0", "hang", "hang a 0 1",
		"lost 1", "gpm", "xid 0", "process 0 compute 1",
	} {
		if err := os.WriteFile(path, []byte("# a scenario\n\ngpu 0 GPU-0 0000:1 A\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0], "-test.run=^TestRefusals$")
		child.Env = append(os.Environ(), childEnv+"="+library, nvmltest.ScenarioEnv+"="+path)
		out, err := child.CombinedOutput()
		if err == nil || !strings.HasPrefix(string(out), "fake NVML: "+path+":4: cannot read "+line+"\n") {
			t.Errorf("%s: %v, %.200s", line, err, out)
		}
	}
}
