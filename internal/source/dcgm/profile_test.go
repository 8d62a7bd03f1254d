package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
