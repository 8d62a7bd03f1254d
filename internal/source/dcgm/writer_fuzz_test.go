package dcgm

import (
	"math"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// FuzzExposition: whatever is in names, ids and jobs, every line scans, and the labels and
// values read back.
func FuzzExposition(f *testing.F) {
	f.Add("gpu07", uuid0, "H100", "1g.10gb", "4711", 7, 0.5)
	f.Add("a\\\"\n\x00\xff", "", "}", "", "\\", -1, -1e300)
	f.Add("", "", "", "", "", 0, 0.0)
	f.Fuzz(func(t *testing.T, host, uuid, model, profile, job string, entity int, v float64) {
		if v-v != 0 {
			return
		}
		boards := []board{newBoard(1)}
		boards[0].UUID, boards[0].Model, boards[0].instances = uuid, model, []Device{instance(entity, "3", 1)}
		boards[0].instances[0].Profile = profile
		w := writer(host, flatten(boards), Jobs{{GPU: "1"}: {job}})
		b := &raw.Batch{}
		w.Write(b, noon, one(v))
		out := &raw.Batch{Body: b.AppendAll(nil)}
		var s raw.Scanner
		s.Scan(out)
		if out.Skipped != 0 || len(out.Samples) != len(b.Samples) || (len(out.Samples) == 0) != (uuid == "") {
			t.Fatalf("%d samples, %d skipped:\n%s", len(out.Samples), out.Skipped, out.Body)
		}
		for i, sample := range out.Samples {
			if sample.Value != v || out.Dict.Block(sample.Labels) != b.Dict.Block(b.Samples[i].Labels) {
				t.Errorf("%v became %v, %s", v, sample.Value, out.Dict.Block(sample.Labels))
			}
		}
	})
}

// one is the value of SMACT.
type one float64

func (v one) Reading(field, _ int) float64 {
	if Fields[field].Column == "SMACT" {
		return float64(v)
	}
	return math.NaN()
}

func (one) IsLost(int) bool { return false }
