package fake

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// sampler returns a dmon of field 155 on one board.
func sampler(t *testing.T, s dcgmitest.Scenario, out *writes) dmon {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario")
	s.GPUs = dcgmitest.Boards(1)
	s.Write(t, path)
	f := &fake{path: path, release: s.Release(), out: newOutput(out, s.Pace), err: &strings.Builder{}}
	power, _ := dcgmitest.FieldByID(s.Release(), 155)
	return dmon{
		fake: f, fields: []dcgmitest.Field{power},
		entities: []dcgmitest.Entity{{ID: 0}}, delay: 100 * time.Millisecond, count: 6,
	}
}

// TestFlushes checks that each sample is one write.
func TestFlushes(t *testing.T) {
	const line = 16 + 18 + 1
	var got writes
	d := sampler(t, dcgmitest.Scenario{}, &got)
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
		pace        dcgmitest.Pace
		least, most time.Duration
	}{
		{dcgmitest.Pace{}, 500 * time.Millisecond, 500 * time.Millisecond},
		{dcgmitest.Pace{WorkMS: 7}, 542 * time.Millisecond, 542 * time.Millisecond},
		{dcgmitest.Pace{JitterMS: 50}, 501 * time.Millisecond, 749 * time.Millisecond},
		{dcgmitest.Pace{Chunk: 10, ChunkMS: 1}, 518 * time.Millisecond, 518 * time.Millisecond}, // 35 bytes in 4 writes
	} {
		synctest.Test(t, func(t *testing.T) {
			var got writes
			d := sampler(t, dcgmitest.Scenario{Pace: test.pace}, &got)
			begin := time.Now()
			d.run()
			if took := time.Since(begin); took < test.least || took > test.most {
				t.Errorf("%+v: %v", test.pace, took)
			}
		})
	}
}
