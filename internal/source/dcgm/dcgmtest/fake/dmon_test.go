package fake

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// sampler returns a dmon of field 155 on one board.
func sampler(t *testing.T, s dcgmtest.Scenario, out *writes) dmon {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario")
	s.GPUs = dcgmtest.Boards(1)
	s.Write(t, path)
	f := &fake{path: path, release: s.Release(), out: newOutput(out, s.Pace), err: &strings.Builder{}}
	power, _ := dcgmtest.FieldByID(s.Release(), 155)
	return dmon{
		fake: f, fields: []dcgmtest.Field{power},
		entities: []dcgmtest.Entity{{ID: 0}}, delay: 100 * time.Millisecond, count: 6,
	}
}

// TestFlushes checks that each sample is one write.
func TestFlushes(t *testing.T) {
	const line = 16 + 18 + 1
	var got writes
	d := sampler(t, dcgmtest.Scenario{}, &got)
	d.delay = time.Millisecond
	if result := d.run(); result != ok {
		t.Error(result)
	}
	if want := []int{line, line, line, line, line, line}; !slices.Equal(got, want) {
		t.Errorf("writes of %v, want %v", got, want)
	}
}

// TestPace checks the five delays between six samples, and the additions of the pace.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		pace        dcgmtest.Pace
		least, most time.Duration
	}{
		{dcgmtest.Pace{}, 500 * time.Millisecond, 500 * time.Millisecond},
		{dcgmtest.Pace{WorkMS: 7}, 542 * time.Millisecond, 542 * time.Millisecond},
		{dcgmtest.Pace{JitterMS: 50}, 501 * time.Millisecond, 749 * time.Millisecond},
		{dcgmtest.Pace{Chunk: 10, ChunkMS: 1}, 518 * time.Millisecond, 518 * time.Millisecond}, // 35 bytes in 4 writes
	} {
		synctest.Test(t, func(t *testing.T) {
			var got writes
			d := sampler(t, dcgmtest.Scenario{Pace: test.pace}, &got)
			begin := time.Now()
			d.run()
			if took := time.Since(begin); took < test.least || took > test.most {
				t.Errorf("%+v: %v", test.pace, took)
			}
		})
	}
}
