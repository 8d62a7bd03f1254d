package expose

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// BenchmarkWrite writes one exposition: readings only, with the accounts of the devices, and
// with those of as many allocations.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{8, 16, 112, 1024} {
		alone := fleet(n)
		alone.Ledger = canonical.Ledger{}
		for _, c := range []struct {
			name string
			snap *canonical.Snapshot
			form Form
		}{
			{"readings", alone, Form{Full: true}}, {"ledger", fleet(n), Form{Full: true}}, {"allocations", allocated(fleet(n), n), Form{Full: true}},
			{"lean", allocated(fleet(n), n), Form{}},
		} {
			w := NewWriter(c.form)
			var out bytes.Buffer
			if err := w.Write(&out, c.snap); err != nil {
				b.Fatal(err)
			}
			series := bytes.Count(out.Bytes(), []byte("\n")) - bytes.Count(out.Bytes(), []byte("\n#"))
			b.Run(fmt.Sprintf("devices=%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(out.Len()))
				for b.Loop() {
					if err := w.Write(io.Discard, c.snap); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(series), "ns/series")
			})
		}
	}
}
