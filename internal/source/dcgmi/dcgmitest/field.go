package dcgmitest

import (
	"fmt"
	"slices"
	"strings"
)

// Field is what dcgmi knows of a field.
type Field struct {
	ID     int
	Name   string // in lower case: what dmon -l and profile -l print
	Column string // the column's heading
	Unit   string // below the heading, often empty, some with a leading blank
	Width  int    // the column takes 8 more
	Float  bool   // prints three decimals; else a whole number
	Level  Level
	Model  Model
	// Low and High are the range of a Gauge, Rate or Constant. A Counter starts
	// in [Low, 2·Low] and gains up to High with each sample.
	Low, High float64
	Since     string // the first release that has it; "" is all
}

// Level is the smallest part of a board that has a reading of its own.
type Level int

// The levels. A part below the level shows the board's reading, unless the level
// says otherwise.
const (
	OfBoard     Level = iota
	OfInstance        // instances have their own; compute instances have no sample
	OfCompute         // instances and compute instances have their own
	OfBoardOnly       // instances and compute instances are blank
	OfLink            // everything but links is blank
)

// Model is how a field behaves that no Reading speaks of.
type Model int

// The models.
const (
	Gauge       Model = iota
	Rate              // 0 in the first sample
	Counter           // never falls
	Constant          // the same in all samples
	Never             // no sample at all
	Unsupported       // blank
)

// Profiling says whether the field with this id is one of the profiling module.
func Profiling(id int) bool { return 1001 <= id && id < 1200 }

// FieldByID returns the field with this id, if the release has it. Only fields
// are here whose columns are known for sure.
func FieldByID(r Release, id int) (Field, bool) {
	i, known := slices.BinarySearchFunc(fields, id, func(f Field, id int) int { return f.ID - id })
	if !known || !r.Since(fields[i].Since) {
		return Field{}, false
	}
	field := fields[i]
	if !r.Since("4.6.0") {
		// 4.6 dropped the B of bandwidth from the headings of single links.
		field.Column = strings.Replace(field.Column, "NVLTXT", "NVLTXB", 1)
		field.Column = strings.Replace(field.Column, "NVLRXT", "NVLRXB", 1)
	}
	return field, true
}

// Fields returns all fields that the release has, by id.
func Fields(r Release) []Field {
	var all []Field
	for _, field := range fields {
		if f, ok := FieldByID(r, field.ID); ok {
			all = append(all, f)
		}
	}
	return all
}

// fields is the table, sorted by id.
var fields = func() []Field {
	all := slices.Concat(deviceFields, linkFields(), profilingFields)
	slices.SortFunc(all, func(a, b Field) int { return a.ID - b.ID })
	return all
}()

// linkFields returns the fields that there are one of for each link.
func linkFields() []Field {
	var all []Field
	add := func(id int, name, column, unit, since string, model Model, level Level, high float64) {
		all = append(all, Field{
			ID: id, Name: name, Column: column, Unit: unit, Width: 20,
			Level: level, Model: model, High: high, Since: since,
		})
	}
	// The ids of the total throughput of each link are not in one row.
	both := slices.Concat(ids(440, 445), ids(475, 480), ids(446, 448), ids(494, 496))
	for link, id := range both {
		add(id, fmt.Sprintf("nvlink_bandwidth_l%d", link), fmt.Sprintf("NBWL%d", link), "MB/s", "", Rate, OfBoard, 20000)
	}
	for link := range both {
		n := fmt.Sprint(link)
		add(825+link, "nvlink_tx_bandwidth_l"+n, "NVLTXT"+n, "MB/s", "4.2.3", Rate, OfBoard, 10000)
		add(879+link, "nvlink_rx_bandwidth_l"+n, "NVLRXT"+n, "MB/s", "4.2.3", Rate, OfBoard, 10000)
		add(1040+2*link, "nvlink_l"+n+"_tx_bytes", "NVL"+n+"T", "", "", Gauge, OfBoardOnly, 2e10)
		add(1041+2*link, "nvlink_l"+n+"_rx_bytes", "NVL"+n+"R", "", "", Gauge, OfBoardOnly, 2e10)
	}
	return all
}

// ids returns the whole numbers from first to last.
func ids(first, last int) []int {
	all := make([]int, 0, last-first+1)
	for id := first; id <= last; id++ {
		all = append(all, id)
	}
	return all
}
