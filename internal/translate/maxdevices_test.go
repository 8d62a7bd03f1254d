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
