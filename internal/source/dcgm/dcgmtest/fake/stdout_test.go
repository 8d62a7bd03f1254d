package fake

import (
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// writes keeps the length of each write.
type writes []int

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, len(p))
	return len(p), nil
}

func TestChunks(t *testing.T) {
	for _, test := range []struct {
		pace dcgmtest.Pace
		want []int
	}{
		{dcgmtest.Pace{}, []int{4096, 904}},
		{dcgmtest.Pace{Chunk: 2000}, []int{2000, 2000, 1000}},
	} {
		var got writes
		out := newOutput(&got, test.pace)
		out.printf("%s", strings.Repeat("x", 2500))
		out.printf("%s", strings.Repeat("y", 2500))
		if len(got) != 0 {
			t.Errorf("%v written before the flush", got)
		}
		out.flush()
		out.flush()
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: writes of %v, want %v", test.pace, got, test.want)
		}
	}
}
