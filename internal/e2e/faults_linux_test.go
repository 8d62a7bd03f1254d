package e2e

import (
	"crypto/x509"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// The fault suite: what the program does when its surroundings or its input break. Each row of its
// tables is a fault that befalls a running program or one that starts. make faults runs them.

// fault is a row: what happens to a running program, and what it shows. run checks what holds for
// all rows.
type fault struct {
	does string // what happens; unique in its group
	// Further flags of the program, and its config file, where URL stands for the exporter's.
	flags  []string
	config string
	files  map[string]string // in its working directory
	env    []string          // further environment variables
	shell  string            // commands of the shell that becomes the program
	// cold is a fault from the start on: the program has no reading before or after it.
	cold bool
	// begin inflicts the fault, by default with the answer of exporter; end removes it, by default
	// with a healthy exporter.
	begin, end func(*world)
	exporter   exporterAnswer
	// headers of all requests, as pairs of name and value.
	headers []string
	// Before each scrape, each runs and asks are sent.
	each func(*world)
	asks []rawRequest
	// shows changes the certificate that the exporter shows, for faults of TLS.
	shows func(*x509.Certificate)
	// exit is the exit code of a program that meets the fault at its start and does not serve.
	exit int
	// lasts is for what cannot be undone while the program runs.
	lasts bool
	// late gives scrapes only half a second, for faults that make them time out.
	late bool
	// crowded is for faults of many answers at the same time: their buffers of at most places
	// bytes are kept for the next. So the fault comes again, until that adds no memory.
	crowded bool
	seen    seen
}

// seen is what a fault shows. In all texts, URL is the exporter's, ADDRESS its host and port, PAST
// and FUTURE are sample times, and 2×N is two per scrape since the fault began.
type seen struct {
	// status is the status of scrapes; 0 means 200.
	status int
	// kind is the failure kind under which failed scrapes are counted.
	kind source.Failure
	// says must be in the answer of /metrics: lines of series, or parts of an error, which the log
	// and the landing page have too.
	says []string
	// lacks is absent from /metrics, the log and the landing page.
	lacks []string
	// twice is a duplicate of a series of the exporter. It passes: a server takes the first.
	twice string
	// log, page and metrics are in the log, on the landing page, and on /-/metrics.
	log, page, metrics []string
	// rises are series of /-/metrics that must rise above 0.
	rises []string
}

// group are the faults of one kind.
type group struct {
	name   string
	about  string // how its faults are inflicted
	start  func(*testing.T, fault) *world
	faults []fault
}

// groups returns the tables of the page, in order.
func groups() []group {
	return []group{
		{"upstream", "The exporter, or the network between it and the program.", startScraped, upstreamFaults()},
		{"TLS", "The exporter speaks TLS; the program trusts its certificates, faulty ones included, except a stranger's.", startSecured, tlsFaults()},
		{"clock", "Wrong timestamps, and suspended processes.", startScraped, clockFaults()},
		{"load", "Many clients at once, and clients that misbehave.", startScraped, loadFaults()},
		{"child", "The program drives dcgmi.", startDriven, childFaults()},
		{"file", "Files that the program reads and writes.", startScraped, fileFaults()},
		{"resource", "Limits and surroundings of the process.", startScraped, resourceFaults()},
		{"security", "Hostile clients and exporters.", startScraped, securityFaults()},
		{"rules", "Rules that the program evaluates.", startScraped, ruleFaults()},
		{"kubernetes", "The kubelet and the API server, beside a program that serves.", startScraped, kubernetesFaults()},
		{"jobs", "The script that notes the jobs of Slurm, beside a program that serves.", startScraped, jobFaults()},
	}
}

// TestFaults inflicts all faults, several in parallel.
func TestFaults(t *testing.T) {
	slow.Test(t, "some 140 faults, one by one")
	t.Parallel()
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range g.faults {
				t.Run(f.does, func(t *testing.T) {
					t.Parallel()
					if f.exit != 0 {
						refuse(t, f)
						return
					}
					run(g.start(t, f))
				})
			}
		})
	}
}

// run tests one fault: the program serves, the fault begins, shows and ends; then the program
// serves again and has leaked nothing.
func run(w *world) {
	if w.fault.cold {
		w.check() // first allocations are not leaks
	} else {
		w.serves(before)
	}
	taken := w.usage()
	if !w.fault.cold {
		w.begin()
	}
	if w.exporter == nil {
		w.settle()
	}
	for range w.scrapes() {
		w.check()
	}
	w.checkPages()
	w.end()
	if !w.fault.cold {
		w.serves(after)
	}
	if w.fault.crowded {
		w.checkAgain()
	}
	w.checkUsage(taken)
	w.checkEnd()
}

// checkAgain lets the fault come and end again, until that adds at most slack to the memory in use.
// As long as more answers than ever before are written at the same time, their buffers add more,
// which can happen places/slack times; a leak adds more each time.
func (w *world) checkAgain() {
	w.Helper()
	rest := func() int {
		for range 4 { // they overwrite the readings of the fault
			w.scrape()
		}
		return w.usage().heap
	}
	inUse := []int{rest()}
	for i := range places/slack + 1 {
		w.begin()
		for range w.scrapes() {
			w.check()
		}
		w.end()
		w.serves(after)
		inUse = append(inUse, rest())
		if inUse[i+1] <= inUse[i]+slack {
			return
		}
	}
	w.Errorf("leaked: the memory in use grows each time that the fault comes: %d bytes", inUse)
}

// perScrape matches a count per scrape since the fault began.
var perScrape = regexp.MustCompile(`(\d+)×N`)

// fill replaces the placeholders in texts.
func (w *world) fill(texts ...string) []string {
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = perScrape.ReplaceAllStringFunc(strings.NewReplacer("URL", w.url, "ADDRESS", w.address(), "PAST", past, "FUTURE", future).Replace(text), func(count string) string {
			n, _ := strconv.Atoi(strings.TrimSuffix(count, "×N"))
			return strconv.Itoa(n * w.scraped)
		})
	}
	return filled
}

// address returns the exporter's host and port.
func (w *world) address() string {
	if w.exporter == nil {
		return ""
	}
	return w.exporter.address
}
