package expose

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestLedgersOfTwoSources has devices present, gone and missed in two sources at once: each is
// reported once, by the source that reads it, else by the first that remembers it.
func TestLedgersOfTwoSources(t *testing.T) {
	here, there := board(), unread()
	small := split()[1]
	large := small
	large.Profile = "7g.80gb"
	const textSmall = textInstance
	const textLarge = textImplied + `,mig_instance="7",mig_profile="7g.80gb"`
	missing := func(s *canonical.Snapshot, gpus ...string) *canonical.Snapshot {
		for _, gpu := range gpus {
			s.Ledger.Roster.Missed = append(s.Ledger.Roster.Missed, canonical.Device{Hostname: "node-a", GPU: gpu})
		}
		return s
	}
	place := func(gpu string) string { return fmt.Sprintf(`hostname="node-a",gpu="%s",uuid=""`, gpu) }
	const textThere = `hostname="node-a",gpu="1",uuid="GPU-a1"`
	const first, second = "first", "second"
	for _, c := range []struct {
		name     string
		readings []outcome
		present  []string // series of gpu_present
		pods     []string // device and source of each pod with an account
	}{
		{
			"present in both",
			[]outcome{good(holding(rostered(first, 0, here))), good(holding(rostered(second, 0, here, there)))},
			[]string{textBoard + " 1", textThere + " 1"},
			[]string{textBoard + first, textThere + second},
		},
		{
			"gone in the first, present in the second",
			[]outcome{good(holding(rostered(first, 1, there, here))), good(holding(rostered(second, 0, here)))},
			[]string{textThere + " 1", textBoard + " 1"},
			[]string{textThere + first, textBoard + second},
		},
		{
			"present in the first, gone in the second",
			[]outcome{good(holding(rostered(first, 0, here))), good(holding(rostered(second, 1, there, here)))},
			[]string{textBoard + " 1", textThere + " 1"},
			[]string{textBoard + first, textThere + second},
		},
		{
			"gone in both",
			[]outcome{good(holding(rostered(first, 1, here))), good(holding(rostered(second, 1, here)))},
			[]string{textBoard + " 0"},
			[]string{textBoard + first},
		},
		{
			"the first is down",
			[]outcome{failed(first), good(holding(rostered(second, 1, here)))},
			[]string{textBoard + " 0"},
			[]string{textBoard + second},
		},
		{
			"each misses what the other has",
			[]outcome{good(missing(rostered(first, 0, here), "1")), good(missing(rostered(second, 1, there), "0"))},
			[]string{textBoard + " 1", textThere + " 0"},
			nil,
		},
		{
			"both miss the same",
			[]outcome{good(missing(rostered(first, 0, here), "2", "3")), good(missing(rostered(second, 0, there), "2"))},
			[]string{textBoard + " 1", place("2") + " 0", place("3") + " 0", textThere + " 1"},
			nil,
		},
		{
			"an instance's id was given anew",
			[]outcome{good(holding(rostered(first, 1, large, small)))},
			nil,
			[]string{textLarge + first, textSmall + first},
		},
	} {
		body := render(c.readings...)
		parse(t, body)
		if got := seriesOf(body, "kpulse_gpu_present"); strings.Join(got, "\n") != strings.Join(c.present, "\n") {
			t.Errorf("%s: present are\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.present, "\n"))
		}
		var pods []string
		for _, line := range seriesOf(body, "kpulse_allocation_seconds_total") {
			device, rest, _ := strings.Cut(line, `,workload_namespace="",workload_pod="`)
			pod, _, _ := strings.Cut(rest, `"`)
			pods = append(pods, device+pod)
		}
		if strings.Join(pods, "\n") != strings.Join(c.pods, "\n") {
			t.Errorf("%s: accounts are of\n%s\nwant\n%s", c.name, strings.Join(pods, "\n"), strings.Join(c.pods, "\n"))
		}
	}
}

// TestComingsAndGoingsShow goes from one state to the next with one Writer.
func TestComingsAndGoingsShow(t *testing.T) {
	w := NewWriter(Form{Full: true})
	s, other := kept(), holding(rostered("other", 0, unread()))
	for i, change := range []func(){
		func() {},
		func() { holding(other) },
		func() { holding(s) },
		func() { s.Ledger.AllocationRoster = nil },
		func() { s.Ledger.Roster = &canonical.Roster{Devices: s.Ledger.Roster.Devices[:6], Present: 4} },
		func() { *s = *kept() },
		func() { s, other = other, s },
	} {
		change()
		var got bytes.Buffer
		if err := w.Write(&got, s, other); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), render(good(s), good(other))) {
			t.Errorf("exposition %d is not of its own devices and allocations", i)
		}
	}
}

// TestLayoutFitsItsReadingsAlone until a device or an allocation comes or goes.
func TestLayoutFitsItsReadingsAlone(t *testing.T) {
	one, two := holding(rostered("one", 0, board())), holding(rostered("two", 0, unread()))
	readings := []outcome{good(one), good(two)}
	before := newLayout(readings)
	if !before.fits(readings) || before.fits(readings[:1]) {
		t.Error("a layout does not fit what it was made for, or fits fewer readings")
	}
	holding(one)
	after := newLayout(readings)
	if before.fits(readings) || !after.fits(readings) {
		t.Error("a layout fits other allocations, or not its own")
	}
	roster := *one.Ledger.Roster
	if one.Ledger.Roster = &roster; after.fits(readings) {
		t.Error("a layout fits another roster")
	}
}
