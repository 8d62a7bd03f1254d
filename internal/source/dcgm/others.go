package dcgm

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
)

// MaxOthers bounds the fields of a Page that are not in Fields: DCGM before 4.6 watches
// 128 at a time (DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP), including those of Fields.
const MaxOthers = 48

// MaxFields bounds the fields of a reading: Fields, followed by those of a Page that Fields
// lacks.
const MaxFields = len(Fields) + MaxOthers

// others are the numeric fields of a GPU in DCGM 4.6 that Fields lacks: on each line the
// id, dmon's column, whether the values are integer or double, and all names
// (DcgmFieldGetById of libdcgm; dcgm_fields.h). Profiling fields are left out, since the
// hardware counts only a few at a time, and so are fields that share their column with
// another.
//
//go:embed others.txt
var others string

// otherOf returns the field in others with that name. ok is false if there is none.
func otherOf(name string) (f Field, ok bool) {
	for line := range strings.Lines(others) {
		words := strings.Fields(line)
		if !slices.Contains(words[3:], name) {
			continue
		}
		n, err := strconv.Atoi(words[0])
		return Field{ID: n, Column: words[1], Family: name, Type: gauge, Float: words[2] == "double", Rate: true, Recent: true}, err == nil
	}
	return Field{}, false
}

// Others returns the fields of p, which may be nil, that are not in Fields. It is unknown
// which of them are rates, so all count as rates: the first sample of a stream has none of
// them. They are never written to.
func (p *Page) Others() []Field {
	if p == nil {
		return nil
	}
	return p.others
}

// Field returns the field with an index in Fields, followed by Others. p may be nil.
func (p *Page) Field(i int) *Field {
	if i < len(Fields) {
		return &Fields[i]
	}
	return &p.others[i-len(Fields)]
}

// FieldOf returns the index, as Field takes it, of a column of dmon, -1 if there is none. p
// may be nil.
func (p *Page) FieldOf(column []byte) int {
	if at := FieldOf(column); at >= 0 || p == nil {
		return at
	}
	at := slices.IndexFunc(p.others, func(f Field) bool { return f.Column == string(column) })
	if at < 0 {
		return at
	}
	return len(Fields) + at
}

// add returns the index, as Field takes it, of a line of a counters file, Unknown if there is
// no such field or no room for it.
func (p *Page) add(c *Counter, gives func(id int) bool) int {
	if c.Field != Unknown {
		if gives(Fields[c.Field].ID) {
			return c.Field
		}
		return Unknown
	}
	f, ok := otherOf(c.Name)
	if !ok || !gives(f.ID) {
		return Unknown
	}
	at := slices.IndexFunc(p.others, func(other Field) bool { return other.ID == f.ID })
	if at < 0 && len(p.others) == MaxOthers {
		return Unknown
	}
	if at < 0 {
		at = len(p.others)
		p.others = append(p.others, f)
	}
	return len(Fields) + at
}
