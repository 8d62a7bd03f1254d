package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
)

// writer sends the series of one origin to a server.
type writer struct {
	t      *testing.T
	server *prometheus
	every  func(series string) time.Duration // between two samples
	known  map[string][]byte                 // labels in the wire format, by series
	alive  map[string]bool
}

// write sends a moment, with a staleness marker for each series that is due but missing.
func (w *writer) write(now moment) {
	if w.known == nil {
		w.known, w.alive = map[string][]byte{}, map[string]bool{}
	}
	var request []byte
	add := func(series string, v float64) {
		if w.known[series] == nil {
			w.known[series] = wireLabels(w.t, series)
		}
		sample := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(v))
		sample = binary.AppendUvarint(append(sample, 2<<3), uint64(now.at.UnixMilli()))
		request = wireBytes(request, 1, wireBytes(slices.Clone(w.known[series]), 2, sample))
	}
	for series, v := range now.samples {
		w.alive[series] = true
		add(series, v)
	}
	for series := range w.alive {
		if _, there := now.samples[series]; !there && now.at.UnixMilli()%w.every(series).Milliseconds() == 0 {
			delete(w.alive, series)
			add(series, math.Float64frombits(value.StaleNaN))
		}
	}
	w.server.post(w.t, request)
}

// wireLabels returns the labels of a TimeSeries in Prometheus' remote write protocol.
func wireLabels(t *testing.T, series string) (wire []byte) {
	t.Helper()
	set, err := parser.NewParser(parser.Options{}).ParseMetric(series)
	if err != nil {
		t.Fatal(err)
	}
	set.Range(func(l labels.Label) {
		wire = wireBytes(wire, 1, wireBytes(wireBytes(nil, 1, []byte(l.Name)), 2, []byte(l.Value)))
	})
	return wire
}

// wireBytes appends a protocol buffer field that contains bytes.
func wireBytes(dst []byte, field byte, b []byte) []byte {
	return append(binary.AppendUvarint(append(dst, field<<3|2), uint64(len(b))), b...)
}

// post sends a WriteRequest.
func (s *prometheus) post(t *testing.T, request []byte) {
	t.Helper()
	if len(request) == 0 {
		return
	}
	res, err := http.Post(s.url+"/api/v1/write", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, request)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("%s: %s", res.Status, text)
	}
}
