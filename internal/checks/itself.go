package checks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// runAgain runs this program with arguments and an environment, and returns its stdout. When ctx
// ends, the child gets SIGTERM, and SIGKILL after grace. If it survives that too, within a hanging
// driver call, it is abandoned after another grace, without output.
func runAgain(ctx context.Context, grace time.Duration, args, environment []string) ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = environment
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start this program: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return out.Bytes(), err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return out.Bytes(), err
	case <-time.After(grace + grace): // SIGKILL was sent after the first grace
		return nil, context.Cause(ctx) // out is not read: it may still be written to
	}
}
