package expose

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{8, 16, 112, 1024} {
		snap := fleet(n)
		w := NewWriter()
		var out bytes.Buffer
		if err := w.Write(&out, snap); err != nil {
			b.Fatal(err)
		}
		series := bytes.Count(out.Bytes(), []byte("\n")) - bytes.Count(out.Bytes(), []byte("\n#"))
		b.Run(fmt.Sprintf("devices=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(out.Len()))
			for b.Loop() {
				if err := w.Write(io.Discard, snap); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(series), "ns/series")
		})
	}
}
