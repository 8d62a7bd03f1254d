package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestLongLabels checks what each label costs if it is longer than allowed. Beside each row is
// one of another GPU, which loses nothing.
func TestLongLabels(t *testing.T) {
	const limit = 16
	over, fits := strings.Repeat("x", limit+1), strings.Repeat("x", limit)
	row := func(labels string) string { return temp(`gpu="0",UUID="GPU-0",`+labels, 40) }
	for _, tt := range []struct {
		name, body, note string
		devices, holders int
	}{
		{"fits", row(`pod="` + fits + `",modelName="` + fits + `"`), "", 2, 1},
		{"UUID", temp(`gpu="0",UUID="`+over+`"`, 40), "the label UUID has 17 bytes, more than --source.max-label-value=16: its GPU is left out", 1, 0},
		{"gpu", temp(`gpu="`+over+`",UUID="GPU-0"`, 40), "its GPU is left out", 1, 0},
		{"GPU_I_ID", row(`GPU_I_ID="` + over + `"`), "the label GPU_I_ID has 17 bytes", 1, 0},
		{"model", row(`modelName="` + over + `"`), "the label modelName has 17 bytes, more than --source.max-label-value=16: it is left out", 2, 0},
		{"hostname", row(`Hostname="` + over + `"`), "the label Hostname", 2, 0},
		{"pod", row(`pod="` + over + `",namespace="n"`), "the label pod has 17 bytes, more than --source.max-label-value=16: the holder of this GPU is not named", 2, 1},
		{"two pods", row(`pod="`+over+`1"`) + row(`pod="`+over+`2"`), "the label pod", 2, 2},
		{"pod in two rows", row(`pod="`+over+`"`) + row(`pod="`+over+`",device="d"`), "the label pod", 2, 1},
		{"job beside a pod", row(`hpc_job="` + over + `",pod="p"`), "the label hpc_job", 2, 1},
		{"pod that Prometheus renamed", row(`pod="exporter",exported_pod="` + over + `"`), "the label exported_pod", 2, 1},
		{"pod of the target", row(`pod="` + over + `",exported_pod="p"`), "", 2, 1},
		{"owner of a pod", row(`pod="p",ray_io_cluster="` + over + `"`), "the label ray_io_cluster has 17 bytes, more than --source.max-label-value=16: it is left out", 2, 1},
		{"model and pod", row(`modelName="` + over + `",pod="` + over + `"`), "the label pod", 2, 1},
		{"UUID and pod", temp(`gpu="0",UUID="`+over+`",pod="`+over+`"`, 40), "the label UUID", 1, 0},
		{"row of a link", row(`nvlink="` + over + `"`), "", 1, 0},
		{"no label of ours", row(`other="` + over + `"`), "", 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := translated(t, Options{MaxLabelValue: limit}, temp(`gpu="1",UUID="GPU-1"`, 41)+tt.body)
			set := r.frame.AllocationSet
			held := 0
			for _, n := range set.Holders {
				held += n
			}
			if r.frame.Len() != tt.devices || held != tt.holders {
				t.Errorf("%d devices with %d holders, want %d with %d", r.frame.Len(), held, tt.devices, tt.holders)
			}
			note := ""
			if n := r.report.LongLabel; n != nil {
				note = n.Cause + "; " + n.Remedy
			}
			if !strings.Contains(note, tt.note) || (note == "") != (tt.note == "") || (r.report.Dropped[c.DropLabelTooLong] > 0) != (tt.note != "") {
				t.Errorf("the note is %q with %d counted, want %q", note, r.report.Dropped[c.DropLabelTooLong], tt.note)
			}
			if text := fmt.Sprint(r.frame.Topology.Devices, set.Allocations); strings.Contains(text, over) {
				t.Errorf("the label is kept: %s", text)
			}
			if tt.note != "" && !strings.Contains(tt.note, "ray") && len(set.Allocations) > 0 {
				t.Errorf("a holder without a name is given as %+v", set.Allocations)
			}
		})
	}
}

// TestLongLabelGoes: once the label is short, its cost and its note are gone.
func TestLongLabelGoes(t *testing.T) {
	over := temp(`gpu="0",UUID="GPU-0",pod="0123456789"`, 40)
	r := newReader(t, Options{MaxLabelValue: 8})
	for _, body := range []string{over, temp(`gpu="0",UUID="GPU-0",pod="p"`, 40), over} {
		r.read(body)
		set, long := r.frame.AllocationSet, body == over
		if named := len(set.Allocations) == 1; named == long || !slices.Equal(set.Holders, []int{1}) || (r.report.LongLabel != nil) != long {
			t.Errorf("%q: %+v, %v", body, set, r.report.LongLabel)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("a steady reading with a long label allocates %v times", n)
	}
}
