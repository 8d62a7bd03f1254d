package mixin_test

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"
)

// The costs of pages are asserted in CPU time of Prometheus, never in wall time. Over 200 hosts (`make fleet`) each query runs
// alone, and none may take longer than KPULSE_FLEET_SLOWEST. Over the few hosts of CI most take less than the 10 ms in which
// Linux counts: there the most expensive ones are repeated for dearEnough, and compared with a baseline over the same series.
const (
	// baseline reads the minimum of a page over a week: a recorded series of each board.
	baseline = `sum(sum_over_time(device:kpulse_gpu_energy:rate5m[7d]))`
	// timesBaseline is twice the ratio of the most expensive query when this was set; on a busy machine the ratio varies by a
	// third.
	timesBaseline = 10
	dearest       = 20 // number of queries to compare: those that read the most samples
	dearEnough    = 300 * time.Millisecond
)

// limit returns the most CPU time of a query: KPULSE_FLEET_SLOWEST, 0 for no limit.
func (f *playedFleet) limit(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("KPULSE_FLEET_SLOWEST")
	if text == "" {
		return 0
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal("KPULSE_FLEET_SLOWEST:", err)
	}
	return limit
}

// cost is the cost of a query.
type cost struct {
	at      place
	where   string
	took    time.Duration
	samples int
}

// checkCosts checks the costs of queries against KPULSE_FLEET_SLOWEST or the baseline.
func (f *playedFleet) checkCosts(t *testing.T, found *findings) {
	t.Helper()
	limit := f.limit(t)
	if limit == 0 {
		f.compareCosts(t)
		return
	}
	for _, c := range found.costs {
		if c.took > limit {
			found.fail(c.at, "slow", "%s: %.1f s", c.where, c.took.Seconds())
		}
	}
	for _, s := range found.largest(20) {
		t.Logf("%s/%s %s: %.2f s of CPU, %d samples", s.at.page, s.at.panel, s.where, s.took.Seconds(), s.samples)
	}
}

// compareCosts compares the most expensive queries with the baseline.
func (f *playedFleet) compareCosts(t *testing.T) {
	t.Helper()
	base, err := f.cpuOf(f.address(question{expr: baseline, to: f.End}))
	if err != nil || base == 0 {
		t.Fatal("baseline:", base, err)
	}
	most, of := 0., ""
	for _, address := range f.dearest(dearest) {
		took, err := f.cpuOf(address)
		if err != nil {
			t.Fatal(address, err)
		}
		times := took.Seconds() / base.Seconds()
		if times > timesBaseline {
			t.Errorf("a query takes %.1f times the CPU of %s: %s", times, baseline, queryIn(address))
		}
		if times > most {
			most, of = times, queryIn(address)
		}
	}
	t.Logf("the most expensive query takes %.1f times the CPU of the baseline, which takes %s: %s", most, base, of)
}

// dearest returns the addresses of the n queries so far that read the most samples.
func (a *asker) dearest(n int) []string {
	all := sorted(a.known)
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(a.known[y].result.samples, a.known[x].result.samples) })
	return all[:min(n, len(all))]
}

// cpuOf returns the CPU time of an address, as the mean of as many requests as take dearEnough
// together.
func (a *asker) cpuOf(address string) (time.Duration, error) {
	before, err := a.spent()
	for asked, n := 0, 1; err == nil && asked < 10_000; n *= 2 {
		for range n {
			err = errors.Join(err, get(address, &struct{}{}))
		}
		asked += n
		after, failed := a.spent()
		if err = errors.Join(err, failed); after-before >= dearEnough {
			return (after - before) / time.Duration(asked), err
		}
	}
	return 0, err
}

// queryIn returns the query in an address.
func queryIn(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Query().Get("query")
}

// largest returns the queries that took the most CPU, none if that was not measured. A query
// of several choices appears once.
func (f *findings) largest(n int) []cost {
	measured := slices.DeleteFunc(slices.Clone(f.costs), func(c cost) bool { return c.took == 0 })
	slices.SortFunc(measured, func(a, b cost) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.where, b.where)) })
	each := slices.CompactFunc(measured, func(a, b cost) bool { return a.at == b.at && a.took == b.took && a.samples == b.samples })
	return each[:min(n, len(each))]
}
