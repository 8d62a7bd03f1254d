package translate

import (
	"fmt"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

func BenchmarkTranslate(b *testing.B) {
	for _, size := range []struct{ entities, families int }{{8, 60}, {112, 60}, {1024, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size.entities, size.families), func(b *testing.B) {
			r := translated(b, Options{}, string(rawtest.Body(size.entities, size.families, 1)))
			b.ReportAllocs()
			for b.Loop() {
				r.tr.Translate(&r.frame, &r.batch, &r.report)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(r.batch.Samples)), "ns/sample")
		})
	}
}
