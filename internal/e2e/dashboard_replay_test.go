package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// position matches the tick in the header, and the number of ticks.
var position = regexp.MustCompile(`(▶|‖ paused|■ end) +(\d+)(?:/(\d+))? ×([0-9.]+)`)

// at returns the sign and the tick in the header.
func (tm *terminal) at() (sign string, tick int) {
	line, _, _ := strings.Cut(tm.screen(), "\n")
	found := position.FindStringSubmatch(line)
	if found == nil {
		return "", 0
	}
	tick, _ = strconv.Atoi(found[2])
	return found[1], tick
}

// pages writes 400 expositions: in the n-th, GPU 0 is at n °C, and from the 91st on at 1 °C and so
// on again.
func pages(t *testing.T) string {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-aa\",modelName=\"NVIDIA H200\",Hostname=\"dgx-7\"} %d\n# EOF\n", i%90+1)
	}
	path := filepath.Join(t.TempDir(), "saved.prom")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDashboardReplays steers a replay with keys: the screen shows the reading of the tick in the
// header.
func TestDashboardReplays(t *testing.T) {
	t.Parallel()
	tm := newTerminal(t, [2]string{"120", "40"}, nil, itself(t), "--tui", "--poll=300ms", "--replay="+pages(t))
	tm.until("dgx-7", "▶")
	tm.keys("Space")
	tm.until("‖ paused")
	shows := func(tick int) {
		t.Helper()
		tm.await(fmt.Sprintf("tick %d", tick), func() bool {
			sign, at := tm.at()
			return sign == "‖ paused" && at == tick && strings.Contains(tm.screen(), fmt.Sprintf("%d°C", tick))
		})
	}
	tm.keys("R")
	shows(1)
	tm.keys(".")
	shows(2)
	tm.keys(":step 17", "Enter")
	shows(19)
	tm.keys(",", ",")
	shows(17)

	// A pause longer than the ten periods for which a stream may be silent does not mean that the
	// source is down.
	time.Sleep(3500 * time.Millisecond)
	shows(17)
	tm.keys("Space")
	tm.await("the tick after", func() bool { sign, tick := tm.at(); return sign == "▶" && tick > 17 })
	tm.keys("}", "}", "}", "}")
	tm.until("×16", "■ end", "400/400", "40°C")
	tm.keys("Space")
	tm.await("the beginning", func() bool { _, tick := tm.at(); return tick > 0 && tick < 400 })
	tm.keys("q")
	tm.until("EXIT 0")
}
