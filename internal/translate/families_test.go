package translate

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// publishedFamily is a row of testdata/families.tsv, whose head explains the columns.
type publishedFamily struct {
	id, blanks, number string
	value              float64
	field              canonical.Field
	after              string
	names              []string // the column of dmon included
}

// notSupported is what DCGM gives for an unsupported field, by the field's type: the constants of
// dcgm_structs.h for 32-bit integers, floats and 64-bit integers.
var notSupported = [...]string{"2147483634", "140737488355330", "9223372036854775794"}

// blankWords says which of notSupported mean no value, by the words in the table.
var blankWords = map[string][len(notSupported)]bool{
	"small": {true, false, true}, "large": {false, false, true}, "float": {false, true, true}, "either": {true, true, true},
}

// plainUnits has, for each SI unit, the unit whose numbers are the same.
var plainUnits = map[canonical.Unit]Unit{
	canonical.Ratio: Ratio, canonical.Bytes: Bytes, canonical.BytesPerSecond: BytesPerSecond, canonical.Watts: Watts,
	canonical.Joules: Joules, canonical.Celsius: Celsius, canonical.Hertz: Hertz, canonical.Seconds: Seconds,
	canonical.Count: Number, canonical.Flag: Number, canonical.Code: Number, canonical.Bitmask: Number,
}

func publishedFamilies(t *testing.T) (list []publishedFamily) {
	t.Helper()
	table, err := os.ReadFile("testdata/families.tsv")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]canonical.Field{}
	for f := range canonical.NumFields {
		name := canonical.Fields[f].Name
		if canonical.Fields[f].Labels != "" {
			name += "{" + canonical.Fields[f].Labels + "}"
		}
		fields[name] = f
	}
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 9 {
			t.Fatalf("%q does not have nine columns", line)
		}
		value, err := strconv.ParseFloat(cells[5], 64)
		field, known := fields[cells[6]]
		if _, word := blankWords[cells[2]]; err != nil || !known || !word {
			t.Fatalf("%q: value %v, reading known %v, blanks known %v", line, err, known, word)
		}
		names := strings.Fields(cells[8])
		if cells[1] != "-" {
			names = append(names, cells[1])
		}
		list = append(list, publishedFamily{cells[0], cells[2], cells[3], value, field, cells[7], names})
	}
	return list
}

// TestFamilies: each published family gives its reading and no other, in SI; blanks of its type give
// none; and it yields to another family of the reading, or does not, as published.
func TestFamilies(t *testing.T) {
	const faint = 1e-9 // below all values of the table
	var rivals []Row   // a family for each reading, of the first rank
	for f := range canonical.NumFields {
		rivals = append(rivals, Row{Field: f, Unit: plainUnits[canonical.Fields[f].Unit], Names: []string{fmt.Sprint("rival_", f)}})
	}
	r := newReader(t, Options{Rows: rivals})
	for _, family := range publishedFamilies(t) {
		for _, name := range family.names {
			var body strings.Builder
			sample := func(family string, gpu int, number any) {
				fmt.Fprintf(&body, "%s{gpu=\"%d\",UUID=\"GPU-%[2]d\"} %v\n", family, gpu, number)
			}
			sample(name, 0, family.number)
			sample(name, 1, family.number)
			sample(rivals[family.field].Names[0], 1, faint)
			blank := uint64(0)
			for i, number := range notSupported {
				sample(name, 2+i, number)
				if blankWords[family.blanks][i] {
					blank++
				}
			}
			winner := family.value
			if family.after != "-" {
				winner = faint
			}
			r.read(body.String())
			if r.frame.Len() != 2+len(notSupported) {
				t.Fatalf("%s: %d devices", name, r.frame.Len())
			}
			t.Log(name)
			r.checkRow(0, readings{family.field: family.value})
			r.checkRow(1, readings{family.field: winner})
			if got := r.report.Dropped[canonical.DropBlank]; got != blank {
				t.Errorf("%s: %d of %v are blanks, want %d", name, got, notSupported, blank)
			}
		}
	}
}

// TestFamiliesAreThoseOfTheDialect: the table has each name of the dialect once and no other, and
// a family goes after one of its own reading.
func TestFamiliesAreThoseOfTheDialect(t *testing.T) {
	published := publishedFamilies(t)
	var names []string
	readingOf := map[string]canonical.Field{}
	for _, family := range published {
		names = append(names, family.names...)
		if family.after == "-" {
			readingOf[family.id] = family.field
		}
	}
	for _, family := range published {
		if first, ok := readingOf[family.after]; family.after != "-" && (!ok || first != family.field) {
			t.Errorf("%v goes after field %s, which does not give the reading", family.names, family.after)
		}
	}
	rules, err := newRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	maps.DeleteFunc(rules.byName, func(name string, _ *rule) bool { // those of other exporters
		return strings.HasPrefix(name, jobPrefix) || slices.ContainsFunc(cardRows, func(r Row) bool { return slices.Contains(r.Names, name) })
	})
	if known := slices.Sorted(maps.Keys(rules.byName)); !slices.Equal(names, known) {
		for _, name := range append(names, known...) {
			if slices.Contains(names, name) != slices.Contains(known, name) {
				t.Errorf("%s: published %v, in the dialect %v", name, slices.Contains(names, name), slices.Contains(known, name))
			}
		}
	}
}

// TestSiblingsCameWithTheRatio: of the published families, those that came with the ratio of DCGM
// 4.7, whose number is 1613, show that it is one. Those before did not, 4.6.1's in base units
// included.
func TestSiblingsCameWithTheRatio(t *testing.T) {
	for _, family := range publishedFamilies(t) {
		id, _ := strconv.Atoi(family.id) // 0 of none, and of the ratio itself
		for _, name := range family.names {
			if got := isSibling(name); got != (id > 1613) {
				t.Errorf("%s of field %s is a sibling: %v", name, family.id, got)
			}
		}
	}
	for name, want := range map[string]bool{
		"DCGM_FI_DEV_NVLINK_THROUGHPUT_L0_BYTES_PER_SECOND": true, // 1630
		"DCGM_FI_DEV_NVLINK_THROUGHPUT_L0":                  false,
		"DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL":                 false,
		"DCGM_FI_DEV_FB_USED_RATIO":                         false, // 254
		"DCGM_FI_DEV_BAR1_USED_BYTES":                       false, // 1601
		"DCGM_FI_DEV_VIDEO_CLOCK_HERTZ":                     false, // 1605
		"DCGM_FI_DEV_FAN_SPEED_RATIO":                       false, // 1612
		"DCGM_FI_DEV_CPU_UTIL_TOTAL":                        false,
	} {
		if got := isSibling(name); got != want {
			t.Errorf("%s is a sibling: %v", name, got)
		}
	}
}
