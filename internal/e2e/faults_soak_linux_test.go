package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// briefly is how long TestSoak takes unless KPULSE_SOAK says; make soak takes hours.
const briefly = "5s"

// soaked are the settings of the program that soaks. It meets the faults of a program that
// reads an exporter and needs no others.
var soaked = fault{
	flags:  []string{"--rules.file=r.yml", "--rules.max-samples=10000", "--series-limit=2000"}, // few, so that it is soon full
	config: settings, files: map[string]string{"r.yml": soundRules},
}

// soak is a program over which the nodes, workloads, settings and faults of weeks pass.
type soak struct {
	*world
	rng      *rand.Rand
	faults   []fault
	met      []string // faults, in their order
	lives    [8]int   // of boards: which one is in each slot
	holders  int      // so far
	fleets   int
	requests atomic.Int64
	// alone is locked by code that needs to be the only one to send requests; scrapers share it.
	alone sync.RWMutex
}

// TestSoak has one program live through topologies that change, workloads that come and go,
// reloads and all faults that it can meet, in random order, while it is scraped without a
// pause. KPULSE_SOAK is the duration, optionally with a colon and a seed, which replays its fleets
// and faults in their order. In the first quarter the program's caches fill. One measurement is no
// baseline for them: the cache of label sets (raw.Scanner) grows by 1 MB over some 200 fleets, and
// is then emptied. From then on the program may not take more goroutines, descriptors or memory
// than its maximum of the first quarter.
func TestSoak(t *testing.T) {
	slow.Test(t, "takes as long as KPULSE_SOAK says; make soak sets it")
	t.Parallel()
	amount, again, _ := strings.Cut(cmp.Or(os.Getenv("KPULSE_SOAK"), briefly), ":")
	lasts, err := time.ParseDuration(amount)
	seed, seedErr := strconv.ParseUint(cmp.Or(again, strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err = errors.Join(err, seedErr); err != nil {
		t.Fatalf("KPULSE_SOAK: %v; give a duration such as 20m, or 20m:SEED", err)
	}
	t.Logf("KPULSE_SOAK=%v:%d", lasts, seed)
	s := &soak{world: startScraped(t, soaked), rng: rand.New(rand.NewPCG(seed, 23)), faults: soakable()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("KPULSE_SOAK=%v:%d replays this; the latest faults: %q", lasts, seed, s.met[max(len(s.met)-10, 0):])
		}
	})
	s.serves(before)
	began, done := time.Now(), make(chan struct{})
	var scrapers sync.WaitGroup
	stop := sync.OnceFunc(func() { close(done); scrapers.Wait() })
	defer stop()
	for i := range 4 {
		scrapers.Go(func() { s.visit(i, done) })
	}
	most := s.measure()
	for quarter := began.Add(lasts / 4); time.Now().Before(quarter) && !t.Failed(); {
		s.live(earlier(quarter, time.Now().Add(lasts/80)))
		most = most.or(s.measure())
	}
	for end, over := began.Add(lasts), false; !over && !t.Failed(); over = !time.Now().Before(end) {
		s.live(earlier(end, time.Now().Add(lasts/20)))
		s.hold(most)
		t.Logf("%v: %d requests, %d of %d faults, %d fleets, %+v, at most %+v", time.Since(began).Round(time.Second), s.requests.Load(), s.kinds(), len(s.faults), s.fleets, s.measure(), most)
	}
	stop()
	s.checkEnd()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// soakable are the faults that befall a program with the settings of soaked while it runs.
func soakable() (all []fault) {
	for _, g := range groups() {
		for _, f := range g.faults {
			needsMore := f.exit != 0 || f.cold || f.lasts || f.shell != "" || f.env != nil || f.headers != nil ||
				f.config != "" && f.config != soaked.config ||
				slices.ContainsFunc(f.flags, func(flag string) bool { return !slices.Contains(soaked.flags, flag) })
			if !needsMore && reflect.ValueOf(g.start).Pointer() == reflect.ValueOf(startScraped).Pointer() {
				all = append(all, f)
			}
		}
	}
	return all
}

// live lets things happen until an instant.
func (s *soak) live(until time.Time) {
	s.Helper()
	for time.Now().Before(until) && !s.Failed() {
		for range 10 {
			s.change()
		}
		s.meet(s.faults[s.rng.IntN(len(s.faults))])
	}
}

// change makes the exporter report another fleet, which is then served.
func (s *soak) change() {
	s.Helper()
	page := s.fleet()
	s.exporter.does(says(page))
	first, _, _ := strings.Cut(page, "\n")
	s.until(func() string {
		status, body := s.scrape()
		if err := checkExposition([]byte(body)); status != http.StatusOK || err != nil || !strings.HasPrefix(body, first) {
			return fmt.Sprintf("a fleet is served with %d, %v, want %s:\n%.2000s", status, err, first, body)
		}
		return ""
	})
}

// fleet is the page of a node: some boards, whole or cut, that are replaced now and then, and
// workloads that no reading had before.
func (s *soak) fleet() string {
	s.fleets++
	var page strings.Builder
	fmt.Fprintf(&page, "fleet %d\n", s.fleets)
	for i := range 1 + s.rng.IntN(len(s.lives)) {
		if s.rng.IntN(10) == 0 {
			s.lives[i]++
		}
		board := fmt.Sprintf(`gpu="%d",UUID="GPU-%d-%d"`, i, i, s.lives[i])
		for n := range 1 + s.rng.IntN(3) {
			part := board
			if n > 0 {
				part += fmt.Sprintf(`,GPU_I_ID="%d",GPU_I_PROFILE="1g.10gb"`, n)
			}
			if s.rng.IntN(2) == 0 {
				s.holders++
				part += fmt.Sprintf(`,namespace="n",pod="p%d",container="c"`, s.holders)
			}
			for _, field := range []string{"DEV_GPU_TEMP", "DEV_POWER_USAGE", "DEV_XID_ERRORS", "DEV_GPU_UTIL", "DEV_FB_USED", "DEV_TOTAL_ENERGY_CONSUMPTION"} {
				fmt.Fprintf(&page, "DCGM_FI_%s{%s} %d\n", field, part, s.rng.IntN(100))
			}
			fmt.Fprintf(&page, "DCGM_FI_PROF_SM_ACTIVE{%s} %.3f\n", part, s.rng.Float64())
		}
	}
	return page.String()
}

// meet inflicts a fault, which is seen by its status, and takes it away. What a scraper that
// joins a read of before sees is no part of it.
func (s *soak) meet(f fault) {
	s.Helper()
	s.fault, s.met = f, append(s.met, f.does)
	s.quietly(s.begin)
	for range 3 {
		if f.each != nil {
			s.quietly(func() { f.each(s.world) })
		}
		for _, a := range f.asks {
			s.ask(a)
		}
		s.until(func() string {
			if status, body := s.scrape(); status != max(f.seen.status, http.StatusOK) || stale.MatchString(body) {
				return fmt.Sprintf("%s: %d, want %d:\n%.2000s", f.does, status, f.seen.status, body)
			}
			return ""
		})
	}
	s.quietly(s.end)
	s.serves(after)
}

// quietly does something without other requests.
func (s *soak) quietly(f func()) {
	s.alone.Lock()
	defer s.alone.Unlock()
	f()
}

// measure returns the resources of the program without requests or faults.
func (s *soak) measure() (u usage) {
	s.Helper()
	s.quietly(func() { u = s.usage() })
	return u
}

// kinds is how many of the faults were met.
func (s *soak) kinds() int { return len(slices.Compact(slices.Sorted(slices.Values(s.met)))) }

// hold checks that the program takes no more than its maximum of the first quarter, except for the
// buffers of more parallel scrapes.
func (s *soak) hold(most usage) {
	s.Helper()
	s.fault = fault{crowded: true}
	s.quietly(func() { s.checkUsage(most) })
}

// visit asks without a pause, as scrapers and browsers do, until done is closed.
func (s *soak) visit(n int, done <-chan struct{}) {
	paths := []string{"/metrics", "/", "/metrics", "/events", "/metrics", "/-/metrics", "/metrics", "/container/metrics", "/-/ready", "/sd"}
	for ; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		s.alone.RLock()
		encoding := []string{"gzip", "identity"}[n%2]
		status, body, err := s.child.Get(paths[n%len(paths)], "Accept-Encoding", encoding, "X-Prometheus-Scrape-Timeout-Seconds", "1")
		s.alone.RUnlock()
		if s.requests.Add(1); err != nil || !slices.Contains([]int{http.StatusOK, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status) {
			s.Errorf("%s: %d, %v: %.500s\n%s", paths[n%len(paths)], status, err, body, s.child.Fate())
			return
		}
	}
}

// TestSoakOfThree has one program read three exporters that replace boards, pods and instances all the time, and fail in every way
// in between, for KPULSE_SOAK. Its memory, without the pages of the program file, stays below 50 MB, however long it takes.
func TestSoakOfThree(t *testing.T) {
	slow.Test(t, "takes as long as KPULSE_SOAK says; make soak sets it")
	t.Parallel()
	amount, _, _ := strings.Cut(cmp.Or(os.Getenv("KPULSE_SOAK"), briefly), ":")
	lasts, err := time.ParseDuration(amount)
	if err != nil {
		t.Fatal(err)
	}
	const most = 50 << 20
	rng := rand.New(rand.NewPCG(rand.Uint64(), 46))
	var three [3]*soak
	flags := []string{"--config.file=config.yml", "--source.min-interval=0s"}
	config := "sources:\n"
	for i := range three {
		three[i] = &soak{world: newWorld(t, fault{}, startExporter(t)), rng: rng}
		config += fmt.Sprintf("- {source: '%s', node_name: n%d, poll: 0}\n", three[i].url, i)
	}
	w := three[0].world
	w.fault.config = config
	w.write("config.yml", config)
	w.start(os.Environ(), flags...)
	var answers []exporterAnswer
	for _, f := range soakable() {
		if f.exporter != nil && !f.late {
			answers = append(answers, f.exporter)
		}
	}
	began, logged := time.Now(), time.Now()
	for n := 0; time.Since(began) < lasts; n++ {
		time.Sleep(250 * time.Millisecond) // over 10,000 changes an hour
		for i, s := range three {
			page := s.fleet() // boards, pods and instances that no reading had
			page = strings.NewReplacer(`UUID="GPU-`, fmt.Sprintf(`UUID="GPU-%d-`, i), `pod="p`, fmt.Sprintf(`pod="p%d-`, i)).Replace(page)
			if s.exporter.does(says(page)); rng.IntN(4) == 0 {
				s.exporter.does(answers[rng.IntN(len(answers))])
			}
		}
		if status, body, err := w.child.Get("/metrics", "Accept-Encoding", []string{"gzip", "identity"}[n%2], "X-Prometheus-Scrape-Timeout-Seconds", "5"); err != nil || status == http.StatusInternalServerError {
			t.Fatalf("a scrape answers %d, %v: %.300s\n%s", status, err, body, w.child.Fate())
		}
		if time.Since(logged) > lasts/20 {
			logged = time.Now()
			t.Logf("%v: %d scrapes, %d MB", time.Since(began).Round(time.Second), n, w.memory("RssAnon")>>20)
		}
	}
	is := w.memory("RssAnon")
	for range 10 { // between collections it takes more
		w.usage()
		is = min(is, w.memory("RssAnon"))
	}
	if is > most {
		t.Errorf("the program takes %d MB, want at most %d", is>>20, most>>20)
	}
	w.checkEnd()
}
