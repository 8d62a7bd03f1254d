package export

import (
	"slices"
	"strings"
	"testing"
)

// FuzzColumns: a choice yields existing columns in the order of its names, or an error that
// says what is wrong.
func FuzzColumns(f *testing.F) {
	f.Add("default", "job")
	f.Add("all+", "")
	f.Add(" timestamp , gpu_id,,real_util_pct", "a")
	f.Add("timestamp,nonsense", "timestamp")
	f.Fuzz(func(t *testing.T, spec, job string) {
		chosen, err := ParseColumns(spec, []string{job})
		if err != nil {
			if len(chosen) > 0 || !strings.Contains(err.Error(), "column") {
				t.Errorf("%d columns beside %v", len(chosen), err)
			}
			return
		}
		if len(chosen) == 0 {
			t.Error("neither a column nor an error")
		}
		if spec == "default" || spec == "all" || spec == "all+" {
			return
		}
		var names []string
		for name := range strings.SplitSeq(spec, ",") {
			names = append(names, slices.DeleteFunc(strings.Split(name, " "), func(word string) bool { return word == "" })...)
		}
		if len(names) != len(chosen) {
			t.Fatalf("%d columns of %d names", len(chosen), len(names))
		}
		for i, c := range chosen {
			if c.Name != names[i] {
				t.Errorf("column %d is %q, want %q", i, c.Name, names[i])
			}
		}
	})
}
