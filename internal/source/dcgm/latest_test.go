package dcgm

import (
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dmon"
)

// An entity without a row is kept for two ticks.
func TestLatestForgetsEntities(t *testing.T) {
	const late, gone = "0", "1"
	ids := []uint32{0, 1}
	var l latest
	for i, step := range []struct {
		rows []uint32
		want []string
	}{
		{ids, []string{late, gone}},
		{nil, []string{late, gone}},
		{ids[:1], []string{late, gone}},
		{ids[:1], []string{late}},
		{nil, []string{late}},
		{ids, []string{late, gone}},
	} {
		tk := &tick{entities: []dmon.Entity{{ID: late}, {ID: gone}}, rows: len(step.rows)}
		for _, row := range step.rows {
			tk.batch.Samples = append(tk.batch.Samples, raw.Sample{Labels: row, Value: 1})
		}
		l.add(tk)
		var got []string
		for e, entity := range l.entities {
			if l.value(0, e) == 1 {
				got = append(got, entity.ID)
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("after tick %d: %v, want %v", i, got, step.want)
		}
	}
}
