package dcgm

import (
	"fmt"
	"slices"
	"strings"
)

// ParseFields returns the ids of the fields that a text chooses, in the order of Fields: all or "" for all; core for
// those that every GPU counts at the same time; or ids, as in 150,155,1002.
func ParseFields(text string) (ids []int, err error) {
	chosen := func(*Field) bool { return true }
	switch text {
	case "all", "":
	case "core":
		chosen = func(f *Field) bool { return !f.Multiplexed }
	default:
		list, err := parseIDs(text)
		if err != nil {
			return nil, err
		}
		chosen = func(f *Field) bool { return slices.Contains(list, f.ID) }
	}
	for i := range Fields {
		if f := &Fields[i]; f.InDmon() && chosen(f) {
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// parseIDs reads ids of fields that we know.
func parseIDs(text string) (ids []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		n := id(word)
		f := fieldByID(n)
		switch {
		case n == Unknown:
			return nil, fmt.Errorf("%q is not an id of a field; write all, core, or ids such as 150,155,1002", word)
		case f == nil || !f.InDmon():
			return nil, fmt.Errorf("%s is not a field that kpulse-proxy reads; choose from %s", word, allIDs())
		}
		ids = append(ids, n)
	}
	return ids, nil
}

// allIDs lists the ids of all fields in ascending order.
func allIDs() string {
	ids, _ := ParseFields("all")
	slices.Sort(ids)
	list := fmt.Sprint(ids) // [100 101 …]
	return list[1 : len(list)-1]
}

// Gives reports whether dmon can show the DCGM field with that id.
func Gives(id int) bool {
	f := fieldByID(id)
	return f == nil || !f.Unprintable
}

// fieldByID returns a field that DCGM has, nil if there is none with that id.
func fieldByID(id int) *Field {
	i := slices.IndexFunc(Fields[:], func(f Field) bool { return f.ID == id && !f.Foreign() })
	if i < 0 {
		return nil
	}
	return &Fields[i]
}
