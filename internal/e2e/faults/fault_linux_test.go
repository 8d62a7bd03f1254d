package faults

import (
	"crypto/x509"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/source"
)

// fault is a row: what is done to a program that serves, and what is seen of it. What holds
// for all rows is no part of one: see run.
type fault struct {
	does string // what is done; unique in its group
	// The program: further flags, and the config file, which has URL in the place of the
	// exporter's.
	flags  []string
	config string
	files  map[string]string // of the folder that it runs in
	env    []string          // further variables
	shell  string            // what a shell does before it becomes the program
	// cold is for what is so from the start: the program has had no reading before, and
	// gets none afterwards.
	cold bool
	// begin inflicts it, by default as exporter says, and end removes it, by default with a healthy
	// exporter.
	begin, end func(*world)
	exporter   answer
	// headers are those of all requests, as pairs of name and value.
	headers []string
	// each is done, and asks are asked, before each scrape.
	each func(*world)
	asks []ask
	// shows changes the certificate that the exporter shows, of a fault of TLS.
	shows func(*x509.Certificate)
	// exit is the code with which the program ends instead of serving, as it meets the fault at
	// its start.
	exit int
	// late is for scrapes that the fault has run out of time: they have half a second.
	late bool
	// keeps is how many bytes of memory may stay taken, where the buffers of such a reading
	// are kept for the next.
	keeps int
	seen  seen
	// heldBy names a test elsewhere, as package.TestName, that covers the fault instead of the
	// fields above; its observation is then in words.
	heldBy string
	words  string
}

// seen is what a fault shows. In all texts URL is the exporter's, ADDRESS its host and port, PAST
// and FUTURE are times of samples, and 2×N is two for each scrape since the fault began.
type seen struct {
	// status is that of scrapes; 0 is 200.
	status int
	// kind is the one under which failed scrapes are counted.
	kind source.Failure
	// says is in the answer of /metrics: lines of its series, or the words of a failure, which the
	// log and the landing page have too.
	says []string
	// lacks is in no answer of /metrics, and not in the log or on the landing page.
	lacks []string
	// twice is a line of a series that the exporter gave before. It passes: a server takes the first.
	twice string
	// log, page and metrics are in the log, on the landing page, and on /-/metrics.
	log, page, metrics []string
	// rises are series of /-/metrics that come to be above 0.
	rises []string
}

// group are the faults of one kind.
type group struct {
	name   string
	about  string // how its faults are inflicted
	start  func(*testing.T, fault) *world
	faults []fault
}

// groups are the tables of the page, in its order.
func groups() []group {
	return []group{
		{"upstream", "The exporter, or what is between us and it.", startScraped, upstreamFaults()},
		{"TLS", "The exporter speaks TLS; we trust its certificate, and those of the same names that have other faults.", startSecured, tlsFaults()},
		{"clock", "Wrong timestamps, and suspended processes.", startScraped, clockFaults()},
		{"load", "Many clients at once, and clients that misbehave.", startScraped, loadFaults()},
		{"child", "The program drives dcgmi.", startDriven, childFaults()},
		{"file", "Files that the program reads and writes.", startScraped, fileFaults()},
		{"resource", "Limits and surroundings of the process.", startScraped, resourceFaults()},
		{"security", "Hostile clients and exporters.", startScraped, securityFaults()},
		{"rules", "Rules that the program evaluates.", startScraped, ruleFaults()},
	}
}

// TestFaults inflicts all faults, some at a time.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range g.faults {
				if f.heldBy != "" {
					continue
				}
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

// run tells the story of one fault: the program serves, the fault befalls it, is seen, and
// goes away; the program serves again, and has taken nothing permanently.
func run(w *world) {
	if w.fault.cold {
		w.check() // what is made for the first time is no leak
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
	w.checkUsage(taken)
	w.checkEnd()
}

// perScrape is a count in the texts of a fault: so many for each scrape since it began.
var perScrape = regexp.MustCompile(`(\d+)×N`)

// fill puts the exporter's URL and the number of scrapes into texts.
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

// address is the exporter's host and port.
func (w *world) address() string {
	if w.exporter == nil {
		return ""
	}
	return w.exporter.address
}
