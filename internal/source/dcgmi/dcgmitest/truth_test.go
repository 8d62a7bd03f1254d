package dcgmitest_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// TestTruth wants each printed number, cut out by column, to be what Truth says
// of it, and by the seed alone where nothing else speaks.
func TestTruth(t *testing.T) {
	ids := []int{100, 150, 155, 156, 203, 230, 250, 252, 390, 449, 1001, 1005, 1009}
	widths := []int{13, 13, 18, 24, 18, 13, 18, 18, 24, 28, 13, 13, 28}
	s := dcgmitest.Scenario{Version: "4.4.1", Seed: 7, GPUs: dcgmitest.Boards(3)}
	s.GPUs[1] = s.GPUs[1].Cut(2)
	s.Readings = []dcgmitest.Reading{{Entity: "GPU 2", Field: 155, From: 3, Value: 100, Step: 1.5}}
	entities := []dcgmitest.Entity{{ID: 0}, {ID: 1}, {Instance: true, ID: 7}, {Instance: true, ID: 8}, {ID: 2}}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Itoa(id)
	}
	n, numbers := 0, 0
	for line := range strings.Lines(run(t, s, "dmon -c 20 -d 1 -i 0,1,2,i:7,i:8 -e "+strings.Join(list, ",")).stdout) {
		if !strings.HasPrefix(line, "GPU") {
			continue
		}
		entity, tick := entities[n%len(entities)], n/len(entities)
		n++
		if !strings.HasPrefix(line, entity.String()+" ") {
			t.Fatalf("row %q, want one of %s", line, entity)
		}
		at := 11
		for i, id := range ids {
			text := strings.TrimSpace(line[at : at+widths[i]])
			at += widths[i]
			got, err := strconv.ParseFloat(text, 64)
			want, ok := s.Truth(entity, id, tick)
			if ok != (err == nil) || ok && got != want {
				t.Errorf("%s field %d sample %d: printed %q, truth %v %v", entity, id, tick, text, want, ok)
			}
			if ok {
				numbers++
			}
			alone := dcgmitest.Value(7, entity.String(), id, tick)
			if entity.ID == 0 && tick > 0 && !math.IsNaN(alone) && got != alone {
				t.Errorf("%s field %d sample %d: printed %q, the seed alone gives %v", entity, id, tick, text, alone)
			}
		}
	}
	if n != 20*len(entities) || numbers < n*8 {
		t.Errorf("%d rows, %d numbers", n, numbers)
	}
	if got, _ := s.Truth(entities[4], 155, 5); got != 103 {
		t.Errorf("a ramp of 1.5 from 100 reads %v after two samples", got)
	}
}

// TestValues wants values within their range, counters that never fall, and
// another world for another seed.
func TestValues(t *testing.T) {
	same, mean := 0, 0.0
	for tick := range 1000 {
		a, b := dcgmitest.Value(1, "GPU 0", 1002, tick), dcgmitest.Value(2, "GPU 0", 1002, tick)
		if a < 0 || a > 1 || a != dcgmitest.Value(1, "GPU 0", 1002, tick) {
			t.Fatalf("sample %d: %v", tick, a)
		}
		if a == b {
			same++
		}
		mean += a / 1000
		if dcgmitest.Value(1, "GPU 0", 156, tick+1) <= dcgmitest.Value(1, "GPU 0", 156, tick) {
			t.Fatalf("energy does not grow at sample %d", tick)
		}
	}
	if same > 20 || math.Abs(mean-0.5) > 0.05 {
		t.Errorf("%d of 1000 values alike for two seeds, mean %v", same, mean)
	}
	if v := dcgmitest.Value(1, "GPU 0", 230, 5); !math.IsNaN(v) {
		t.Errorf("an XID out of nothing: %v", v)
	}
}
