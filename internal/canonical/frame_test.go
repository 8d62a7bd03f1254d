package canonical

import (
	"slices"
	"testing"
)

// TestReattribute: the use of an allocation moves with it, and that of an allocation that the
// source did not report is unknown.
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
		t.Errorf("%v: the source measured no use", f.Uses)
	}
}

// TestShape gives a frame more devices, fewer, and more again: cells are distinct, and none keeps
// its old value.
func TestShape(t *testing.T) {
	var f Frame
	if f.Len() != 0 || f.Gives(SMActive) {
		t.Error("a frame without a shape has devices")
	}
	for _, n := range []int{2, 3, 1, 3} {
		topology := &Topology{Devices: make([]Device, n)}
		if f.Shape(topology); f.Topology != topology || f.Len() != n {
			t.Fatalf("%d devices, want %d", f.Len(), n)
		}
		for field := range NumFields {
			if f.Gives(field) {
				t.Fatalf("%s has a value before it was read", Fields[field].Name)
			}
		}
		for device := range n {
			for field := range NumFields {
				*f.Cell(device, field) = float64(1000*device + int(field))
			}
		}
		for device := range n {
			row := f.Row(device)
			if len(row) != int(NumFields) || cap(row) != int(NumFields) {
				t.Fatalf("device %d has %d readings, and room for %d", device, len(row), cap(row))
			}
			for field, v := range row {
				if v != float64(1000*device+field) {
					t.Errorf("device %d, field %d: %g", device, field, v)
				}
			}
		}
	}
}
