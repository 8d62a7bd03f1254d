package dcgm

import (
	"context"
	"os/exec"
)

// Visible asks nvidia-smi which boards this process may use, in its order, which is CUDA's.
// It returns nil if there is no nvidia-smi, or if nvidia-smi does not list them all, as
// when one is lost. It may take askTimeout.
func Visible(ctx context.Context) []Device {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	var a asker
	got := a.ask(ctx, path, []string{"--query-gpu=" + QueryFields, "--format=csv,noheader,nounits"})
	if got.err != nil || got.code != 0 || got.signal != 0 {
		return nil
	}
	return Listed(got.stdout)
}
