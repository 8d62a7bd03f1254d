//go:build linux

package dcgm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/selection"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
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
	w := newWorld(t, dcgmtest.Scenario{GPUs: cutBoards()})
	const before, after = "0 1/7 1/8", "0 1/3 1/9"
	w.until("two instances", func(b *raw.Batch, _ error) bool { return devices(b, "SMACT", false) == before })
	w.recut(dcgmtest.Instance{ID: 9, Entity: 7}, dcgmtest.Instance{ID: 3, Entity: 8})
	starts := len(w.starts(""))
	w.resurvey(t.Context())
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
	if d, p := w.stream(device).Restarts, w.stream(profiling).Restarts; d != 1 || p != 1 || w.log.count("WARN") != 0 {
		t.Errorf("%d and %d restarts", d, p)
	}
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
	return answer{code: 255, printed: "Error: what?", started: true}
}

const (
	listing    = "| GPU ID | Device Information |\n| 0 | Device UUID: " + uuid0 + " |\n| 1 | Device UUID: " + uuid1 + " |\n"
	cutListing = "| GPU 1 | GPU " + uuid1 + " (EntityID: 1) |\n| -> I 1/7 | GPU Instance (EntityID: 7) |\n"
)

// asked returns a source whose commands have these answers, and its log.
func asked(a answers) (*Source, *logged) {
	w := &logged{}
	s := New(unprobed(Options{Logger: w.logger()}))
	s.ask = a.ask
	return s, w
}

// A source starts no child whose devices it cannot name, and says why.
func TestNoStartWithoutIdentity(t *testing.T) {
	for says, a := range map[string]answers{
		"dcgmi discovery -l ended with exit status 255": {},
		"dcgmi discovery -l: no answer within 7s":       {"dcgmi discovery -l": "hangs", "dcgmi discovery -c": "hangs"},
		"the host engine sees no GPU":                   {"dcgmi discovery -l": "0 GPUs found.\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := asked(a)
			if v, err := s.settle(t.Context(), "dcgmi"); v != nil || err == nil || !strings.Contains(err.Error(), says) || !s.stale.Load() {
				t.Errorf("%+v, %v; want %q", v, err, says)
			}
		})
	}
}

// What is known stays while the node is surveyed in vain, and an entity that it lacks is asked for soon.
func TestSurveysAreDue(t *testing.T) {
	s, _ := asked(answers{"dcgmi discovery -l": listing, "dcgmi profile -l": ""})
	if s.due(time.Hour) {
		t.Error("a survey is due before the first start")
	}
	if _, err := s.settle(t.Context(), "dcgmi"); err != nil {
		t.Fatal(err)
	}
	due := func(want ...time.Duration) {
		t.Helper()
		for i, at := range want {
			if s.due(at) != (i > 0) {
				t.Errorf("due after %s is %v", at, i == 0)
			}
		}
	}
	due(surveyEvery-1, surveyEvery)
	s.starting.Do(func() {}) // no children
	s.join.expects = func(int) bool { return false }
	f := &feeder{stream: device}
	tk := f.tick(0, "POWER=1")
	tk.epoch, tk.entities = 1, []dmon.Entity{{ID: "5"}}
	s.ring.push(tk)
	var b raw.Batch
	if !s.next(&b) || len(b.Samples) > 0 {
		t.Errorf("samples %v of a stranger", b.Samples)
	}
	due(surveySoon-1, surveySoon)
	s.resurvey(t.Context())
	due(surveyEvery-1, surveyEvery)
	v := *s.view.Load()
	v.inventory.Devices = slices.Clone(v.inventory.Devices)
	v.inventory.Devices[0].Lost = true
	s.view.Store(&v)
	due(surveySoon-1, surveySoon)
}

// A survey that fails or is incomplete changes nothing.
func TestViewOutlivesFailedSurveys(t *testing.T) {
	s, log := asked(answers{"dcgmi discovery -l": listing, "dcgmi discovery -c": cutListing})
	first, err := s.settle(t.Context(), "dcgmi")
	if err != nil || first.entities != "0,i:7" || first.epoch != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, a := range []answers{{}, {"dcgmi discovery -l": listing}, {"dcgmi discovery -c": cutListing}} {
		s.ask = a.ask
		s.opts.lookPath = func(name string) (string, error) { return name, nil }
		s.resurvey(t.Context())
		if v := s.view.Load(); v != first {
			t.Errorf("%+v after %v", v, a)
		}
	}
	if n := log.count("WARN", "readings continue with the known ones", "remedy="); n != 3 {
		t.Errorf("logged %d times", n)
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
	s.opts.lookPath = func(name string) (string, error) { return name, nil }
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
	f.says("list", smiList)
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
	if said := a.ask(t.Context(), f.exe, []string{"-L"}); said.err != nil || string(said.stdout) != smiList {
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

// If the NvSwitch module is not loaded, discovery fails after its list of GPUs, which is used.
func TestListWithoutSwitches(t *testing.T) {
	t.Parallel()
	refused := dcgmtest.Failure{Kind: dcgmtest.SwitchesRefused, Code: -33}
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(16), Failures: []dcgmtest.Failure{refused}})
	w.untilWhole()
	if got := len(strings.Fields(devices(&w.last, "POWER", true))); got != 16 {
		t.Errorf("%d GPUs", got)
	}
}

// TestOlderEngine: if the host engine does not know a field that dcgmi knows, the fields
// newer than DCGM 4.0 are left out, and the log says so. Once the host engine knows it, all are read again.
func TestOlderEngine(t *testing.T) {
	for _, tt := range []struct {
		kind  dcgmtest.Kind
		code  int
		field int
	}{
		{dcgmtest.FieldGroupRefused, -1, 1212},
		{dcgmtest.WatchRefused, -13, 1523},
	} {
		refused := dcgmtest.Failure{Kind: tt.kind, Code: tt.code, Field: tt.field}
		w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2), Failures: []dcgmtest.Failure{refused}})
		w.until("the fields of an older engine", func(b *raw.Batch, err error) bool {
			return err == nil && w.log.count("some fields are left out", "stream=device") > 0 && has(b, "POWER") && has(b, "RRAM")
		})
		if has(&w.last, "GTLIMIT") {
			t.Errorf("%v: a field that an older engine lacks", refused)
		}
		w.set()
		w.renew()
		w.until("all fields again", func(b *raw.Batch, err error) bool { return err == nil && has(b, "GTLIMIT") })
	}
}

// The devices of a selection must exist: Check and Read report missing ones in
// its words, and Read retries.
func TestSelectionThatIsNotThere(t *testing.T) {
	w := newWorld(t, dcgmtest.Scenario{GPUs: dcgmtest.Boards(2)}, func(o *Options) { o.Choose = selection.Request{GPUs: "99"}.Select })
	const words = "--gpus=99: there is no GPU 99; this node has 0,1; see which GPUs the host engine knows: dcgmi discovery -l"
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
		s := New(unprobed(Options{Path: path}))
		if e, ok := errors.AsType[*source.Error](s.Check(t.Context())); !ok || e.Failure != want {
			t.Errorf("%s: %v", path, e)
		}
	}
}

// Ticks printed or waiting when entities began to identify other devices are void.
func TestTicksOfAnEarlierEpochAreVoid(t *testing.T) {
	s := New(unprobed(Options{}))
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
	s.adopt(viewOf(board(uuid0)))
	push(1, 0, "POWER=1", "TMPTR=30")
	if !s.next(&b) || devices(&b, "POWER", true) != "0="+uuid0 {
		t.Fatalf("%v", b.Samples)
	}
	push(1, 100, "POWER=2", "TMPTR=31")
	s.adopt(viewOf(board(uuid1)))
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
