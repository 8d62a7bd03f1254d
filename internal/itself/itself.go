// Package itself runs this program again, for what may hang or end the process that does it.
package itself

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Output runs this program with arguments and an environment, and returns what it writes to
// stdout. When ctx ends it gets SIGTERM, and SIGKILL after grace. If not even that ends it,
// as within a call into a driver that hangs, it is left to the kernel after grace once
// more, and there is no output.
func Output(ctx context.Context, grace time.Duration, args, environment []string) ([]byte, error) {
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
	case <-time.After(grace + grace): // SIGKILL came after the first
		return nil, context.Cause(ctx) // not read here: it may still be written to
	}
}
