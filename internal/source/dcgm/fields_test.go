package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseFields(t *testing.T) {
	var list []string
	for _, id := range documentedIDs() {
		if !slices.Contains([]int{1216, 1218, 1401, 1402}, id) { // not in dmon
			list = append(list, fmt.Sprint(id))
		}
	}
	unknown := " is not a field that kpulse-proxy reads; choose from " + strings.Join(list, " ")
	for _, c := range []struct {
		text string
		want []int
		err  string
	}{
		{text: "100", want: []int{100}},
		{text: "1002, 150,101,100", want: []int{100, 101, 150, 1002}},
		{text: "102", err: "102" + unknown},
		{text: "100,1216", err: "1216" + unknown},
		{text: "0", err: "0" + unknown},
		{text: "100,x", err: `"x" is not an id of a field; write all, core, or ids such as 150,155,1002`},
	} {
		ids, err := ParseFields(c.text)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if !slices.Equal(ids, c.want) || said != c.err {
			t.Errorf("%q: %v, %q", c.text, ids, said)
		}
	}
}

// TestCoreFields: the core lacks what GPUs before Hopper count in turns, and what dmon does not print.
func TestCoreFields(t *testing.T) {
	ids, err := ParseFields("core")
	slices.Sort(ids)
	want := slices.DeleteFunc(documentedIDs(), func(id int) bool {
		return slices.Contains([]int{1007, 1008, 1013, 1014, 1015, 1016, 1216, 1218, 1401, 1402}, id)
	})
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v: %v, want %v", err, ids, want)
	}
}
