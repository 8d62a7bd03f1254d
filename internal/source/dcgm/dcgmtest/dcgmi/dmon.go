package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// headerEvery is the number of samples between two headers; the first interval is longer by one.
const headerEvery = 14

// dmon is the loop that prints samples.
type dmon struct {
	*fake
	fields    []dcgmtest.Field
	entities  []dcgmtest.Entity
	profiling bool
	delay     time.Duration
	count     int // 0 for no limit
}

func (f *fake) dmon(set map[string]string) status {
	d := dmon{fake: f, delay: time.Duration(number(cmp.Or(set["-d"], "1000"))) * time.Millisecond, count: number(cmp.Or(set["-c"], "0"))}
	if result, text := d.prepare(set); result != ok {
		fmt.Fprintln(os.Stderr, text)
		return result
	}
	f.header(d.fields)
	f.flush()
	refused, is := d.failure(dcgmtest.WatchRefused, "dmon", d.profiling)
	code := status(refused.Code)
	if slices.ContainsFunc(d.entities, d.isLost) {
		is, code = true, gpuLost
	}
	if is && d.has(refused.Field) {
		fmt.Fprintf(os.Stderr, "Error setting watches. Result: %d: %s\n\n", int(code), code)
		return code
	}
	return d.run()
}

// prepare creates the groups of entities and fields, or returns dmon's error text.
func (d *dmon) prepare(set map[string]string) (result status, text string) {
	if d.entities, result, text = d.group(set); result != ok {
		return result, text
	}
	for token := range strings.SplitSeq(set["-e"], ",") {
		field, known := dcgmtest.FieldByID(d.release, number(token))
		if !known {
			return badParam, fmt.Sprintf("Error: Got invalid field ID. '%d'. See dcgm_fields.h for a list of valid field IDs.", number(token))
		}
		d.fields = append(d.fields, field)
		d.profiling = d.profiling || dcgmtest.Profiling(field.ID)
	}
	if refused, is := d.failure(dcgmtest.FieldGroupRefused, "dmon", d.profiling); is && d.has(refused.Field) {
		return status(refused.Code), fmt.Sprintf("Got error while creating a Field Group: %s", status(refused.Code))
	}
	return ok, ""
}

// group returns the entities that dmon watches, in the order of NVML's ids: those of -i, of which the forms `3` and
// `i:7` are emulated, or all boards. The text is dmon's error text.
func (f *fake) group(set map[string]string) (entities []dcgmtest.Entity, result status, text string) {
	var all []dcgmtest.Entity
	for _, gpu := range slices.SortedStableFunc(slices.Values(f.scenario.GPUs), func(a, b dcgmtest.GPU) int { return cmp.Compare(a.Index, b.Index) }) {
		all = append(all, dcgmtest.Entity{ID: gpu.Index})
		for _, i := range slices.SortedFunc(slices.Values(gpu.Instances), func(a, b dcgmtest.Instance) int { return cmp.Compare(a.ID, b.ID) }) {
			all = append(all, dcgmtest.Entity{Instance: true, ID: i.Entity})
		}
	}
	list, given := set["-i"]
	if !given {
		return slices.DeleteFunc(all, func(e dcgmtest.Entity) bool { return e.Instance || f.release.Since("4.5.0") && f.isLost(e) }), ok, ""
	}
	for token := range strings.SplitSeq(list, ",") {
		id, instance := strings.CutPrefix(token, "i:")
		e := dcgmtest.Entity{Instance: instance, ID: number(id)}
		word, code := map[bool]string{false: "GPU", true: "GPU_I"}[instance], ok
		switch {
		case !slices.Contains(all, e):
			code = badParam
		case f.isLost(e) && f.release.Since("4.5.0"):
			code = gpuLost
		}
		if code != ok {
			return nil, code, fmt.Sprintf("Error: Got error %d %s while adding %s %d to our entity group.", int(code), code, word, e.ID)
		}
		entities = append(entities, e)
	}
	slices.SortFunc(entities, func(a, b dcgmtest.Entity) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
	return slices.Compact(entities), ok, ""
}

// isLost reports whether e is a board that was lost before the start.
func (f *fake) isLost(e dcgmtest.Entity) bool {
	return slices.ContainsFunc(f.scenario.GPUs, func(g dcgmtest.GPU) bool { return g.Lost && !e.Instance && g.Index == e.ID })
}

// number returns digits as a number, -1 if they are none, which is not an entity's id.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// has reports whether a field is requested, always true for 0.
func (d *dmon) has(field int) bool {
	return field == 0 || slices.ContainsFunc(d.fields, func(f dcgmtest.Field) bool { return f.ID == field })
}

// run prints samples until the count or a failure ends it.
func (d *dmon) run() status {
	sinceHeader := 0
	for tick := 0; ; tick++ {
		d.read()
		if result, over := d.fail(tick); over {
			return result
		}
		d.sample(tick)
		d.flush()
		if d.count > 0 && tick+1 == d.count {
			return ok
		}
		time.Sleep(d.delay)
		if sinceHeader == headerEvery {
			d.header(d.fields)
			sinceHeader = 0
		}
		sinceHeader++
	}
}

// firstColumn returns the width of the entity column.
func (f *fake) firstColumn() int {
	switch {
	case f.release.Since("4.5.0"):
		return 16
	case f.release.Since("4.0.0"):
		return 11
	}
	return 10
}

// cell returns text padded to the column of f, and cut if it is too long.
func cell(f dcgmtest.Field, text string) string {
	width := f.Width + 6
	if len(text) > width {
		text = text[:width-3] + "..."
	}
	return fmt.Sprintf("%-*s", width+2, text)
}

// header prints the two lines above the rows.
func (f *fake) header(fields []dcgmtest.Field) {
	names, units := fmt.Sprintf("%-*s", f.firstColumn(), "#Entity"), fmt.Sprintf("%-*s", f.firstColumn(), "ID")
	for _, field := range fields {
		names += cell(field, field.Column)
		units += cell(field, field.Unit)
	}
	f.printf("%s\n%s\n", names, units)
}

// sample prints the rows of one sample.
func (d *dmon) sample(tick int) {
	if garbage, is := d.failure(dcgmtest.Garbage, "dmon", d.profiling); is && tick >= garbage.After {
		d.printf("%s", garbage.Text)
	}
	for _, e := range d.entities {
		d.printf("%-*s", d.firstColumn(), e)
		for _, field := range d.fields {
			d.printf("%s", cell(field, d.scenario.Cell(e, field, tick)))
		}
		d.printf("\n")
	}
}

// fail performs the failures before sample number tick, and reports whether the process ends.
func (d *dmon) fail(tick int) (result status, over bool) {
	for _, failure := range d.scenario.Failures {
		if failure.After > tick || failure.Command != "" && failure.Command != "dmon" || failure.Profiling && !d.profiling {
			continue
		}
		switch failure.Kind {
		case dcgmtest.HostEngineDies:
			fmt.Fprintf(os.Stderr, "Error getting values information. Return %d: %s\n", int(disconnected), disconnected)
			return disconnected, true
		case dcgmtest.NoData:
			fmt.Fprintln(os.Stderr, "No data returned from the hostengine.")
			return noData, true
		case dcgmtest.Exit:
			fmt.Fprint(os.Stderr, failure.Text)
			return status(failure.Code), true
		case dcgmtest.Hang:
			d.part(tick, failure.Bytes)
			d.hang(failure)
		case dcgmtest.Die:
			d.part(tick, failure.Bytes)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			d.hang(failure) // until the signal arrives
		}
	}
	return ok, false
}

// part prints the first bytes of sample number tick.
func (d *dmon) part(tick, bytes int) {
	before := d.out.Len()
	d.sample(tick)
	d.out.Truncate(min(before+bytes, d.out.Len()))
	d.flush()
}
