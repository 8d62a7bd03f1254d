package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// profileList writes `dcgmi profile -l` from words such as A.0:1001.
func profileList(words string) []byte {
	const rule = "+----------------+----------+------------------------------------------------------+\n"
	text := rule + "| Group.Subgroup | Field ID | Field Tag                                            |\n" + rule
	for word := range strings.FieldsSeq(words) {
		group, field, _ := strings.Cut(word, ":")
		text += fmt.Sprintf("| %-14s | %-8s | %-52s |\n", group, field, "some_tag")
	}
	return []byte(text + rule)
}

func TestProfiled(t *testing.T) {
	for _, c := range []struct {
		name, listing string
		want          []int
	}{
		{"H100", "A.0:1001 A.0:1002 A.0:1007 A.0:1008 A.0:1013 A.0:1014 A.0:1015 A.0:1016 B.0:1040 C.0:1084", []int{1007, 1008, 1013, 1014, 1015, 1016}},
		{"H100 of an older DCGM", "A.0:1016 A.0:1007 A.0:1002", []int{1007, 1016}},
		{"A100", "A.1:1002 A.1:1003 A.1:1004 A.1:1006 A.2:1008 A.2:1013 A.2:1014 A.3:1007 B.0:1005 C.0:1009 C.0:1010 D.0:1001", []int{1007, 1008, 1013, 1014}},
		{"A10", "A.1:1002 A.1:1003 A.1:1004 A.1:1007 A.3:1008 B.0:1005 D.0:1001", []int{1007, 1008}},
		{"what we do not read takes turns", "A.0:1002 A.0:1007 Z.0:1040 Z.1:1041", []int{1007}},
		{"nothing", "", nil},
		{"no number", "A.0:x A.0:01013", nil},
	} {
		if got := profiled(profileList(c.listing)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := profiled([]byte("Error: Unable to Get supported metric groups\n")); got != nil {
		t.Errorf("%v of an error", got)
	}
}

func TestOneOfEachModel(t *testing.T) {
	var n Inventory
	board := func(entity int, model string, cut ...Device) {
		b := NewBoard(entity, "")
		b.Model = model
		n.Add(b, cut...)
	}
	board(0, "A100")
	board(1, "H100", NewInstance(7, "1", ""))
	board(2, "A100")
	board(3, "H100")
	board(4, "L40S")
	n.Devices[n.Find(false, 4)].Inactive = true
	for _, c := range []struct {
		chosen []bool // board 0, 1, its instance, 2, 3, 4
		want   []int
	}{
		{[]bool{true, true, true, true, true, true}, []int{0, 1}},
		{[]bool{false, false, true, true, true, false}, []int{1, 2}},
		{[]bool{false, false, false, false, true, true}, []int{3}},
		{make([]bool, 6), nil},
	} {
		if got := n.OneOfEach(&canonical.Selection{Chosen: c.chosen}); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.chosen, got, c.want)
		}
	}
}
