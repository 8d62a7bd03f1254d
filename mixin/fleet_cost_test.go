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

// What pages cost is asserted in CPU of the Prometheus, never in time that passes. Over 200 hosts (`make fleet`) each question is
// asked alone, and none may take KPULSE_FLEET_SLOWEST. Over the few hosts of CI most take less than the 10 ms in which Linux
// counts: there the dearest are asked until they took dearEnough, and set beside a baseline over the same series.
const (
	// baseline reads what no page over a week can do without: a recorded series of each board.
	baseline = `sum(sum_over_time(device:kpulse_gpu_energy:rate5m[7d]))`
	// timesBaseline is twice what the dearest question costed of that when it was set; with others on the machine it varies by a
	// third.
	timesBaseline = 10
	dearest       = 20 // that are compared: those that look at most samples
	dearEnough    = 300 * time.Millisecond
)

// limit is how much CPU a question may take: KPULSE_FLEET_SLOWEST, 0 for any.
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

// cost is what a question took.
type cost struct {
	at      place
	where   string
	took    time.Duration
	samples int
}

// checkCosts holds questions to what they may cost, by KPULSE_FLEET_SLOWEST or by the baseline.
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

// compareCosts sets the dearest questions beside the baseline.
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
			t.Errorf("a question costs %.1f times the CPU of %s: %s", times, baseline, queryIn(address))
		}
		if times > most {
			most, of = times, queryIn(address)
		}
	}
	t.Logf("the dearest question costs %.1f times the baseline, which takes %s: %s", most, base, of)
}

// dearest returns the addresses of the questions so far that looked at most samples.
func (a *asker) dearest(n int) []string {
	all := sorted(a.known)
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(a.known[y].result.samples, a.known[x].result.samples) })
	return all[:min(n, len(all))]
}

// cpuOf returns the CPU that an address takes, of as many answers as take dearEnough together.
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

// queryIn is that of an address.
func queryIn(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Query().Get("query")
}

// largest returns the questions that took most CPU, none if that was not measured. One that
// stands for several choices comes once.
func (f *findings) largest(n int) []cost {
	measured := slices.DeleteFunc(slices.Clone(f.costs), func(c cost) bool { return c.took == 0 })
	slices.SortFunc(measured, func(a, b cost) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.where, b.where)) })
	each := slices.CompactFunc(measured, func(a, b cost) bool { return a.at == b.at && a.took == b.took && a.samples == b.samples })
	return each[:min(n, len(each))]
}
