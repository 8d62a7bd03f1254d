package canonical

import (
	"slices"
	"testing"
)

// TestReattribute: the use of an allocation moves with it, and an allocation that the source did
// not report has unknown use.
func TestReattribute(t *testing.T) {
	use := func(n float64) Use { return Use{n, n} }
	var f Frame
	given := func(uses []Use) (numbers []float64) {
		for _, u := range uses {
			n := u.NVMLUtilization
			if !Given(n) {
				n = -1
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	for _, c := range []struct {
		was  []int32
		want []float64
	}{
		{[]int32{0, 1, 2}, []float64{0, 1, 2}},
		{[]int32{2, -1, 0, 1, -1}, []float64{2, -1, 0, 1, -1}},
		{[]int32{1}, []float64{1}},
		{nil, nil},
	} {
		set := &AllocationSet{}
		f.Uses = append(f.Uses[:0], use(0), use(1), use(2))
		if f.Reattribute(set, c.was); f.AllocationSet != set || !slices.Equal(given(f.Uses), c.want) {
			t.Errorf("%v: %v, want %v", c.was, given(f.Uses), c.want)
		}
	}
	f.Uses = f.Uses[:0]
	if f.Reattribute(&AllocationSet{}, []int32{-1, -1}); len(f.Uses) != 0 {
		t.Errorf("%v uses, and nothing is said of any", f.Uses)
	}
}
