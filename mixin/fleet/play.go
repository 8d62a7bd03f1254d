package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing/fstest"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// A fleet is played for two hours. In the first nothing goes wrong, and a scrape a minute is
// enough for the rules to learn what is usual; in the second it is scraped at the normal
// interval.
const (
	quiet       = time.Hour
	eventful    = time.Hour
	slow        = time.Minute
	fast        = 15 * time.Second
	interval    = time.Minute // of the rules, but for groups with a longer one
	alertsAfter = quiet       // none fires before
)

// Plan is what to play.
type Plan struct {
	Hosts  int
	Groups []rulefmt.RuleGroup // in the order of their evaluation
	// Asked are the names of the series to keep; series that Groups and dashboards do not
	// query only take time.
	Asked map[string]bool
	// Past is for how long before the played hours the block has the quiet hour again and again, for the time that
	// queries over days take. Counters are reset with each.
	Past time.Duration
}

// Played is the result of a Plan.
type Played struct {
	// Start is the beginning of the hour with incidents, End its last scrape.
	Start, End time.Time
	Incidents  []Incident
	// Alerts are the alerts that fire at the end.
	Alerts          []Alert
	GPUs            int
	Series, Samples int // in the block
}

// Play plays a fleet and writes a block into dir, which Prometheus can open as its data
// directory. Call it on a simulated clock (testing/synctest): it sleeps for hours.
func Play(ctx context.Context, dir string, plan Plan) (*Played, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet := newFleet(plan.Hosts)
	befallen := incidents(fleet, quiet+eventful)
	began := time.Now().Truncate(interval).Add(interval) // streams have had a tick by then
	proxies, err := startProxies(ctx, fleet, began)
	if err != nil {
		return nil, err
	}
	played := &Played{Start: began.Add(quiet), End: began.Add(quiet + eventful), GPUs: gpusPerHost * plan.Hosts, Incidents: befallen}
	s := newStore()
	e := newEvaluator(s, plan.Groups)
	for next := began; !next.After(played.End); {
		time.Sleep(time.Until(next))
		since := next.Sub(began)
		if err := scrapeAll(proxies, func(p *proxy) error { return p.scrape(s, plan.Asked, since, next.UnixMilli()) }); err != nil {
			return nil, err
		}
		if since%interval == 0 {
			if err := e.evaluate(ctx, next, since >= alertsAfter); err != nil {
				return nil, err
			}
		}
		if since < quiet {
			next = next.Add(slow)
		} else {
			next = next.Add(fast)
		}
	}
	if played.Alerts, err = e.firing(ctx, played.End); err != nil {
		return nil, err
	}
	played.Series, played.Samples, err = writeBlock(ctx, dir, s, began.UnixMilli(), int(plan.Past/quiet))
	return played, err
}

// startProxies runs a proxy for each host. All hosts share the directory in which Slurm's
// prolog describes jobs.
func startProxies(ctx context.Context, fleet []*host, began time.Time) (all []*proxy, err error) {
	files := fstest.MapFS{}
	for _, h := range fleet {
		user, account := ownerOf(h.job())
		files[h.job()] = &fstest.MapFile{Data: []byte("user=" + user + "\naccount=" + account + "\n")}
	}
	jobs := holders.NewJobs(files, "jobs", slog.New(slog.DiscardHandler))
	go jobs.Run(ctx)
	time.Sleep(time.Millisecond) // until it has read them
	for _, h := range fleet {
		p, err := startProxy(ctx, h, began, jobs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// scrapeAll calls scrape for each proxy, on all processors.
func scrapeAll(proxies []*proxy, scrape func(*proxy) error) error {
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	failures := make([]error, n)
	for w := range n {
		workers.Go(func() {
			for i := w; i < len(proxies) && failures[w] == nil; i += n {
				failures[w] = scrape(proxies[i])
			}
		})
	}
	workers.Wait()
	return errors.Join(failures...)
}
