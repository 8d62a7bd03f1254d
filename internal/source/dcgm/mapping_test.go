package dcgm

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/raw"
)

func TestMapping(t *testing.T) {
	link := &fstest.MapFile{Mode: fs.ModeNamedPipe}
	dir := fstest.MapFS{
		"0":      {Data: []byte("4711\n")},
		"1":      {Data: []byte("  4711 \r\n\n4712\n4711\n4713")},
		"2":      {Data: nil},
		"3":      {Data: []byte("\n \n\x1b\n")},
		"2.1":    {Data: []byte("99\n")},
		"10":     {Data: []byte(strings.Repeat("x", 300) + "\nshort\n")},
		"00":     {Data: []byte("no\n")},
		"2.":     {Data: []byte("no\n")},
		".1":     {Data: []byte("no\n")},
		"1.2.3":  {Data: []byte("no\n")},
		"-1":     {Data: []byte("no\n")},
		"1e1":    {Data: []byte("no\n")},
		"job":    {Data: []byte("no\n")},
		"0.tmp":  {Data: []byte("no\n")},
		"4":      link,
		"5/file": {Data: []byte("no\n")},
	}
	want := Jobs{
		"0": {"4711"}, "1": {"4711", "4712", "4713"}, "2.1": {"99"}, "10": {"short"},
	}
	m := NewMapping(dir, "/run/jobs")
	if changed, err := m.Refresh(time.Now()); err != nil || !changed || !maps.EqualFunc(m.jobs, want, slices.Equal) {
		t.Errorf("%v, %v: %v", changed, err, m.jobs)
	}
	for _, tt := range []struct {
		gpu, instance string
		want          []string
	}{
		{"0", "", []string{"4711"}}, {"0", "3", []string{"4711"}}, {"2", "1", []string{"99"}}, {"2", "", nil}, {"2", "2", nil}, {"7", "", nil},
	} {
		if got := m.jobs.Of(tt.gpu, tt.instance); !slices.Equal(got, tt.want) {
			t.Errorf("GPU %s, instance %s: %q", tt.gpu, tt.instance, got)
		}
	}
}

func TestMappingOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	m := NewMapping(diag.Directory(dir), dir)
	now := time.Now()
	_, err := m.Refresh(now)
	want := "cannot read the job mapping directory " + dir + ": no such file or directory; create it and make it readable for this user, or leave out --hpc-job-mapping-dir"
	if err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, again := m.Refresh(now.Add(time.Millisecond)); again == nil {
		t.Error("the directory is still not there")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("0", "7\n")
	write("target", "8\n")
	if err := os.Symlink("target", filepath.Join(dir, "1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "2")); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.WriteFile(elsewhere, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "4")); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if err := syscall.Mkfifo(filepath.Join(dir, "3"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := m.Refresh(now.Add(time.Second))
	outside := dir + "/4 is a link out of the directory, and is not read; write a file there instead"
	if err == nil || err.Error() != outside || !changed || !maps.EqualFunc(m.jobs, Jobs{"0": {"7"}, "1": {"8"}}, slices.Equal) {
		t.Errorf("%v, %v: %v", changed, err, m.jobs)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if changed, err := m.Refresh(now.Add(2 * time.Second)); err == nil || !changed || len(m.jobs) != 0 {
		t.Errorf("%v, %v: %v", changed, err, m.jobs)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMapping(diag.Directory(file), file).Refresh(now); err == nil {
		t.Error("a file is not a directory")
	}
}

// A file beyond the bound gives no part of an id.
func TestMappingIsBounded(t *testing.T) {
	dir := fstest.MapFS{"0": {Data: []byte(strings.Repeat("12345678\n", maxMappingBytes/9) + "12345678\n")}}
	many := strings.Builder{}
	for i := range 1000 {
		fmt.Fprintf(&many, "job%d\n", i)
	}
	dir["1"] = &fstest.MapFile{Data: []byte(many.String())}
	m := NewMapping(dir, "d")
	if _, err := m.Refresh(time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := m.jobs.Of("0", ""); !slices.Equal(got, []string{"12345678"}) {
		t.Errorf("%q", got)
	}
	if got := m.jobs.Of("1", ""); len(got) != maxJobs || got[maxJobs-1] != "job63" {
		t.Errorf("%d jobs", len(got))
	}
}

// A Writer follows the directory of jobs. While nothing changes there, the label blocks stay.
func TestWriteFollowsTheDirectoryOfJobs(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter("", dir, nil)
	w.SetInventory(inventory(nil))
	var last *raw.Dict
	for second, step := range []struct{ write, want string }{{"7\n", "7"}, {"", "7"}, {"", "7"}, {"88\n", "88"}} {
		if step.write != "" {
			if err := os.WriteFile(filepath.Join(dir, "0"), []byte(step.write), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var b raw.Batch
		w.Write(&b, noon.Add(time.Duration(second)*time.Second), fixed{"TMPTR": {40}})
		if text := string(b.AppendText(nil)); !strings.Contains(text, `,hpc_job="`+step.want+`"} 40`) {
			t.Errorf("second %d: no job %s in\n%s", second, step.want, text)
		}
		if second > 0 && (b.Dict == last) != (step.write == "") {
			t.Errorf("second %d: other label blocks: %v", second, b.Dict != last)
		}
		last = b.Dict
	}
}

// A directory of jobs that cannot be read is logged once, and again at its next failure.
func TestWriteLogsJobsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "jobs")
	var log strings.Builder
	w := NewWriter("", dir, slog.New(slog.NewTextHandler(&log, nil)))
	for second, want := range []int{1, 1, 1, 1, 2, 2} {
		var err error
		switch second {
		case 2:
			err = os.Mkdir(dir, 0o755)
		case 4:
			err = os.Remove(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Write(&raw.Batch{}, noon.Add(time.Duration(second)*time.Second), fixed{})
		if got := strings.Count(log.String(), `without their jobs" cause="cannot read the job mapping directory `); got != want {
			t.Errorf("second %d: logged %d times, want %d", second, got, want)
		}
	}
}
