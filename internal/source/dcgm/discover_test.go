//go:build linux

package dcgm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// recut changes the instances of board 1 while w runs.
func (w *world) recut(instances ...dcgmtest.Instance) {
	w.t.Helper()
	w.scenario.GPUs = slices.Clone(w.scenario.GPUs)
	w.scenario.GPUs[1].Instances = instances
	w.set()
}

// New instances reuse the numbers of old ones: what the running dmon prints
// under these numbers is never attributed to the new ones.
func TestRecut(t *testing.T) {
	t.Parallel()
	var driver atomic.Value
	driver.Store([]string{"gi7", "gi8"})
	w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards()}, func(o *Options) {
		o.probes.Instances = func() []string { return driver.Load().([]string) }
	})
	const before, after = "0 1/7 1/8", "0 1/3 1/9"
	w.until("two instances", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == before })
	w.recut(dcgmtest.Instance{ID: 9, Entity: 7}, dcgmtest.Instance{ID: 3, Entity: 8})
	driver.Store([]string{"gi9", "gi3"})
	begun := time.Now()
	starts := len(w.starts(""))
	w.until("two others", func(b *raw.Batch, err error) bool {
		got := devices(b, "POWER", false)
		if got != before && got != after && got != "" || err != nil {
			t.Errorf("a mixture: %s, %v", got, err)
		}
		if got == after && len(w.starts("")) == starts {
			t.Error("the old dmon's output is attributed to the new instances")
		}
		return devices(b, "SMACT", false) == after
	})
	t.Logf("after %s", time.Since(begun))
	if d, p := w.stream(device).Restarts, w.stream(profiling).Restarts; d != 1 || p != 1 || w.log.count("WARN") != 0 {
		t.Errorf("%d and %d restarts", d, p)
	}
}

// If the driver's list is not available, dmon's rows reveal a change: those of
// removed instances are missing or blank.
func TestRecutThatDmonTells(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards()})
	w.until("two instances", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == "0 1/7 1/8" })
	w.scenario.Readings = []dcgmtest.Reading{{Entity: "GPU-I 8", Blank: true}}
	w.recut(dcgmtest.Instance{ID: 7, Entity: 7}, dcgmtest.Instance{ID: 11, Entity: 9})
	w.until("another", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == "0 1/7 1/11" })
}

// answers are the outputs of commands, by their first words; "hangs" stands for no answer.
type answers map[string]string

func (a answers) ask(ctx context.Context, path string, args []string) answer {
	for words, text := range a {
		if !strings.HasPrefix(path+" "+strings.Join(args, " "), words) {
			continue
		}
		if text == "hangs" {
			ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errSilent)
			defer cancel()
			<-ctx.Done()
			return answer{err: context.Cause(ctx), started: true}
		}
		return answer{stdout: []byte(text), started: true}
	}
	return answer{code: 255, stderr: "Error: what?", started: true}
}

const (
	listing    = "| GPU ID | Device Information |\n| 0 | Device UUID: " + uuid0 + " |\n| 1 | Device UUID: " + uuid1 + " |\n"
	cutListing = "| GPU 1 | GPU " + uuid1 + " (EntityID: 1) |\n| -> I 1/7 | GPU Instance (EntityID: 7) |\n"
)

// asked returns a source whose commands have these answers, and its log.
func asked(a answers) (*Source, *logged) {
	w := &logged{}
	s := New(Options{Logger: w.logger(), probes: noProbes})
	s.ask = a.ask
	return s, w
}

// The first start waits for the identity of the node's devices, for a limited time.
func TestTheFirstStartWaits(t *testing.T) {
	never := answers{"dcgmi discovery -l": "hangs", "dcgmi discovery -c": "hangs"}
	alone := answers{"dcgmi discovery -l": listing} // no -c: instances are unknown
	refused := answers{}
	tests := []struct {
		name   string
		answer []answers // from one second to the next
		after  time.Duration
		boards int
		says   string
	}{
		{"at once", []answers{alone}, 0, 2, ""},
		{"on the second try", []answers{refused, alone}, time.Second, 2, ""},
		{"refused for long", []answers{refused}, 5 * time.Second, 0, "dcgmi discovery -l: "},
		{"silent for long", []answers{never}, 12 * time.Second, 0, "dcgmi discovery -l: no answer within 12s of the start"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := asked(nil)
				begun := time.Now()
				s.ask = func(ctx context.Context, path string, args []string) answer {
					second := int(time.Since(begun) / time.Second)
					return tt.answer[min(second, len(tt.answer)-1)].ask(ctx, path, args)
				}
				v, err := s.settle(t.Context(), "dcgmi")
				if err != nil || len(v.inventory.Devices) != tt.boards || v.entities != "" {
					t.Fatalf("%+v, %v", v, err)
				}
				if took := time.Since(begun); took != tt.after {
					t.Errorf("after %s, want %s", took, tt.after)
				}
				if n := log.count("WARN", "cause=", tt.says); (n == 1) != (tt.boards == 0) {
					t.Errorf("%d lines in the log:\n%s", n, &log.text)
				}
				again, err := s.settle(t.Context(), "dcgmi")
				if again != v || err != nil || time.Since(begun) != tt.after {
					t.Error("the other stream waits too")
				}
			})
		})
	}
}

// If GPUs cannot be identified, reading fails with the reason, and succeeds once discovery works;
// dmon keeps running.
func TestLateIdentity(t *testing.T) {
	s, _ := asked(answers{})
	synctest.Test(t, func(t *testing.T) {
		if _, err := s.settle(t.Context(), "dcgmi"); err != nil {
			t.Fatal(err)
		}
	})
	s.starting.Do(func() {}) // no children
	s.join.expects = func(int) bool { return false }
	f := &feeder{stream: device}
	read := func(ms int) (*raw.Batch, error) {
		tk := f.tick(ms, "POWER=1")
		tk.epoch = 1
		s.ring.push(tk)
		b := &raw.Batch{}
		return b, s.Read(t.Context(), b)
	}
	uuids := func(ms int) string {
		b, err := read(ms)
		if err != nil {
			t.Fatal(err)
		}
		return devices(b, "POWER", true)
	}
	refused := func(ms int, says string) {
		t.Helper()
		b, err := read(ms)
		e, ok := errors.AsType[*source.Error](err)
		if !ok || e.Failure != source.Broken || !strings.Contains(e.Cause, says) || !strings.Contains(e.Remedy, "dcgmi discovery -l") || len(b.Samples) > 0 {
			t.Errorf("%v after\n%v", err, b.Samples)
		}
	}
	refused(0, `their UUIDs are not known: dcgmi discovery -l: `)
	<-s.surveys // requested by the failure
	refused(500, "what?")
	if len(s.surveys) > 0 {
		t.Error("it surveys too early")
	}
	refused(1001, "what?")
	if len(s.surveys) == 0 {
		t.Error("no survey is requested")
	}
	stranger := strings.ReplaceAll(listing, "| 0 |", "| 5 |")
	for _, text := range []string{stranger, listing} {
		s.ask = answers{"dcgmi discovery -l": text, "dcgmi discovery -c": ""}.ask
		if err := s.survey(t.Context(), "dcgmi"); err != nil {
			t.Fatal(err)
		}
		if text == stranger {
			refused(1050, "lists none of the GPUs that dcgmi dmon reads")
		}
	}
	if got := uuids(1100); got != "0="+uuid0 || s.epoch() != 1 {
		t.Errorf("%s in epoch %d", got, s.epoch())
	}
}

// A survey that fails or is incomplete changes nothing.
func TestViewOutlivesFailedSurveys(t *testing.T) {
	s, _ := asked(answers{"dcgmi discovery -l": listing, "dcgmi discovery -c": cutListing})
	first, err := s.settle(t.Context(), "dcgmi")
	if err != nil || first.entities != "0,i:7" || first.epoch != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, a := range []answers{{}, {"dcgmi discovery -l": listing}, {"dcgmi discovery -c": cutListing}} {
		s.ask = a.ask
		s.stale.Store(true)
		if v, err := s.settle(t.Context(), "dcgmi"); v != first || err != nil {
			t.Errorf("%+v, %v after %v", v, err, a)
		}
	}
	s.ask = answers{"dcgmi discovery -l": listing, "dcgmi discovery -c": strings.ReplaceAll(cutListing, "1/7", "1/9")}.ask
	s.stale.Store(true)
	if v, err := s.settle(t.Context(), "dcgmi"); err != nil || v.epoch != 2 || v.entities != first.entities {
		t.Errorf("another instance under the same number: %+v, %v", v, err)
	}
}

// The limit of NVLinks follows nvidia-smi from survey to survey, survives one without
// its answer, and restarts no stream.
func TestLinksFollowSurveys(t *testing.T) {
	s, _ := asked(nil)
	s.opts.probes.LookPath = func(name string) (string, error) { return name, nil }
	const inactive = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
	for _, tt := range []struct {
		links string
		want  float64
	}{
		{"", 0},
		{"GPU 0: H100 (UUID: " + uuid0 + ")\n" + inactive, 0},
		{smiLinks, 106.248e9},
		{"", 106.248e9},
		{strings.Replace(smiLinks, "26.562 GB/s", "<inactive>", 1), 53.124e9},
		{"GPU 0: H100 (UUID: " + uuid0 + ")\n" + inactive, 0},
	} {
		s.ask = answers{"dcgmi discovery -l": listing, "dcgmi discovery -c": cutListing, "nvidia-smi nvlink -s": tt.links}.ask
		s.stale.Store(true)
		v, err := s.settle(t.Context(), "dcgmi")
		if err != nil || v.inventory.Devices[0].NVLinkLimit != tt.want || v.epoch != 1 {
			t.Errorf("%+v, %v; want %v", v, err, tt.want)
		}
	}
}

func TestHangingNvidiaSMI(t *testing.T) {
	t.Parallel()
	f := newSMI(t)
	f.says("hangs", "")
	f.says("query", smiQuery)
	w := newWorld(t, dcgmtest.Scenario{}, f.install)
	w.untilWhole()
	if got := devices(&w.last, "POWER", true); got != "0="+uuid0+" 1="+uuid1 {
		t.Errorf("devices %s", got)
	}
	var a asker
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if said := a.ask(ctx, f.exe, []string{"-L"}); !errors.Is(said.err, context.DeadlineExceeded) || said.stdout != nil {
		t.Errorf("%+v", said)
	}
	if err := os.Remove(f.exe + ".hangs"); err != nil {
		t.Fatal(err)
	}
	if said := a.ask(t.Context(), f.exe, []string{"--query-gpu=index,uuid,x"}); said.err != nil || string(said.stdout) != smiQuery {
		t.Errorf("%+v", said)
	}
}

func TestAskIsBounded(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "flood")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nexec yes\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var a asker
	if said := a.ask(t.Context(), exe, nil); !errors.Is(said.err, errTalkative) || said.stdout != nil {
		t.Errorf("%v, %d bytes", said.err, len(said.stdout))
	}
	if said := a.ask(t.Context(), exe+"-not", nil); said.started || !errors.Is(said.err, os.ErrNotExist) {
		t.Errorf("%+v", said)
	}
}

// If the NvSwitch module is not loaded, discovery fails after its list of GPUs. The
// list is used; the failure is logged once, and in Notes while it lasts.
func TestListWithoutSwitches(t *testing.T) {
	eachVersion(t, "in", func(t *testing.T, version string) {
		refused := dcgmtest.Failure{Kind: dcgmtest.SwitchesRefused, Code: -33}
		w := newWorld(t, dcgmtest.Scenario{Version: version, GPUs: dcgmtest.Boards(16), Failures: []dcgmtest.Failure{refused}})
		w.untilWhole()
		if got := len(strings.Fields(devices(&w.last, "POWER", true))); got != 16 {
			t.Errorf("%d GPUs", got)
		}
		notes := w.Notes()
		if len(notes) != 1 || !strings.Contains(notes[0].Cause, "Cannot get NvSwitch list") || !strings.Contains(notes[0].Remedy, "dcgmi modules -l") {
			t.Errorf("notes %+v", notes)
		}
		w.stale.Store(true)
		for range 2 {
			w.Restart("in a test")
			w.untilWhole()
		}
		if n := w.log.count("Cannot get NvSwitch list"); n != 1 {
			t.Errorf("said %d times", n)
		}
		w.set()
		w.Restart("in a test")
		w.until("no notes", func(*raw.Batch, error) bool { return len(w.Notes()) == 0 })
	})
}

// TestOlderEngine: if the host engine does not know a field that dcgmi knows, the fields
// newer than DCGM 4.0, or requested only by the counters file, are left out, and a note says
// so. Once the host engine knows it, all are read again.
func TestOlderEngine(t *testing.T) {
	for _, tt := range []struct {
		kind    dcgmtest.Kind
		code    int
		field   int
		without string // in the note
	}{
		{dcgmtest.FieldGroupRefused, -1, 1212, "without 153,171,173,175,346,1204,"},
		{dcgmtest.FieldGroupRefused, -1, 191, "without 153,171,173,175,191,346,1204,"},
		{dcgmtest.WatchRefused, -13, 1523, "without 153,171,173,175,346,1204,"},
	} {
		page, _ := NewPage([]Counter{{Name: "DCGM_FI_DEV_FAN_SPEED", Type: "gauge", Field: Unknown}}, func(int) bool { return true })
		refused := dcgmtest.Failure{Kind: tt.kind, Code: tt.code, Field: tt.field}
		w := newWorld(t, dcgmtest.Scenario{Version: "4.6.0", GPUs: dcgmtest.Boards(2), Failures: []dcgmtest.Failure{refused}}, func(o *Options) { o.Page = page })
		w.until("a note, and the fields of an older engine", func(b *raw.Batch, err error) bool {
			return err == nil && len(w.Notes()) == 1 && strings.Contains(w.Notes()[0].Cause, tt.without) && has(b, "POWER") && has(b, "RRAM")
		})
		if has(&w.last, "GTLIMIT") {
			t.Errorf("%v: a field that an older engine lacks", refused)
		}
		if n := w.log.count("does not know some of the device fields"); n != 1 {
			t.Errorf("%v: said %d times", refused, n)
		}
		w.set()
		w.Restart("in a test")
		w.until("all fields again", func(b *raw.Batch, err error) bool { return err == nil && len(w.Notes()) == 0 && has(b, "GTLIMIT") })
	}
}

// The devices of a selection must exist: Check and Read report missing ones in
// its words, and Read retries.
func TestSelectionThatIsNotThere(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}, func(o *Options) { o.Choose = selection.Request{GPUs: "99"}.Select })
	const words = "--gpus=99: there is no GPU 99; this node has 0-1; see which GPUs the host engine knows: dcgmi discovery -l"
	e, ok := errors.AsType[*source.Error](w.Check(t.Context()))
	if !ok || e.Error() != words {
		t.Errorf("%v", e)
	}
	if e := w.untilFailure(); e.Error() != words || len(w.starts("")) > 0 {
		t.Errorf("%v", e)
	}
	w.scenario.GPUs = slices.Clone(dcgmtest.Boards(100))
	w.set()
	w.until("GPU 99", func(b *raw.Batch, _ error) bool { return devices(b, "POWER", false) == "99" })
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure dcgmtest.Failure
		wish    string
		want    source.Failure // "" is none
	}{
		"all is well":         {wish: "0,1"},
		"no host engine":      {failure: dcgmtest.Failure{Kind: dcgmtest.HostEngineDown}, wish: "99"},
		"a list that refuses": {failure: dcgmtest.Failure{Kind: dcgmtest.ListRefused, Code: -33}},
		"no such GPU":         {wish: "7", want: source.Broken},
		"no such word":        {wish: "x", want: source.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dcgmtest.Scenario{}
			if tt.failure.Kind != "" {
				s.Failures = []dcgmtest.Failure{tt.failure}
			}
			w := newWorld(t, s, func(o *Options) { o.Choose = selection.Request{GPUs: tt.wish}.Select })
			err := w.Check(t.Context())
			if e, ok := errors.AsType[*source.Error](err); ok != (tt.want != "") || ok && (e.Failure != tt.want || e.Remedy == "") {
				t.Errorf("%v", err)
			}
			if err == nil && tt.failure.Kind == "" {
				w.untilWhole()
				if n := len(w.discoveries("")); n != 2 {
					t.Errorf("%d discoveries before the first stream", n)
				}
			}
		})
	}
	for path, want := range map[string]source.Failure{"/no/dcgmi": source.HostEngineUnavailable, "/etc/passwd": source.PermissionDenied} {
		s := New(Options{Path: path, probes: noProbes})
		if e, ok := errors.AsType[*source.Error](s.Check(t.Context())); !ok || e.Failure != want {
			t.Errorf("%s: %v", path, e)
		}
	}
}

// After a failure the node may number its boards differently, and readings use
// the new numbers.
func TestRenumberedBoards(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{})
	w.untilWhole()
	if got := devices(&w.last, "POWER", true); got != "0="+uuid0+" 1="+uuid1 {
		t.Fatalf("devices %s", got)
	}
	w.scenario.GPUs = slices.Clone(w.scenario.GPUs)
	w.scenario.GPUs[0].UUID, w.scenario.GPUs[1].UUID = uuid1, uuid0
	w.set(dcgmtest.Failure{Kind: dcgmtest.HostEngineDies}, dcgmtest.Failure{Kind: dcgmtest.HostEngineDown})
	w.untilFailure()
	w.set()
	w.untilWhole()
	if got := devices(&w.last, "POWER", true); got != "0="+uuid1+" 1="+uuid0 {
		t.Errorf("devices %s", got)
	}
}

// Ticks printed or waiting when entities began to identify other devices are void.
func TestTicksOfAnEarlierEpochAreVoid(t *testing.T) {
	s := New(Options{probes: noProbes})
	board := func(uuid string) Inventory {
		return boardsOf(uuid)
	}
	s.join.expects = func(int) bool { return false }
	f := &feeder{stream: device}
	push := func(epoch uint64, ms int, says ...string) {
		tk := f.tick(ms, says...)
		tk.epoch = epoch
		s.ring.push(tk)
	}
	var b raw.Batch
	s.adopt(board(uuid0), "")
	push(1, 0, "POWER=1", "TMPTR=30")
	if !s.next(&b) || devices(&b, "POWER", true) != "0="+uuid0 {
		t.Fatalf("%v", b.Samples)
	}
	push(1, 100, "POWER=2", "TMPTR=31")
	s.adopt(board(uuid1), "")
	push(1, 200, "POWER=3", "TMPTR=32")
	b.Reset()
	if s.next(&b) {
		t.Errorf("the other board reads\n%v", b.Samples)
	}
	push(2, 300, "POWER=4")
	if !s.next(&b) || devices(&b, "POWER", true) != "0="+uuid1 || has(&b, "TMPTR") || b.Samples[0].Value != 4 {
		t.Errorf("the other board reads\n%v", b.Samples)
	}
}
