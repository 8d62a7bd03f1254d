package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/settings"
)

// someFaults are a fatal XID of one board, one that was resolved, and another board that is gone.
func someFaults() []canonical.Fault {
	return []canonical.Fault{
		{Hostname: "n", GPU: "3", UUID: "GPU-3", PCIBusID: "0000:1b:00", Model: "NVIDIA H100", Code: 79, At: time.Unix(1_800_000_000, 0).UTC(), Action: canonical.ActionRebootNode, Recovers: true, Decoded: true},
		{Hostname: "n", GPU: "3", UUID: "GPU-3", Code: 95, At: time.Unix(1_800_000_030, 0).UTC(), Resolved: true, Last: true, Count: 2, Action: canonical.ActionResetGPU},
		{Hostname: "n", GPU: "4", UUID: "GPU-4", At: time.Unix(1_800_000_060, 0).UTC()},
	}
}

// keptIn returns a state file in which the faults of two sources were kept during a boot.
func keptIn(t *testing.T, boot string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.json")
	f := openState(path, boot, slog.New(slog.DiscardHandler))
	if f.unread != nil || len(f.notes()) != 0 || len(f.of("here", true)) != 0 {
		t.Fatalf("without a file: %v, %v", f.unread, f.of("here", true))
	}
	f.keep("here", someFaults())
	f.keep("there", someFaults()[:1])
	return path
}

// TestStateFileOutlivesARestart: what was kept is known after a restart during the same boot, and a
// source whose faults are resolved has none in the file.
func TestStateFileOutlivesARestart(t *testing.T) {
	path := keptIn(t, "boot-1")
	f := openState(path, "boot-1", slog.New(slog.DiscardHandler))
	if got := f.of("here", true); !reflect.DeepEqual(got, someFaults()) {
		t.Errorf("of this machine's source:\n%+v", got)
	}
	if got := f.of("there", false); !reflect.DeepEqual(got, someFaults()[:1]) {
		t.Errorf("of the other source:\n%+v", got)
	}
	f.keep("here", nil)
	f = openState(path, "boot-1", slog.New(slog.DiscardHandler))
	if len(f.of("here", true)) != 0 || len(f.of("there", false)) != 1 {
		t.Errorf("after they were resolved: %+v, %+v", f.of("here", true), f.of("there", false))
	}
}

// TestStateFileForgetsOnReboot: another boot id resolves the faults of this machine's boards, and of no
// others; an unknown one resolves nothing.
func TestStateFileForgetsOnReboot(t *testing.T) {
	for _, test := range []struct {
		now         string
		here, there int
	}{{"boot-2", 0, 1}, {"boot-1", 3, 1}, {"", 3, 1}} {
		f := openState(keptIn(t, "boot-1"), test.now, slog.New(slog.DiscardHandler))
		if here, there := len(f.of("here", true)), len(f.of("there", false)); here != test.here || there != test.there {
			t.Errorf("boot %q: %d and %d faults, want %d and %d", test.now, here, there, test.here, test.there)
		}
	}
}

// TestStateFileThatCannotBeRead: it is told of, in the log and on the landing page, and no board may count
// as ok, whatever is written then, until this machine is rebooted.
func TestStateFileThatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{"cut short": `{"boot_id":"boot-1","faults":{"he`, "empty": "", "other JSON": "{}"} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		f := openState(path, "boot-1", slog.New(slog.NewTextHandler(&log, nil)))
		if f.unread == nil || len(f.notes()) != 1 || !strings.Contains(f.notes()[0].Cause, path) || !strings.Contains(log.String(), "the health of every GPU is unknown") {
			t.Errorf("%s: %v, %v\n%s", name, f.unread, f.notes(), &log)
		}
		f.keep("here", someFaults())
		if after := openState(path, "boot-2", slog.New(slog.DiscardHandler)); after.keep("here", nil) { // and the program restarts in that boot
			if again := openState(path, "boot-2", slog.New(slog.DiscardHandler)); again.doubts(true) || !again.doubts(false) {
				t.Errorf("%s: after a reboot and a restart: %t, %t", name, again.doubts(true), again.doubts(false))
			}
		}
		f.keep("here", someFaults())
		for boot, want := range map[string]int{"boot-1": 3, "boot-2": 0} {
			again := openState(path, boot, slog.New(slog.DiscardHandler))
			if !again.doubts(false) || again.doubts(true) != (boot == "boot-1") || len(again.of("here", true)) != want {
				t.Errorf("%s, then written, in %s: %t, %t, %v", name, boot, again.doubts(false), again.doubts(true), again.of("here", true))
			}
		}
	}
	if f := openState(t.TempDir(), "boot-1", slog.New(slog.DiscardHandler)); f.unread == nil {
		t.Error("a folder is read as a state file")
	}
}

// TestStateFileIsReplacedWhole: whoever reads it while it is written finds a whole file; nothing is left
// beside it; a write that fails leaves the old one, and is told of once.
func TestStateFileIsReplacedWhole(t *testing.T) {
	path := keptIn(t, "boot-1")
	var log bytes.Buffer
	f := openState(path, "boot-1", slog.New(slog.NewTextHandler(&log, nil)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			f.keep("here", someFaults()[:i%3])
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		text, err := os.ReadFile(path)
		if err != nil || !json.Valid(text) {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	f.path = filepath.Join(filepath.Dir(path), "none", "state.json")
	f.keep("here", nil)
	f.keep("here", someFaults())
	if n := strings.Count(log.String(), "cannot write the state file"); n != 1 {
		t.Errorf("told of %d times:\n%s", n, &log)
	}
	if again := openState(path, "boot-1", slog.New(slog.DiscardHandler)); again.unread != nil {
		t.Errorf("after failed writes: %v", again.unread)
	}
}

// TestStateFileName: --state.file wins over the unit's folder.
func TestStateFileName(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")
	o := options{Options: settings.NewOptions()}
	if got := o.stateFile(); got != "/var/lib/a/state.json" {
		t.Errorf("from the unit: %q", got)
	}
	if o.StateFile = "/srv/s.json"; o.stateFile() != "/srv/s.json" {
		t.Errorf("from the flag: %q", o.stateFile())
	}
	t.Setenv("STATE_DIRECTORY", "")
	if o.StateFile = ""; o.stateFile() != "" {
		t.Errorf("without either: %q", o.stateFile())
	}
}

// TestStateFileOfOneSource: a source that is read alone has the faults that were kept under another spelling of its URL.
func TestStateFileOfOneSource(t *testing.T) {
	path := keptIn(t, "boot-1")
	f := openState(path, "boot-1", slog.New(slog.DiscardHandler))
	f.keep(switches, someFaults()[:1])
	if f.adopt("elsewhere"); len(f.of("elsewhere", true)) != 4 || len(f.of("here", true)) != 0 || len(f.of(switches, true)) != 1 {
		t.Errorf("%+v", f.state)
	}
	f.keep("there", someFaults()[:1])
	if others := f.unreadSources([]string{"there"}); !slices.Equal(others, []string{"elsewhere"}) {
		t.Errorf("not read: %v", others)
	}
}

// TestStateFileThatCannotBeWritten: that is told of at the start, and it is written once it can be.
func TestStateFileThatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	var log bytes.Buffer
	f := openState(filepath.Join(folder, "state.json"), "boot-1", slog.New(slog.NewTextHandler(&log, nil)))
	if n := f.notes(); len(n) != 1 || !strings.Contains(n[0].Remedy, "create its folder") || !strings.Contains(log.String(), "cannot write the state file") {
		t.Errorf("%v\n%s", n, &log)
	}
	if f.keep("here", someFaults()) {
		t.Error("it says that it wrote the file")
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if !f.keep("here", someFaults()) || len(f.notes()) != 0 {
		t.Errorf("%v\n%s", f.notes(), &log)
	}
}
