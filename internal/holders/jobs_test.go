package holders

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// problem returns a failure as text, "" for none.
func problem(f *canonical.Failure) string {
	if f == nil {
		return ""
	}
	return f.Error()
}

func TestParseJob(t *testing.T) {
	long := strings.Repeat("x", maxJobText)
	const wrong = ": no key=value that can be served; write such as user=ada, in at most 256 bytes of UTF-8 without control characters"
	for _, tt := range []struct {
		text string
		want jobInfo
		err  string
	}{
		{"user=ada\naccount=physics\npartition=gpu\nuid=1001\n", jobInfo{"ada", "physics", "gpu", "1001"}, ""},
		{" user = ada \r\n# note\n\ncluster=c\ngpus=0,2.1\nrestarts=3", jobInfo{user: "ada"}, ""},
		{"account=a=b\npartition=", jobInfo{account: "a=b"}, ""},
		{"", jobInfo{}, ""},
		{"4711\nuser=ada", jobInfo{user: "ada"}, "7:1" + wrong},
		{"user=" + long, jobInfo{user: long}, ""},
		{"\naccount=" + long + "x\nuser=ada", jobInfo{user: "ada"}, "7:2" + wrong},
		{"user=\xff", jobInfo{}, "7:1" + wrong},
		{"user=a\x1bb\nx\npartition=p", jobInfo{partition: "p"}, "7:1" + wrong},
		{strings.Repeat("#", maxJobBytes+1), jobInfo{}, "7: more than 4096 bytes; write user, uid, account and partition only"},
	} {
		c := parseJob("7", []byte(tt.text))
		if got := problem(c.mistake); c.info != tt.want || got != tt.err {
			t.Errorf("%.40q: %+v, %v; want %+v, %s", tt.text, c.info, got, tt.want, tt.err)
		}
	}
}

// describe returns the file of a job of user.
func describe(user string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("user=" + user + "\naccount=of-" + user + "\npartition=gpu\n")}
}

// heldByJobs returns the allocations of jobs, one device each.
func heldByJobs(jobs ...string) *canonical.AllocationSet {
	set := &canonical.AllocationSet{Holders: make([]int, len(jobs))}
	for i, job := range jobs {
		set.Allocations = append(set.Allocations, canonical.Allocation{Device: i, Workload: canonical.Workload{Job: job}})
	}
	return set
}

func usersOf(f *canonical.Frame) (all []string) {
	for _, a := range f.AllocationSet.Allocations {
		all = append(all, a.User)
	}
	return all
}

// TestJobsComplete: information may come late, it stays as long as its job, and an unchanged
// set is not replaced.
func TestJobsComplete(t *testing.T) {
	dir := fstest.MapFS{"7": describe("ada"), ".8": describe("mallory"), "9": describe("bob")}
	d := NewJobs(dir, "/run/info", slog.New(slog.DiscardHandler))
	feed := d.Feed()
	set := heldByJobs("7", "8", "7", "")
	read := func(set *canonical.AllocationSet, want ...string) canonical.Frame {
		t.Helper()
		f := canonical.Frame{AllocationSet: set}
		for i := range set.Allocations {
			f.Uses = append(f.Uses, canonical.Use{NVMLUtilization: float64(i), Framebuffer: 1})
		}
		feed.Complete(&f)
		if got := usersOf(&f); !slices.Equal(got, want) {
			t.Errorf("users %q, want %q", got, want)
		}
		for i, u := range f.Uses {
			if u.NVMLUtilization != float64(i) {
				t.Errorf("uses %v", f.Uses)
			}
		}
		return f
	}
	if f := read(set, "", "", "", ""); f.AllocationSet != set {
		t.Error("nothing is known, but the set was replaced")
	}
	d.Look()
	first := read(set, "ada", "", "ada", "").AllocationSet
	if a := first.Allocations[2]; a.Account != "of-ada" || a.Partition != "gpu" || a.Device != 2 || set.Allocations[2].User != "" {
		t.Errorf("%+v of %+v", a, set.Allocations[2])
	}
	dir["10"] = describe("eve") // a job without a device
	d.Look()
	if read(set, "ada", "", "ada", "").AllocationSet != first {
		t.Error("nothing changed, but the set was replaced")
	}
	dir["8"] = describe("bob")
	d.Look()
	read(set, "ada", "bob", "ada", "")
	delete(dir, "7")
	d.Look()
	read(set, "ada", "bob", "ada", "")
	read(heldByJobs("8"), "bob")
	read(heldByJobs("8", "7"), "bob", "") // a new job with that id
	feed.Complete(&canonical.Frame{})
	f := read(set, "", "bob", "", "")
	if n := testing.AllocsPerRun(100, func() { f.AllocationSet = set; feed.Complete(&f) }); n != 0 {
		t.Errorf("%v allocations per reading", n)
	}
}

func TestJobsState(t *testing.T) {
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "info")
	d := NewJobs(diag.Directory(dir), dir, slog.New(slog.NewTextHandler(&log, nil)))
	look := func(want JobsState, complaint string) {
		t.Helper()
		d.Look()
		s := d.State()
		if got := problem(s.Problem); got != complaint {
			t.Errorf("%v, want %q", got, complaint)
		}
		if s.Problem = nil; s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	gone := "cannot read the job info directory " + dir + ": no such file or directory; create it and make it readable for this user, or leave out --hpc-job-info-dir"
	look(JobsState{}, gone)
	look(JobsState{}, gone)
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines logged, want 1:\n%s", n, &log)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	look(JobsState{}, "")
	write("12", "user=ada\nbroken\n")
	write("11", "broken\n")
	write("13", "user=bob\n")
	look(JobsState{Read: 2, Malformed: 2}, dir+`/11:1: no key=value that can be served; write such as user=ada, in at most 256 bytes of UTF-8 without control characters`)
	many := fstest.MapFS{}
	for i := range maxJobs + 1 {
		many[fmt.Sprint(i)] = &fstest.MapFile{}
	}
	d = NewJobs(many, "many", discard)
	d.Look()
	if s := d.State(); !s.Full || s.Problem == nil {
		t.Errorf("%+v", s)
	}
}
