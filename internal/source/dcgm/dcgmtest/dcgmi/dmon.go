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

// entityWidth is the width of the entity column.
const entityWidth = 16

func (f *fake) dmon(set map[string]string) status {
	f.header()
	if refused, is := f.failure(dcgmtest.WatchRefused, "dmon"); is {
		fmt.Fprintf(os.Stderr, "Error setting watches. Result: %d: %s\n\n", refused.Code, status(refused.Code))
		return status(refused.Code)
	}
	count, delay := number(cmp.Or(set["-c"], "0")), time.Duration(number(cmp.Or(set["-d"], "1000")))*time.Millisecond
	entities := f.group(set)
	for tick := 0; ; tick++ {
		f.read()
		if result, over := f.fail(tick); over {
			return result
		}
		f.sample(entities, tick)
		if tick+1 == count {
			return ok
		}
		time.Sleep(delay)
	}
}

// group returns the entities that dmon watches, in the order of NVML's ids: those of -i that exist, in the forms `3` and
// `i:7`, or all boards that are not lost.
func (f *fake) group(set map[string]string) (entities []dcgmtest.Entity) {
	list, given := set["-i"]
	add := func(e dcgmtest.Entity, token string, byDefault bool) {
		if given && slices.Contains(strings.Split(list, ","), token) || !given && byDefault {
			entities = append(entities, e)
		}
	}
	for _, gpu := range slices.SortedStableFunc(slices.Values(f.scenario.GPUs), func(a, b dcgmtest.GPU) int { return cmp.Compare(a.Index, b.Index) }) {
		add(dcgmtest.Entity{ID: gpu.Index}, strconv.Itoa(gpu.Index), !gpu.Lost)
		for _, i := range slices.SortedFunc(slices.Values(gpu.Instances), func(a, b dcgmtest.Instance) int { return cmp.Compare(a.ID, b.ID) }) {
			add(dcgmtest.Entity{Instance: true, ID: i.Entity}, "i:"+strconv.Itoa(i.Entity), false)
		}
	}
	return entities
}

// number returns digits as a number, -1 if they are none, which is not an entity's id.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
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
func (f *fake) header() {
	names, units := fmt.Sprintf("%-*s", entityWidth, "#Entity"), fmt.Sprintf("%-*s", entityWidth, "ID")
	for _, field := range f.fields {
		names += cell(field, field.Column)
		units += cell(field, field.Unit)
	}
	f.printf("%s\n%s\n", names, units)
	f.flush()
}

// sample prints the rows of one sample.
func (f *fake) sample(entities []dcgmtest.Entity, tick int) {
	if garbage, is := f.failure(dcgmtest.Garbage, "dmon"); is && tick >= garbage.After {
		f.printf("%s", garbage.Text)
	}
	for _, e := range entities {
		f.printf("%-*s", entityWidth, e)
		for _, field := range f.fields {
			f.printf("%s", cell(field, f.scenario.Cell(e, field, tick)))
		}
		f.printf("\n")
	}
	f.flush()
}

// fail performs the failures before sample number tick, and reports whether the process ends.
func (f *fake) fail(tick int) (result status, over bool) {
	for _, kind := range []dcgmtest.Kind{dcgmtest.HostEngineDies, dcgmtest.NoData, dcgmtest.Exit, dcgmtest.Hang, dcgmtest.Die} {
		failure, is := f.failure(kind, "dmon")
		if !is || failure.After > tick {
			continue
		}
		switch kind {
		case dcgmtest.HostEngineDies:
			fmt.Fprintf(os.Stderr, "Error getting values information. Return %d: %s\n", int(disconnected), disconnected)
			return disconnected, true
		case dcgmtest.NoData:
			fmt.Fprintln(os.Stderr, "No data returned from the hostengine.")
			return noData, true
		case dcgmtest.Exit:
			fmt.Fprint(os.Stderr, failure.Text)
			return status(failure.Code), true
		case dcgmtest.Die:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		f.hang(failure) // of Die, until the signal arrives
	}
	return ok, false
}
