package fake

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// headerEvery is the number of samples between two headers; the first interval
// is longer by one.
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
	d := dmon{fake: f, delay: time.Second}
	if value, given := set["-d"]; given {
		d.delay = time.Duration(number(value)) * time.Millisecond
	}
	d.count, _ = strconv.Atoi(set["-c"])
	if result := f.connect("dmon", set); result != ok {
		return result
	}
	if result := d.prepare(set); result != ok {
		return result
	}
	f.out.printf("%s", header(f.release, d.fields))
	f.out.flush()
	if result := d.watch(); result != ok {
		return result
	}
	return d.run()
}

// prepare creates the groups of entities and fields.
func (d *dmon) prepare(set map[string]string) status {
	entities, result, text := d.group(set)
	if result != ok {
		fmt.Fprintln(d.err, text)
		return result
	}
	d.entities = entities
	if d.fields, text = d.parseFields(set["-e"]); text != "" {
		fmt.Fprintln(d.err, text)
		return badParam
	}
	d.profiling = slices.ContainsFunc(d.fields, func(f dcgmtest.Field) bool { return dcgmtest.Profiling(f.ID) })
	if refused, is := d.failure(dcgmtest.FieldGroupRefused, "dmon", d.profiling); is && d.has(refused.Field) {
		fmt.Fprintf(d.err, "Got error while creating a Field Group: %s\n", status(refused.Code))
		return status(refused.Code)
	}
	return ok
}

// parseFields returns the fields of a list of ids, or dmon's error text.
func (d *dmon) parseFields(list string) ([]dcgmtest.Field, string) {
	var fields []dcgmtest.Field
	for token := range strings.SplitSeq(list, ",") {
		id := number(token)
		field, known := dcgmtest.FieldByID(d.release, id)
		if !known {
			return nil, fmt.Sprintf("Error: Got invalid field ID. '%d'. See dcgm_fields.h for a list of valid field IDs.", id)
		}
		fields = append(fields, field)
	}
	return fields, ""
}

// has reports whether a field is requested, always true for 0.
func (d *dmon) has(field int) bool {
	return field == 0 || slices.ContainsFunc(d.fields, func(f dcgmtest.Field) bool { return f.ID == field })
}

// watch makes the host engine watch the fields.
func (d *dmon) watch() status {
	refused, is := d.failure(dcgmtest.WatchRefused, "dmon", d.profiling)
	is = is && d.has(refused.Field)
	code := status(refused.Code)
	if slices.ContainsFunc(d.entities, d.isLost) {
		is, code = true, gpuLost
	}
	if !is {
		return ok
	}
	fmt.Fprintf(d.err, "Error setting watches. Result: %d: %s\n\n", int(code), code)
	return code
}

// run prints samples until the count or a failure ends it.
func (d *dmon) run() status {
	sinceHeader := 0
	for tick := 0; ; tick++ {
		_ = d.read() // exitWhenGone ends the process if the scenario is gone
		d.out.setPace(d.scenario.Pace)
		if result, over := d.fail(tick); over {
			return result
		}
		time.Sleep(time.Duration(d.scenario.Pace.WorkMS) * time.Millisecond)
		d.sample(tick)
		d.out.flush()
		if d.count > 0 && tick+1 == d.count {
			return ok
		}
		d.sleep(tick)
		if sinceHeader == headerEvery {
			d.out.printf("%s", header(d.release, d.fields))
			sinceHeader = 0
		}
		sinceHeader++
	}
}

// sample prints the rows of one sample.
func (d *dmon) sample(tick int) {
	if garbage, is := d.failure(dcgmtest.Garbage, "dmon", d.profiling); is && garbage.Lasts(tick) {
		d.out.printf("%s", garbage.Text)
	}
	glued, glue := d.failure(dcgmtest.GluedRows, "dmon", d.profiling)
	for i, e := range d.entities {
		line := row(d.scenario, d.release, e, d.fields, tick)
		if glue && i == 0 && glued.Lasts(tick) {
			line = strings.TrimSuffix(line, "\n")
		}
		d.out.printf("%s", line)
	}
}

// sleep waits for the next sample.
func (d *dmon) sleep(tick int) {
	pace := d.scenario.Pace
	jitter := dcgmtest.Share(d.scenario.Seed, tick) * float64(pace.JitterMS) * float64(time.Millisecond)
	time.Sleep(d.delay + time.Duration(jitter))
}

// fail performs the failures before sample number tick, and reports whether the
// process ends.
func (d *dmon) fail(tick int) (result status, over bool) {
	for _, failure := range d.scenario.Failures {
		if failure.After > tick || failure.Command != "" && failure.Command != "dmon" || failure.Profiling && !d.profiling {
			continue
		}
		switch failure.Kind {
		case dcgmtest.HostEngineDies:
			fmt.Fprintf(d.err, "Error getting values information. Return %d: %s\n", int(disconnected), disconnected)
			return disconnected, true
		case dcgmtest.NoData:
			fmt.Fprintln(d.err, "No data returned from the hostengine.")
			return noData, true
		case dcgmtest.Exit:
			d.out.flush()
			fmt.Fprint(d.err, failure.Text)
			return status(failure.Code), true
		case dcgmtest.Hang:
			hang(failure, func() { d.part(tick, failure.Bytes) })
		case dcgmtest.Die:
			d.part(tick, failure.Bytes)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return ok, false
}

// part prints the first bytes of sample number tick.
func (d *dmon) part(tick, bytes int) {
	before := len(d.out.pending)
	d.sample(tick)
	d.out.pending = d.out.pending[:min(before+bytes, len(d.out.pending))]
	d.out.flush()
}
