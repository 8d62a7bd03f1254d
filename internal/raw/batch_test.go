package raw_test

import (
	"slices"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
)

func TestFingerprint(t *testing.T) {
	base := []raw.Sample{{Family: 0, Labels: 1, Value: 2}, {Family: 1, Labels: 0, Value: 2}, {Family: 1, Labels: 1, Value: 0}}
	of := func(samples ...raw.Sample) uint64 { return (&raw.Batch{Samples: samples}).Fingerprint() }
	want := of(base...)
	if got := of(base[2], base[0], base[1]); got != want {
		t.Error("another order of the same samples changes the fingerprint")
	}
	changes := map[string]func([]raw.Sample) []raw.Sample{
		"a value":                func(s []raw.Sample) []raw.Sample { s[0].Value = 3; return s },
		"a value to 0":           func(s []raw.Sample) []raw.Sample { s[0].Value = 0; return s },
		"the label set":          func(s []raw.Sample) []raw.Sample { s[0].Labels = 2; return s },
		"the family":             func(s []raw.Sample) []raw.Sample { s[0].Family = 2; return s },
		"a series less":          func(s []raw.Sample) []raw.Sample { return s[1:] },
		"a series more":          func(s []raw.Sample) []raw.Sample { return append(s, raw.Sample{Family: 3}) },
		"values change places":   func(s []raw.Sample) []raw.Sample { s[1].Value, s[2].Value = s[2].Value, s[1].Value; return s },
		"family and labels swap": func(s []raw.Sample) []raw.Sample { s[0].Family, s[0].Labels = s[0].Labels, s[0].Family; return s },
	}
	for name, change := range changes {
		if of(change(slices.Clone(base))...) == want {
			t.Errorf("%s: the fingerprint stays the same", name)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	batch := &raw.Batch{Body: rawtest.Body(112, 60, 1), Dict: raw.NewDict()}
	new(raw.Scanner).Scan(batch)
	b.ReportAllocs()
	for b.Loop() {
		batch.Fingerprint()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch.Samples)), "ns/sample")
}
