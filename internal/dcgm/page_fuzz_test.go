package dcgm

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// FuzzAppend: whatever stands in names, ids, jobs and label blocks, every line is
// one that Prometheus accepts, and the labels read back.
func FuzzAppend(f *testing.F) {
	f.Add("gpu07", uuid0, "H100", "1g.10gb", "4711", `{gpu="1",entity="GPU-I 7",gpu_instance_entity="7"}`, 7, 0.5)
	f.Add("a\\\"\n\x00\xff", "", "}", "", "\\", `{gpu="0",entity="GPU 0"}`, -1, -1e300)
	f.Add("", "", "", "", "", `{gpu="99999999999999999999",entity="GPU 0"`, 0, 0.0)
	f.Fuzz(func(t *testing.T, host, uuid, model, profile, job, block string, entity int, v float64) {
		if v-v != 0 || len(block) > 1<<10 {
			return
		}
		d := raw.NewDict()
		tick := &raw.Batch{Dict: d}
		for _, l := range []string{block, `{gpu="1",entity="GPU 1"}`} {
			tick.Samples = append(tick.Samples, raw.Sample{Family: d.FamilyID([]byte("SMACT")), Labels: d.BlockID([]byte(l)), Value: v})
		}
		p := New(host)
		p.SetNode(Node{Boards: []Board{{
			Entity: 1, UUID: uuid, Model: model,
			Instances: []Instance{{Entity: entity, ID: 3, Profile: profile}},
		}}})
		p.SetJobs(Jobs{{GPU: 1, Instance: Unknown}: {job}})
		out := &raw.Batch{Body: p.Append(nil, tick)}
		var s raw.Scanner
		s.Scan(out)
		if out.Skipped != 0 || len(out.Samples) > 2 || (len(out.Samples) == 0) != (uuid == "") {
			t.Fatalf("%d samples, %d skipped:\n%s", len(out.Samples), out.Skipped, out.Body)
		}
		for _, sample := range out.Samples {
			if sample.Value != v {
				t.Errorf("%v became %v", v, sample.Value)
			}
		}
	})
}
