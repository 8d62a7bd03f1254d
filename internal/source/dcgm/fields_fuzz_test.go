package dcgm

import (
	"slices"
	"testing"
)

// FuzzFields: the chosen fields are in dmon, each once, in the order of Fields.
func FuzzFields(f *testing.F) {
	for _, text := range []string{"", "all", "core", "150,155,1002", " 1002 , 150,150", "-1", "99999999999999999999", "150,", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := ParseFields(text)
		if err != nil {
			if ids != nil {
				t.Errorf("%v beside %v", ids, err)
			}
			return
		}
		before := -1
		for _, id := range ids {
			i := slices.IndexFunc(Fields[:], func(field Field) bool { return field.ID == id && field.InDmon() })
			if i <= before {
				t.Errorf("%v: %d is unknown or out of order", ids, id)
			}
			before = i
		}
		if len(ids) == 0 {
			t.Error("neither a field nor an error")
		}
	})
}
