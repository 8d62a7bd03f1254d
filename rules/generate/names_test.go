package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// TestNamesAreThoseServed: each series recorded with our prefix is a family of the exposition
// with the same labels, so that users need not know its origin.
func TestNamesAreThoseServed(t *testing.T) {
	served := map[string]expose.Series{}
	for _, s := range expose.SeriesTable() {
		served[s.Name] = s
	}
	ours := map[string]bool{}
	for _, r := range newServer(t, shipped(t)).rules {
		s, ok := served[r.Record]
		if !strings.HasPrefix(r.Record, canonical.Prefix) {
			continue
		}
		ours[r.Record] = true
		labels := strings.Join(slices.Sorted(maps.Keys(r.Labels)), ",")
		if r.Record == actionSeries { // one series per board, for any of the actions
			labels = "action"
		}
		var want []string
		if s.Labels != "" {
			want = strings.Split(s.Labels, ",")
		}
		slices.Sort(want)
		if !ok || s.Type != canonical.Gauge || labels != strings.Join(want, ",") {
			t.Errorf("%s{%s} is recorded, but %+v is served", r.Record, labels, s)
		}
	}
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(slices.Sorted(maps.Keys(ours)), want) {
		t.Errorf("%v are recorded, want %v", ours, want)
	}
}
