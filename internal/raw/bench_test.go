package raw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

// BenchmarkScan reads bodies whose values and order of families differ from
// scrape to scrape, as the exporter's do, and compares the Scanner with the two
// usual parsers. The sizes are 8 GPUs, 16 GPUs, 16 boards in seven MIG instances
// each, and 1024 GPUs.
func BenchmarkScan(b *testing.B) {
	for _, size := range [][2]int{{8, 30}, {16, 60}, {112, 60}, {1024, 60}} {
		samples := size[0] * size[1]
		bodies := make([][]byte, 4)
		for i := range bodies {
			bodies[i] = rawtest.Body(size[0], size[1], uint64(i))
		}
		for name, read := range map[string]func([]byte) int{
			"scan": scanning(), "textparse": readTextparse, "expfmt": readExpfmt,
		} {
			b.Run(fmt.Sprintf("%dx%d/%s", size[0], size[1], name), func(b *testing.B) {
				b.SetBytes(int64(len(bodies[0])))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if got := read(bodies[i%len(bodies)]); got != samples {
						b.Fatalf("%d samples, want %d", got, samples)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
			})
		}
	}
}

// scanning returns a reader that counts samples with one Scanner.
func scanning() func([]byte) int {
	var s Scanner
	batch := Batch{Dict: NewDict()}
	return func(body []byte) int {
		batch.Body = body
		s.Scan(&batch)
		return len(batch.Samples)
	}
}

// readTextparse counts samples without parsing their labels.
func readTextparse(body []byte) (samples int) {
	p := textparse.NewPromParser(body, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			return -1
		}
		if entry == textparse.EntrySeries {
			p.Series()
			samples++
		}
	}
}

func readExpfmt(body []byte) (samples int) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return -1
	}
	for _, f := range families {
		samples += len(f.Metric)
	}
	return samples
}
