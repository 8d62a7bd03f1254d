package dcgmi

import (
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// An entity without a row is held for two samples, however many parts they come in,
// and one whose row is late is held as it is.
func TestSheetForgetsEntities(t *testing.T) {
	const late, gone = `{gpu="0",entity="GPU 0"}`, `{gpu="1",entity="GPU 1"}`
	child := raw.NewDict()
	family := child.FamilyID([]byte("A"))
	ids := []uint32{child.BlockID([]byte(late)), child.BlockID([]byte(gone))}
	var n *names
	n = n.cover(child)
	var s sheet
	b := &raw.Batch{Dict: raw.NewDict()}
	for i, step := range []struct {
		rest bool
		rows []uint32
		want []string
	}{
		{false, ids, []string{late, gone}},
		{false, nil, []string{late, gone}},
		{true, ids[:1], []string{late, gone}},
		{false, nil, []string{late, gone}},
		{true, ids[:1], []string{late, gone}},
		{true, nil, []string{late, gone}},
		{false, nil, []string{late}},
		{true, ids[:1], []string{late}},
		{false, ids, []string{late, gone}},
	} {
		tk := &tick{rest: step.rest, names: n, rows: step.rows}
		for _, row := range step.rows {
			tk.batch.Samples = append(tk.batch.Samples, raw.Sample{Family: family, Labels: row, Value: 1})
		}
		s.take(tk, b.Dict)
		b.Reset()
		s.fill(b)
		var got []string
		for _, sample := range b.Samples {
			got = append(got, b.Dict.Block(sample.Labels))
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("after tick %d: %v, want %v", i, got, step.want)
		}
	}
}
