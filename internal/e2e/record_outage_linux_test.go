package e2e

import (
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// limitFiles limits the size of files that the process may write. It simulates a disk that is full,
// and no longer full, without a file system of our own.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: bytes, Max: math.MaxUint64}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), 1 /* RLIMIT_FSIZE */, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Skip("cannot limit the size of files: ", errno)
	}
}

// eventually polls until is holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("after %s: %s", patience, what)
}

// bodyOf returns the body of a URL.
func bodyOf(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestRecordingOutlivesAFullDisk: the recording reports the outage, continues when there is space,
// and counts what is missing.
func TestRecordingOutlivesAFullDisk(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kpulse.rec")
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	c, err := startChild(exec.Command(itself(t), "--web.listen-address=127.0.0.1:0", "--backend=replay", "--poll=0.1", "--record="+file), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Cmd.Process.Kill()
	eventually(t, "nothing is recorded", func() bool { return size() > 0 })
	if page := bodyOf(t, c.URL); !strings.Contains(page, "Readings are recorded in <code>"+file) || strings.Contains(page, "Nothing can be written") {
		t.Errorf("the landing page does not report a working recording:\n%s", page)
	}

	limitFiles(t, c.Cmd.Process.Pid, uint64(size())+3000)
	failed := regexp.MustCompile(`(?m)^kpulse_proxy_record_failures_total [2-9]`)
	eventually(t, "no failed write is counted", func() bool { return failed.MatchString(bodyOf(t, c.URL+"/-/metrics")) })
	if page := bodyOf(t, c.URL); !strings.Contains(page, "Nothing can be written now: write "+file+": file too large") {
		t.Errorf("the landing page does not report the outage:\n%s", page)
	}
	limitFiles(t, c.Cmd.Process.Pid, math.MaxUint64)
	eventually(t, "recording does not continue", func() bool { return !strings.Contains(bodyOf(t, c.URL), "Nothing can be written now") })
	if counts := bodyOf(t, c.URL+"/-/metrics"); !regexp.MustCompile(`(?m)^kpulse_proxy_record_missed_readings_total [1-9]`).MatchString(counts) {
		t.Error("no missed reading is counted")
	}

	if err := c.Stop(); err != nil {
		t.Errorf("%v\n%s", err, c.Logged())
	}
	// It plays, without the reading that was cut.
	played, err := exec.Command(itself(t), "--replay="+file, "--export=all").CombinedOutput()
	if err != nil || !strings.Contains(string(played), "a part of the capture is not played") || strings.Count(string(played), "\n") < 30 {
		t.Errorf("%v\n%s", err, played)
	}
	log := c.Logged()
	for _, want := range []string{"recording fails", "recording continues\""} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "recording fails"); n != 1 {
		t.Errorf("one outage is logged %d times", n)
	}
}
