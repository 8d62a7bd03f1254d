package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// wholePage returns an exporter's page for eight GPUs, with each field by its name in 4.8:
// some sixty samples per GPU, half of which the rules do not read.
func wholePage(node int) []byte {
	var out bytes.Buffer
	for gpu := range 8 {
		for f := range canonical.NumFields {
			if all := translate.Spellings(f); len(all) > 0 {
				names := all[0].Names
				fmt.Fprintf(&out, "%s{gpu=\"%d\",UUID=\"GPU-%d-%d\",pci_bus_id=\"00000000:%d:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-%d\",DCGM_FI_DRIVER_VERSION=\"580.95.05\"} 0.5\n",
					names[min(1, len(names)-1)], gpu, node, gpu, 18+gpu, gpu, node)
			}
		}
	}
	return out.Bytes()
}

// BenchmarkEvaluate measures an evaluation of the whole group. Samples are in memory: a real
// Prometheus reads them from its head, and writes the results.
func BenchmarkEvaluate(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d GPUs", nodes*8), func(b *testing.B) {
			b.ReportAllocs()
			s := newServer(b, shipped(b))
			at := start
			for i := range nodes {
				s.scrape(fmt.Sprintf("node-%d:9400", i), at, wholePage(i))
			}
			for b.Loop() {
				s.evaluate(at)
				at = at.Add(time.Millisecond)
			}
			recorded := 0
			for _, list := range s.results {
				recorded += len(list)
			}
			b.ReportMetric(float64(recorded)/float64(nodes*8), "series/GPU")
		})
	}
}
