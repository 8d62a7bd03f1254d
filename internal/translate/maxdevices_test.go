package translate

import (
	"fmt"
	"strings"
	"testing"
)

func TestMaxDevices(t *testing.T) {
	board := func(n int) string { return temp(fmt.Sprintf(`gpu="%d",UUID="B%d"`, n, n), 40) }
	instance := func(n, i int) string { return temp(fmt.Sprintf(`gpu="%d",UUID="B%d",GPU_I_ID="%d"`, n, n, i), 40) }
	names := func(r *reader) string {
		var s []string
		for _, d := range r.frame.Topology.Devices {
			s = append(s, strings.TrimSuffix(d.UUID+"/"+d.Instance, "/"))
		}
		return strings.Join(s, " ")
	}
	r := newReader(t, Options{MaxDevices: 3})
	steps := []struct {
		body, want string
		series     uint64
	}{
		{board(5) + board(4), "B4 B5", 0},
		// New ones beyond the limit are dropped, even if they sort before the others.
		{board(0) + board(5) + board(1) + board(1) + board(4), "B0 B4 B5", 2},
		{board(1) + board(0) + board(5) + board(4), "B0 B4 B5", 1},
		// One leaves; its place is taken.
		{board(1) + board(0) + board(4), "B0 B1 B4", 0},
		// An instance brings its board, and needs two places.
		{board(4) + instance(7, 1), "B4 B7 B7/1", 0},
		{board(4) + instance(7, 1) + instance(7, 2) + board(7), "B4 B7 B7/1", 1},
		{board(4) + board(5) + instance(7, 1), "B4 B7 B7/1", 1},
		{board(1) + board(2) + instance(8, 1), "B1 B2 B8", 1},
	}
	for i, step := range steps {
		r.read(step.body)
		if got := names(r); got != step.want || r.report.DroppedSeries != step.series {
			t.Errorf("step %d: %q with %d series dropped, want %q with %d", i, got, r.report.DroppedSeries, step.want, step.series)
		}
	}
	r.read(board(1) + board(2) + instance(8, 1))
	generation := r.frame.Topology.Generation
	r.read(board(1) + board(2) + instance(8, 1))
	if r.frame.Topology.Generation != generation {
		t.Error("a device too many makes a new topology at each reading")
	}
}

// TestLimitOfWeight: the limit is on the weight with the labels that are served. A hostname of 600
// bytes doubles the weight, also that of an instance whose row lacks it, and of an implied board.
func TestLimitOfWeight(t *testing.T) {
	host := `,Hostname="` + strings.Repeat("h", 600) + `"`
	for _, test := range []struct {
		body        string
		limit, want int
	}{
		{temp(`gpu="0",UUID="A"`+host, 40) + temp(`gpu="0",UUID="A",GPU_I_ID="1"`, 40), 4, 2},
		{temp(`gpu="0",UUID="A"`+host, 40) + temp(`gpu="0",UUID="A",GPU_I_ID="1"`, 40), 3, 1},
		{temp(`gpu="0",UUID="A",GPU_I_ID="1"`+host, 40), 4, 2},
		{temp(`gpu="0",UUID="A",GPU_I_ID="1"`+host, 40), 3, 1},
	} {
		r := translated(t, Options{MaxDevices: test.limit}, test.body)
		weight := 0
		for i := range r.frame.Topology.Devices {
			weight += r.frame.Topology.Devices[i].Weight()
		}
		if r.frame.Len() != test.want || weight != 2*test.want {
			t.Errorf("limit %d: %d devices of weight %d, want %d of weight 2 each", test.limit, r.frame.Len(), weight, test.want)
		}
	}
}
