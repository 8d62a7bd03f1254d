package e2e

import (
	"io"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// sizes of an upstream's body: devices × families.
var sizes = []struct {
	name              string
	devices, families int
}{{"S", 8, 30}, {"M", 16, 60}, {"L", 112, 60}, {"XL", 1024, 60}}

// steadyScrape returns a function with all in-process work of a scrape between the last byte of the
// upstream and the last of ours: scan, translate, compute, append.
func steadyScrape(t testing.TB, body []byte, compat ...translate.Version) func() {
	t.Helper()
	translator, err := translate.New(translate.Options{Compat: compat})
	if err != nil {
		t.Fatal(err)
	}
	judge, err := compute.New(compute.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	var (
		scanner raw.Scanner
		batch   = raw.Batch{Dict: raw.NewDict(), Body: body}
		report  translate.Report
		snap    = canonical.Snapshot{Judgement: judge.Judgement()}
		writer  = expose.NewWriter(expose.Form{Full: true})

		rendition translate.Rendition
	)
	scrape := func() {
		scanner.Scan(&batch)
		translator.Translate(&snap.Frame, &batch, &report)
		if translator.Render(&rendition, &snap.Frame, &batch) {
			snap.Further = &rendition
		}
		snap.Verdicts = judge.Judge(&snap.Frame, snap.Verdicts)
		batch.Fingerprint()
		judge.Account(&snap.Ledger, &snap.Frame, snap.Verdicts, time.Second)
		if err := writer.Write(io.Discard, &snap); err != nil {
			t.Fatal(err)
		}
	}
	scrape()
	return scrape
}

func TestSteadyScrapeAllocatesNothing(t *testing.T) {
	for _, s := range sizes {
		for _, compat := range [][]translate.Version{nil, {translate.V49, translate.V1}} {
			scrape := steadyScrape(t, rawtest.Body(s.devices, s.families, 1), compat...)
			if n := testing.AllocsPerRun(10, scrape); n != 0 {
				t.Errorf("%s: %v allocations per scrape with --compat=%v, want 0", s.name, n, compat)
			}
		}
	}
}

func BenchmarkSteadyScrape(b *testing.B) {
	for _, s := range sizes {
		for what, compat := range map[string][]translate.Version{"": nil, "/compat=4.9": {translate.V49}} {
			b.Run(s.name+what, func(b *testing.B) {
				body := rawtest.Body(s.devices, s.families, 1)
				scrape := steadyScrape(b, body, compat...)
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					scrape()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*s.devices*s.families), "ns/sample")
			})
		}
	}
}
