package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// dashboard is the queries of a Grafana dashboard.
type dashboard struct {
	name    string
	queries []query
	chosen  map[string]string // the value of each variable
}

// query is a query of a panel, instant or over the range that is shown.
type query struct {
	Expr    string
	Instant bool
}

// readDashboards returns the dashboards of a folder.
func readDashboards(folder string) (all []dashboard, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("%s has no dashboards", folder), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var page struct {
			Title      string
			Templating struct{ List []variable }
			Panels     []struct {
				Targets []query
				Panels  []struct{ Targets []query }
			}
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		d := dashboard{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if d.chosen, err = choose(page.Templating.List); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range page.Panels {
			d.queries = append(d.queries, p.Targets...)
			for _, inner := range p.Panels {
				d.queries = append(d.queries, inner.Targets...)
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// span is a range that a dashboard shows, and how Grafana queries it.
type span struct {
	name   string
	length time.Duration
	step   time.Duration // for a panel of some thousand pixels
	rate   time.Duration // $__rate_interval
	// The intervals between the samples of a series.
	scraped, recorded time.Duration
}

var spans = []span{
	{name: "1h", length: time.Hour, step: scrapeInterval, rate: 4 * scrapeInterval, scraped: scrapeInterval, recorded: evalInterval},
	{name: "7d", length: 7 * 24 * time.Hour, step: 10 * time.Minute, rate: 10*time.Minute + scrapeInterval, scraped: 5 * time.Minute, recorded: 5 * time.Minute},
}

// names returns the metrics that dashboards query.
func names(all []dashboard) (list []string, err error) {
	p := parser.NewParser(parser.Options{})
	for _, d := range all {
		for _, q := range d.queries {
			text, err := q.in(spans[0], d.chosen)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			expr, err := p.ParseExpr(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok && v.Name != "" {
					list = append(list, v.Name)
				}
				return nil
			})
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// showable adds to a fleet the series that dashboards show and no rule reads.
func showable(all []series, nodes int, as form, shown []string) []series {
	has := map[string]bool{}
	for i := range all {
		has[all[i].labels.Get(model.MetricNameLabel)] = true
	}
	ofNode := regexp.MustCompile(`^kpulse_(source|build)_`)
	for _, name := range shown {
		if has[name] || !strings.HasPrefix(name, "kpulse_") {
			continue
		}
		for node := range nodes {
			host := labels.FromStrings("cluster", cluster, "instance", nodeName(node)+":9401", "job", "kpulse-proxy", model.MetricNameLabel, name)
			if ofNode.MatchString(name) {
				all = append(all, series{labels: labels.NewBuilder(host).Set("source", "http://localhost:9400/metrics").Labels(), base: 1})
				continue
			}
			for gpu := range gpusPerNode {
				b := labels.NewBuilder(host).Set("hostname", nodeName(node)).Set("gpu", fmt.Sprint(gpu)).Set("uuid", uuidOf(node*gpusPerNode+gpu))
				members, is := enumerations[name]
				if !is {
					all = append(all, series{labels: b.Labels(), base: 1})
				}
				for _, m := range members {
					if m.holds || as == full {
						for i := 0; i < len(m.labels); i += 2 {
							b.Set(m.labels[i], m.labels[i+1])
						}
						all = append(all, series{labels: b.Labels(), base: one(m.holds)})
					}
				}
			}
		}
	}
	return all
}

// member is a member of an enumeration: its labels, and whether it holds for a healthy, busy
// GPU.
type member struct {
	labels []string
	holds  bool
}

// enumerations are the families, by name, of which the lean form has only the members that
// hold.
var enumerations = map[string][]member{
	"kpulse_gpu_health":             membersOf("state", canonical.HealthStates[:], "ok"),
	"kpulse_gpu_workload_class":     workloadClasses(),
	"kpulse_gpu_health_condition":   membersOf("condition", canonical.Conditions[:], "", "state", "crit"),
	"kpulse_gpu_recommended_action": nil, // full has one that says none
	"kpulse_gpu_clock_event_active": clockEvents(),
}

// membersOf returns a member for each value of a label, with more labels; the one whose
// value is holds holds.
func membersOf(label string, values []string, holds string, more ...string) (all []member) {
	for _, v := range values {
		all = append(all, member{append([]string{label, v}, more...), v == holds})
	}
	return all
}

func workloadClasses() (all []member) {
	for _, class := range canonical.Classes {
		all = append(all, member{[]string{"class", class.Name, "bottleneck", class.Bottleneck}, class.Name == "tensor_compute"})
	}
	return all
}

func clockEvents() (all []member) {
	for _, event := range canonical.ClockEventReasons {
		all = append(all, member{labels: []string{"reason", event.Reason}})
	}
	return all
}

// shown is the cost of the queries of a dashboard, in CPU time of this process.
type shown struct {
	queries       int
	took, slowest time.Duration
	samples       int64
}

// ask runs the queries of a dashboard one after the other, as at an instant.
func (m *meter) ask(d dashboard, s span, at time.Time) (shown, error) {
	cost := shown{queries: len(d.queries)}
	for _, q := range d.queries {
		ctx := context.Background()
		text, err := q.in(s, d.chosen)
		if err != nil {
			return cost, fmt.Errorf("%s: %w", d.name, err)
		}
		began := cpu()
		asked, err := m.engine.NewRangeQuery(ctx, m.db, nil, text, at.Add(-s.length), at, s.step)
		if q.Instant {
			asked, err = m.engine.NewInstantQuery(ctx, m.db, nil, text, at)
		}
		if err != nil {
			return cost, fmt.Errorf("%s: %s: %w", d.name, text, err)
		}
		result := asked.Exec(ctx)
		if result.Err != nil {
			return cost, fmt.Errorf("%s: %s: %w", d.name, text, result.Err)
		}
		cost.samples += asked.Stats().Samples.TotalSamples
		asked.Close()
		took := cpu() - began
		cost.took += took
		cost.slowest = max(cost.slowest, took)
	}
	return cost, nil
}

// runDashboards prints a row for each dashboard and fleet.
func runDashboards(sizes string, week int, forms []form, folder, page string, files []string) error {
	all, err := readDashboards(folder)
	if err != nil {
		return err
	}
	wanted, err := names(all)
	if err != nil {
		return err
	}
	table := &output{page, "dashboards-cost", []string{"| nodes | scraped | range | dashboard | queries | all of them, CPU s | the slowest, CPU s | samples read |", "|--:|---|--:|---|--:|--:|--:|--:|"}}
	table.print()
	for size := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil || nodes < 1 {
			return fmt.Errorf("%q is not a number of nodes", size)
		}
		for _, as := range forms {
			if as == exporter {
				continue // the dashboards need a proxy
			}
			if err := showForm(nodes, week, as, all, wanted, files, table); err != nil {
				return fmt.Errorf("%d nodes, %s: %w", nodes, as, err)
			}
		}
	}
	return nil
}

// showForm adds rows for a fleet in a form, over each span that is short enough.
func showForm(nodes, week int, as form, all []dashboard, wanted, files []string, table *output) error {
	known, err := learn(nodes, as, wanted, files)
	if err != nil {
		return err
	}
	for _, s := range spans {
		if s.length > time.Hour && nodes > week {
			continue
		}
		if err := show(nodes, as, all, known, s, table); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// learned is how long a fleet is scraped to learn what the rules record.
const learned = 7 * time.Minute

// learn returns a fleet's series of the names in wanted, including those that the rules
// record.
func learn(nodes int, as form, wanted, files []string) (known []series, err error) {
	err = withMeter(func(m *meter) error {
		groups, err := m.groups(files)
		if err != nil {
			return err
		}
		_, end, err := m.play(showable(fleet(nodes, as), nodes, as, wanted), groups, 0, learned)
		if err == nil {
			known, err = m.last(wanted, end)
		}
		return err
	})
	return known, err
}

// last returns the series of names at an instant, with their values.
func (m *meter) last(names []string, at time.Time) (all []series, err error) {
	for _, name := range names {
		vector, err := m.query(context.Background(), `{__name__="`+name+`"}`, at)
		if err != nil {
			return nil, err
		}
		for _, sample := range vector {
			s := series{labels: sample.Metric, base: sample.F}
			if strings.HasSuffix(name, "_total") {
				s.base, s.slope = 0, 1
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// show stores the series that dashboards query over a span, and measures the dashboards.
func show(nodes int, as form, all []dashboard, known []series, s span, table *output) error {
	return withMeter(func(m *meter) error {
		var scraped, recorded []series
		for i := range known {
			if strings.Contains(known[i].labels.Get(model.MetricNameLabel), ":") {
				recorded = append(recorded, known[i])
			} else {
				scraped = append(scraped, known[i])
			}
		}
		end := start.Add(s.length)
		for at := start; !at.After(end); at = at.Add(s.scraped) {
			if err := scrape(m.db, scraped, start, at); err != nil {
				return err
			}
			if at.Sub(start)%s.recorded != 0 {
				continue
			}
			if err := scrape(m.db, recorded, start, at); err != nil {
				return err
			}
		}
		return m.show(nodes, as, all, s, end, table)
	})
}

// show adds a row for each dashboard to the table.
func (m *meter) show(nodes int, as form, all []dashboard, s span, at time.Time, table *output) error {
	for _, d := range all {
		c, err := m.ask(d, s, at)
		if err != nil {
			return err
		}
		if err := table.add(4, fmt.Sprint(nodes), string(as), s.name, d.name, fmt.Sprint(c.queries), fmt.Sprintf("%.2f", c.took.Seconds()), fmt.Sprintf("%.2f", c.slowest.Seconds()), fmt.Sprint(c.samples)); err != nil {
			return err
		}
	}
	return nil
}
