package dcgmi

import (
	"context"
	"os/exec"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// Visible asks nvidia-smi which boards this process may use, in its order, which is CUDA's.
// It returns nil if there is no nvidia-smi, or if nvidia-smi does not list them all, as
// when one is lost. It may take askTimeout.
func Visible(ctx context.Context) []dcgm.Device {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	var a asker
	got := a.ask(ctx, path, []string{"--query-gpu=" + dcgm.QueryFields, "--format=csv,noheader,nounits"})
	if got.err != nil || got.code != 0 || got.signal != 0 {
		return nil
	}
	return dcgm.Listed(got.stdout)
}
