package translate

import (
	"slices"
	"strings"
	"testing"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestLongLabels: samples with a label that is longer than allowed are left out. Beside each row is one of another GPU, which loses nothing.
func TestLongLabels(t *testing.T) {
	const limit = 16
	over, fits := strings.Repeat("x", limit+1), strings.Repeat("x", limit)
	row := func(labels string) string { return temp(`gpu="0",UUID="GPU-0",`+labels, 40) }
	for _, tt := range []struct {
		name, body, note string
		devices, holders int
	}{
		{"fits", row(`pod="` + fits + `",modelName="` + fits + `"`), "", 2, 1},
		{"UUID", temp(`gpu="0",UUID="`+over+`"`, 40), "the label UUID has 17 bytes, more than --source.max-label-value=16: its row is left out", 1, 0},
		{"gpu", temp(`gpu="`+over+`",UUID="GPU-0"`, 40), "the label gpu has 17 bytes", 1, 0},
		{"GPU_I_ID", row(`GPU_I_ID="` + over + `"`), "the label GPU_I_ID has 17 bytes", 1, 0},
		{"model", row(`modelName="` + over + `"`), "the label modelName has 17 bytes", 1, 0},
		{"job beside a pod", row(`hpc_job="` + over + `",pod="p"`), "the label hpc_job", 1, 0},
		{"owner of a pod", row(`pod="p",ray_io_cluster="` + over + `"`), "the label ray_io_cluster", 1, 0},
		{"job of the target", row(`pod="p",job="` + over + `"`), "", 2, 1},
		{"row of a link", row(`nvlink="` + over + `"`), "", 1, 0},
		{"no family of ours", `other{gpu="0",UUID="` + over + `"} 1` + "\n", "", 1, 0},
		{"no label of ours", row(`other="` + over + `"`), "", 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := translated(t, Options{MaxLabelValue: limit}, temp(`gpu="1",UUID="GPU-1"`, 41)+tt.body)
			held := 0
			for _, n := range r.frame.AllocationSet.Holders {
				held += n
			}
			if r.frame.Len() != tt.devices || held != tt.holders {
				t.Errorf("%d devices with %d holders, want %d with %d", r.frame.Len(), held, tt.devices, tt.holders)
			}
			var note string
			var dropped uint64
			if n := r.report.LongLabel; n != nil {
				note = n.Cause
			}
			if tt.note != "" {
				dropped = 1
			}
			if !strings.HasPrefix(note, tt.note) || (note == "") != (tt.note == "") || r.report.Dropped[c.DropLabelTooLong] != dropped {
				t.Errorf("the note is %q with %d counted, want %q", note, r.report.Dropped[c.DropLabelTooLong], tt.note)
			}
		})
	}
}

// TestLongLabelGoes: once the label is short, its note is gone.
func TestLongLabelGoes(t *testing.T) {
	over := temp(`gpu="0",UUID="GPU-0",pod="0123456789"`, 40)
	r := newReader(t, Options{MaxLabelValue: 8})
	for _, body := range []string{over, temp(`gpu="0",UUID="GPU-0",pod="p"`, 40), over} {
		r.read(body)
		long := body == over
		if named := slices.Equal(r.frame.AllocationSet.Holders, []int{1}); named == long || (r.report.LongLabel != nil) != long {
			t.Errorf("%q: %+v, %v", body, r.frame.AllocationSet, r.report.LongLabel)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.tr.Translate(&r.frame, &r.batch, &r.report) }); n != 0 {
		t.Errorf("a steady reading with a long label allocates %v times", n)
	}
}
