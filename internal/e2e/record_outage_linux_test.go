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

	"github.com/kpulse/kpulse-proxy/internal/source/recording"
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

// parsed returns a recording, which must be complete.
func parsed(t *testing.T, file string) *recording.Recording {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Parse(text)
	if err != nil || rec.Torn != 0 || len(rec.Asked) == 0 {
		t.Fatalf("%s: %v, torn at %d, %d readings", filepath.Base(file), err, rec.Torn, len(rec.Asked))
	}
	return rec
}

// TestRecordingOutlivesAFullDisk: the recording reports the outage, continues when there is space,
// and counts what is missing. A file that is removed is created again.
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

	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a renamed file is not created again", func() bool { return size() > 0 })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a removed file is not created again", func() bool { return size() > 0 })
	if err := c.Stop(); err != nil {
		t.Errorf("%v\n%s", err, c.Logged())
	}
	if rec := parsed(t, file+".old"); rec.Missed == 0 {
		t.Error("the recording does not say that readings are missing")
	}
	if rec := parsed(t, file); rec.Missed != 0 {
		t.Errorf("the last file lacks %d readings", rec.Missed)
	}
	log := c.Logged()
	for _, want := range []string{"recording fails", "recording continues\"", "was removed, renamed or cut"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "recording fails"); n != 1 {
		t.Errorf("one outage is logged %d times", n)
	}
}
