package dcgmtest_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// output is the complete output of a fake.
type output struct {
	stdout, stderr string
	code           int // -1 after a signal
}

// run runs a fake of s to its end, with arguments separated by blanks.
func run(t *testing.T, s dcgmtest.Scenario, args string) output {
	t.Helper()
	return runExe(t, dcgmtest.Install(t, s), args)
}

func runExe(t *testing.T, exe, args string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exe, strings.Fields(args)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(got, " ", "·"), strings.ReplaceAll(want, " ", "·"))
	}
}
