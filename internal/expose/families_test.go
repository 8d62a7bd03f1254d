package expose

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// TestSeriesTableIsTheExposition compares the table with an exposition in which
// every family has series.
func TestSeriesTableIsTheExposition(t *testing.T) {
	snap := allocated(fleet(1), 1)
	snap.Ledger.AllocationRoster.Allocations[0].Job = "4711"
	snap.Frame.Topology.Devices[0].Cluster = "c"
	snap.Ledger.XIDs = []canonical.XIDTotal{{Device: 0, Code: 79, Total: 2}}
	snap.Source.Period = 1
	snap.Source.ChangedAt = readAt
	snap.Source.Missing = []canonical.Field{canonical.SMActive}
	snap.Source.Streams[0] = canonical.Stream{Name: "device", MissedAt: readAt, Bytes: 1}
	body := renderWith([]canonical.SXIDCount{{Hostname: "node", PCIBusID: "0000:05:00", Code: 12028, Count: 3}}, good(snap))
	parse(t, body)
	table := SeriesTable()
	heads := typeLine.FindAllStringSubmatch(string(body), -1)
	if len(heads) != len(table) {
		t.Fatalf("%d families are served, %d in the table", len(heads), len(table))
	}
	for i, s := range table {
		if heads[i][1] != s.Name || heads[i][2] != string(s.Type) {
			t.Errorf("family %d is %s %s, in the table %s %s", i, heads[i][1], heads[i][2], s.Name, s.Type)
		}
		if !strings.Contains(string(body), "# HELP "+s.Name+" "+s.Help+"\n") {
			t.Errorf("the help of %s is not in the exposition", s.Name)
		}
		line := regexp.MustCompile(`(?m)^` + s.Name + `\{(.*)\} `).FindStringSubmatch(string(body))
		if line == nil {
			t.Errorf("%s has no series", s.Name)
			continue
		}
		var names []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line[1], -1) {
			names = append(names, label[1])
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(strings.Join(names, ","), "hostname,gpu,uuid"), ","); got != s.Labels {
			t.Errorf("%s has the labels %s, in the table %s", s.Name, got, s.Labels)
		}
	}
}

// TestLimits renders as many devices and allocations as Limits allows, with all their series.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ limit, missed int }{{1, 0}, {400, 0}, {1000, 0}, {5000, 0}, {50_000, 0}, {5000, 16}, {5000, 1000}, {50_000, 4096}} {
		limit := c.limit
		n, m := Form{Full: true}.Limits(limit, c.missed)
		if n < 1 || m < 1 {
			t.Fatalf("limit %d leaves %d devices and %d allocations", limit, n, m)
		}
		snap := allocated(fleet(n), m)
		for i := range c.missed {
			snap.Ledger.Roster.Missed = append(snap.Ledger.Roster.Missed, canonical.Device{Hostname: "n", GPU: fmt.Sprint(n + i)})
		}
		snap.Source.Period = 1
		snap.Source.ChangedAt = readAt
		for f := range canonical.NumFields {
			snap.Source.Missing = append(snap.Source.Missing, f)
		}
		all, ofAllocations := 0, 0
		for line := range strings.Lines(string(render(good(snap)))) {
			if line[0] != '#' {
				all++
			}
			if strings.Contains(line, "hpc_job=") {
				ofAllocations++
			}
		}
		if ofAllocations != 20*m {
			t.Errorf("%d allocations make %d series, want 20 each", m, ofAllocations)
		}
		if n > 1 && (all > limit || all < limit*2/3) || m > 1 && (ofAllocations > limit/4 || ofAllocations < limit/4-20) {
			t.Errorf("limit %d allows %d devices and %d allocations, which make %d series, %d of them of allocations", limit, n, m, all, ofAllocations)
		}
	}
}
