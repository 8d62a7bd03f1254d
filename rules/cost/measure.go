package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	evalInterval = time.Minute
	// The first hour is scraped only once a minute, to save time; the part that rates read
	// is scraped as a fleet would be.
	fillInterval   = time.Minute
	scrapeInterval = 15 * time.Second
	filled         = 59 * time.Minute
	steady         = 9 * time.Minute
	// The number of last evaluations that are measured.
	rounds = 3
)

// cost is what one evaluation of a group takes.
type cost struct {
	group           string
	rules, recorded int
	samples         int64         // loaded by its queries
	peak            int           // the most samples that one query had at once
	heap            float64       // growth of the heap during the evaluation, in bytes
	cpu             time.Duration // of the process, including the garbage collector
}

// measure evaluates the rules over an hour of a fleet, and returns the median costs of the
// last evaluations of each group.
func measure(nodes int, as form, files []string) (costs []cost, err error) {
	err = withMeter(func(m *meter) error {
		groups, err := m.groups(files)
		if err != nil {
			return err
		}
		rows, _, err := m.play(fleet(nodes, as), groups, filled, steady)
		if err == nil {
			costs = medians(rows[len(rows)-rounds:])
		}
		return err
	})
	return costs, err
}

// withMeter calls do with a meter of a new TSDB.
func withMeter(do func(*meter) error) (err error) {
	dir, err := os.MkdirTemp("", "rules-cost")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options := tsdb.DefaultOptions()
	options.WALSegmentSize = -1 // no WAL: writing is not measured
	db, err := tsdb.Open(dir, promslog.NewNopLogger(), nil, options, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(&meter{engine: promql.NewEngine(promql.EngineOpts{ // the server's defaults
		MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
	}), db: db})
}

// start is the time of the first scrape.
var start = time.Unix(1_800_000_000, 0).Truncate(time.Hour)

// play fills the TSDB and evaluates the groups each minute. It returns a row for each
// evaluation, and the time of the last scrape.
func (m *meter) play(all []series, groups []*rules.Group, filled, steady time.Duration) (rows [][]cost, end time.Time, err error) {
	end = start.Add(filled + steady)
	next := start.Add(evalInterval)
	for at := start; !at.After(end); {
		if err := scrape(m.db, all, start, at); err != nil {
			return nil, end, err
		}
		if !at.Before(next) {
			rows = append(rows, m.evaluate(groups, at, at.Add(rounds*evalInterval).After(end)))
			next = next.Add(evalInterval)
		}
		if at = at.Add(scrapeInterval); at.Before(start.Add(filled)) {
			at = at.Add(fillInterval - scrapeInterval)
		}
	}
	return rows, end, m.err
}

// meter evaluates rules and counts the cost of their queries.
type meter struct {
	engine   *promql.Engine
	db       *tsdb.DB
	samples  int64
	peak     int
	recorded int
	err      error
}

// groups loads the rule files as the server does, in the order of the files.
func (m *meter) groups(files []string) ([]*rules.Group, error) {
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: m.query, Appendable: m.db, Queryable: m.db, Context: context.Background(), Logger: slog.Default(), Parser: parser.NewParser(parser.Options{}),
	})
	var ordered []*rules.Group
	for _, file := range files {
		loaded, errs := manager.LoadGroups(evalInterval, labels.EmptyLabels(), "", nil, false, file)
		if len(errs) > 0 {
			return nil, errs[0]
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		first := len(ordered)
		for _, g := range loaded {
			ordered = append(ordered, g)
		}
		slices.SortFunc(ordered[first:], func(a, b *rules.Group) int {
			place := func(g *rules.Group) int { return strings.Index(string(text), "name: "+g.Name()+"\n") }
			return place(a) - place(b)
		})
	}
	return ordered, nil
}

// query evaluates the expression of a rule.
func (m *meter) query(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	q, err := m.engine.NewInstantQuery(ctx, m.db, nil, expr, at)
	if err != nil {
		m.err = fmt.Errorf("%s: %w", expr, err)
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	vector, err := result.Vector()
	if err != nil {
		m.err = fmt.Errorf("%s: %w", expr, err)
		return nil, err
	}
	samples := q.Stats().Samples
	m.samples += samples.TotalSamples
	m.peak = max(m.peak, samples.PeakSamples)
	m.recorded += len(vector)
	// Close reuses the query's memory.
	return append(promql.Vector(nil), vector...), nil
}

// evaluate evaluates the groups one after the other; if counts is set, each after a garbage
// collection.
func (m *meter) evaluate(groups []*rules.Group, at time.Time, counts bool) (row []cost) {
	for _, g := range groups {
		m.samples, m.peak, m.recorded = 0, 0, 0
		if counts {
			runtime.GC()
		}
		base, before := heap(), cpu()
		watch := watchHeap()
		g.Eval(context.Background(), at)
		row = append(row, cost{g.Name(), len(g.Rules()), m.recorded, m.samples, m.peak, watch() - base, cpu() - before})
	}
	return row
}

// medians returns, for each group, the row whose CPU time is the median.
func medians(rows [][]cost) (typical []cost) {
	for i := range rows[0] {
		var of []cost
		for _, row := range rows {
			of = append(of, row[i])
		}
		slices.SortFunc(of, func(a, b cost) int { return int(a.cpu - b.cpu) })
		typical = append(typical, of[len(of)/2])
	}
	return typical
}

// watchHeap samples the heap until the returned function is called, which returns the
// maximum.
func watchHeap() func() float64 {
	stop, most := make(chan struct{}), make(chan float64)
	go func() {
		var peak float64
		for ticker := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ticker.C:
				peak = max(peak, heap())
			case <-stop:
				ticker.Stop()
				most <- max(peak, heap())
				return
			}
		}
	}()
	return func() float64 { close(stop); return <-most }
}

// heap returns the memory of objects in bytes, including garbage.
func heap() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

// cpu returns the CPU time of the process on all cores.
func cpu() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
