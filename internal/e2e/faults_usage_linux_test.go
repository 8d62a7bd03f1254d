package e2e

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// usage is what a program uses of its machine.
type usage struct{ goroutines, descriptors, heap int }

// or returns the greater of each.
func (u usage) or(v usage) usage {
	return usage{max(u.goroutines, v.goroutines), max(u.descriptors, v.descriptors), max(u.heap, v.heap)}
}

// slack is the additional memory, in bytes, that may be in use compared with another healthy
// moment: filled caches, and the profiles themselves. It is less than a leak of 1 MB per scrape
// adds, even in the rows with the fewest scrapes, three.
const slack = 2 << 20

var (
	goroutines = regexp.MustCompile(`^goroutine profile: total (\d+)\n`)
	heap       = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)
)

// usage measures it without connections to the exporter and after a garbage collection.
func (w *world) usage() usage {
	w.Helper()
	if w.exporter != nil {
		w.exporter.hangUp()
	}
	var lowest usage
	for i := range 5 { // the lowest leaves out what ends soon
		u := usage{
			goroutines:  w.figure("/debug/pprof/goroutine?debug=1", goroutines),
			descriptors: w.descriptors(),
			heap:        w.figure("/debug/pprof/heap?gc=1&debug=1", heap),
		}
		if i == 0 {
			lowest = u
		}
		lowest = usage{min(lowest.goroutines, u.goroutines), min(lowest.descriptors, u.descriptors), min(lowest.heap, u.heap)}
	}
	return lowest
}

// figure reads a number from a page.
func (w *world) figure(path string, re *regexp.Regexp) int {
	w.Helper()
	status, text := w.get(path)
	m := re.FindStringSubmatch(text)
	if status != http.StatusOK || m == nil {
		w.Fatalf("%s: %d, without %s:\n%.500s", path, status, re, text)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// descriptors returns the number of open descriptors.
func (w *world) descriptors() int {
	w.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.child.Cmd.Process.Pid))
	if err != nil {
		w.Fatal(err)
	}
	return len(open)
}

// checkUsage waits until usage is back to what it was, while readings go on: each large one keeps its
// memory until a later one reuses it or is far smaller.
func (w *world) checkUsage(was usage) {
	w.Helper()
	most := was.heap + slack
	if w.fault.crowded {
		most += places
	}
	w.until(func() string {
		w.scrape()
		is := w.usage()
		if is.goroutines <= was.goroutines && is.descriptors <= was.descriptors && is.heap <= most {
			return ""
		}
		_, stacks := w.get("/debug/pprof/goroutine?debug=1")
		return fmt.Sprintf("leaked: %+v, before the fault %+v:\n%s", is, was, stacks)
	})
}

// checkEnd ends the program, which must exit with 0, without a data race or a panic.
func (w *world) checkEnd() {
	w.Helper()
	if err := w.child.Stop(); err != nil {
		w.Errorf("at the end: %v\n%s", err, w.child.Logged())
	}
	for _, word := range []string{"panic", "DATA RACE", "goroutine "} {
		if log := w.child.Logged(); strings.Contains(log, word) {
			w.Errorf("the log has %q:\n%s", word, log)
		}
	}
	if w.finally != nil {
		w.finally()
	}
}
