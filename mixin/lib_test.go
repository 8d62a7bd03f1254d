package mixin_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/mixin"
)

// columns returns the columns of a table from left to right as shown, and the name of each in
// the queries.
func columns(p panel) (shown []string, of map[string]string) {
	of = map[string]string{}
	for _, step := range p.Transformations {
		shown = append(shown, step.Options.Include.Names...)
		for column, name := range step.Options.RenameByName {
			shown[slices.Index(shown, column)] = name
			of[name] = column
		}
	}
	return shown, of
}

// property returns the last value of a property that the overrides of a table set for a column.
func property(p panel, column, id string) (value json.RawMessage) {
	for _, override := range p.FieldConfig.Overrides {
		for _, property := range override.Properties {
			if override.Matcher.ID == "byName" && override.Matcher.Options == column && property.ID == id {
				value = property.Value
			}
		}
	}
	return value
}

// eachPanel calls do with every panel of one type.
func eachPanel(t *testing.T, kind string, do func(where string, p panel)) {
	t.Helper()
	found := 0
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			if p.Type == kind {
				found++
				do(fmt.Sprintf("%s, panel %q", name, p.Title), p)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d panels of type %s", found, kind)
	}
}

// TestOnlyValuesHaveUnits: in a text column with a unit, Grafana formats texts that look like
// numbers, and shows GPU 3 as "300%".
func TestOnlyValuesHaveUnits(t *testing.T) {
	eachPanel(t, "table", func(where string, p panel) {
		if p.FieldConfig.Defaults.Unit != "" {
			t.Errorf("%s: the unit %s applies to all columns", where, p.FieldConfig.Defaults.Unit)
		}
		shown, of := columns(p)
		for _, column := range shown {
			var unit string
			if value := property(p, column, "unit"); value != nil {
				if err := json.Unmarshal(value, &unit); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(of[column], "Value") != slices.Contains(units, unit) {
				t.Errorf("%s: the column %s (%s) has the unit %q", where, column, of[column], unit)
			}
		}
	})
}

// Grafana 13 divides a page of pageWidth pixels into 24 columns, 8 pixels apart, between margins of
// 16 pixels; a table panel has frames of 9 pixels and a scroll bar of 8.
const (
	pageMargin = 16
	gap        = 8
	tableFrame = 2*9 + 8
)

// panelWidth returns the width in pixels of a table in a panel of w columns.
func panelWidth(w int) int {
	return (pageWidth-2*pageMargin+gap)*w/24 - gap - tableFrame
}

// TestTablesFit: tables fit into their panels, and names of alerts into their column. A letter takes at most 8 pixels on
// average.
func TestTablesFit(t *testing.T) {
	eachPanel(t, "table", func(where string, p panel) {
		var custom struct {
			MinWidth   int
			Filterable bool
		}
		if err := json.Unmarshal(p.FieldConfig.Defaults.Custom, &custom); err != nil {
			t.Fatal(err)
		}
		if custom.Filterable {
			t.Errorf("%s has filter icons", where)
		}
		width := 0
		shown, _ := columns(p)
		for _, column := range shown {
			own := custom.MinWidth
			if value := property(p, column, "custom.width"); value != nil {
				if err := json.Unmarshal(value, &own); err != nil {
					t.Fatal(err)
				}
			}
			width += own
			if column == "Alert" {
				for _, alert := range alertNames(t) {
					if 8*len(alert)+16 > own {
						t.Errorf("%s: %s does not fit", where, alert)
					}
				}
			}
			if column == "UUID" {
				var mappings []struct {
					Options struct {
						Pattern string
						Result  struct{ Text string }
					}
				}
				if err := json.Unmarshal(property(p, column, "mappings"), &mappings); err != nil || len(mappings) != 1 {
					t.Fatal(where, mappings, err)
				}
				pattern := regexp.MustCompile(strings.Trim(mappings[0].Options.Pattern, "/"))
				for uuid, want := range map[string]string{"GPU-5d0e0001-3c41-4f0a-9a61-0b7c6e5f1a00": "5d0e0001", "0": "0", "virtual-1-2": "virtual-1-2"} {
					if got := pattern.ReplaceAllString(uuid, mappings[0].Options.Result.Text); got != want {
						t.Errorf("%s: %s is shown as %s, not %s", where, uuid, got, want)
					}
				}
			}
		}
		if have := panelWidth(p.GridPos.W); width == 0 || width > have {
			t.Errorf("%s: its columns take %d pixels of %d", where, width, have)
		}
	})
}

// TestPanelWidth compares panelWidth with widths measured in Grafana.
func TestPanelWidth(t *testing.T) {
	for w, want := range map[int]int{24: 1568 - 26, 12: 780 - 26} {
		if got := panelWidth(w); got != want {
			t.Errorf("%d columns are %d pixels, not %d", w, got, want)
		}
	}
}

// belowZero are charts of values that can be below 0, or are never near it.
var belowZero = []string{"Temperature", "Distance to the warning temperature"}

// TestCharts: charts begin at 0, have their legend below, and do not use red by accident.
func TestCharts(t *testing.T) {
	eachPanel(t, "timeseries", func(where string, p panel) {
		defaults := p.FieldConfig.Defaults
		var custom struct{ AxisSoftMax float64 }
		var options struct{ Legend struct{ Placement string } }
		if err := json.Unmarshal(defaults.Custom, &custom); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(p.Options, &options); err != nil {
			t.Fatal(err)
		}
		switch floats := slices.Contains(belowZero, p.Title); {
		case floats && defaults.Min != nil:
			t.Errorf("%s: values below %v are not shown", where, *defaults.Min)
		case !floats && (defaults.Min == nil || *defaults.Min != 0):
			t.Errorf("%s does not begin at 0", where)
		case !floats && custom.AxisSoftMax <= 0 && defaults.Max == nil:
			t.Errorf("%s: zeros fill its axis", where)
		}
		if options.Legend.Placement != "bottom" {
			t.Errorf("%s has its legend at the %s", where, options.Legend.Placement)
		}
		// The fifth color of the palette is red. A legend with a label may have any number of lines.
		open := slices.ContainsFunc(p.Targets, func(t target) bool { return strings.Contains(t.LegendFormat, "{{") })
		if mode := defaults.Color.Mode; mode != "shades" && (open || len(p.Targets) > 4) {
			t.Errorf("%s has the color mode %q for any number of lines", where, mode)
		}
	})
}

// TestLegendsTellClustersApart: hosts, namespaces and pod addresses of two clusters may be the same.
func TestLegendsTellClustersApart(t *testing.T) {
	found := 0
	eachPanel(t, "timeseries", func(where string, p panel) {
		for _, target := range p.Targets {
			for _, name := range []string{"{{hostname}}", "{{instance}}", "{{workload_namespace}}"} {
				if !strings.Contains(target.LegendFormat, name) {
					continue
				}
				found++
				if !strings.HasPrefix(target.LegendFormat, "{{cluster}} ") {
					t.Errorf("%s calls its lines %q", where, target.LegendFormat)
				}
			}
		}
	})
	if found < 10 {
		t.Errorf("only %d legends", found)
	}
	for title, metric := range map[string]string{"CPU of the proxies": "process_cpu_seconds_total", "Memory of the proxies": "process_resident_memory_bytes"} {
		series := metric + `{job="kpulse-proxy-telemetry",instance="10.0.0.1:9401",cluster="%s"} %g+%gx60`
		m := scraped(t, fmt.Sprintf(series, "c", 15., 15.), fmt.Sprintf(series, "d", 30., 30.))
		if got := m.asked(t, exprOf(t, "kpulse-proxy", title, "A"), 10, "cluster"); got["c"] == nil || got["d"] == nil || got["c"][10] >= got["d"][10] {
			t.Errorf("%s: %v", title, got)
		}
	}
}

// TestChartsOfTheWorst: topk at each step of a chart would draw dots, of far more lines than its limit.
func TestChartsOfTheWorst(t *testing.T) {
	found := 0
	eachPanel(t, "timeseries", func(where string, p panel) {
		for _, target := range p.Targets {
			tree, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(target.Expr))
			if err != nil {
				t.Fatalf("%s: %v\n%s", where, err, target.Expr)
			}
			parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
				if worst, ok := node.(*parser.AggregateExpr); ok && (worst.Op == parser.TOPK || worst.Op == parser.BOTTOMK) {
					found++
					if !atEnd(worst.Expr) {
						t.Errorf("%s selects at each step %s", where, worst)
					}
				}
				return nil
			})
		}
	})
	if found < 5 {
		t.Errorf("only %d charts of the worst", found)
	}
}

// atEnd reports whether all of an expression is evaluated at the end of the chart.
func atEnd(expr parser.Expr) bool {
	all := true
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		all = all && (selector.StartOrEnd == parser.END || slices.ContainsFunc(path, func(above parser.Node) bool {
			subquery, ok := above.(*parser.SubqueryExpr)
			return ok && subquery.StartOrEnd == parser.END
		}))
		return nil
	})
	return all
}

// TestThePickerShowsHostAndIndex: the picker shows host and index, from an answer of Prometheus in Grafana's form.
func TestThePickerShowsHostAndIndex(t *testing.T) {
	found := 0
	for name, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Name != "gpu" {
				continue
			}
			found++
			for _, cluster := range []string{"", "east"} { // without clusters, label_join leaves a space
				text, value, err := option(v.Regex, `{board="`+cluster+` gpu-000 GPU 0",gpu="0",hostname="gpu-000",uuid="GPU-5d0e0001-3c41"} 1 1700000000000`)
				if err != nil || text != strings.TrimSpace(cluster+" gpu-000 GPU 0") || value != "GPU-5d0e0001-3c41" {
					t.Errorf("%s: the picker shows %q for %q (%v)", name, text, value, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no picker of GPUs")
	}
}

// TestEveryCellLeadsToItsPage: each cell with a host, board, job or namespace links to its page, with the cluster of the row.
func TestEveryCellLeadsToItsPage(t *testing.T) {
	pages := map[string]string{"Host": "/d/kpulse-node?", "UUID": "/d/kpulse-gpu?", "Job": "/d/kpulse-namespace?", "Namespace": "/d/kpulse-namespace?"}
	names := map[string]string{"hostname": "Host", "uuid": "UUID", "hpc_job": "Job", "workload_namespace": "Namespace"}
	found := 0
	eachPanel(t, "table", func(where string, p panel) {
		shown, of := columns(p)
		for _, column := range shown {
			if name := names[of[column]]; name != "" && name != column && column != "Full UUID" {
				t.Errorf("%s: %s is shown as %s, not %s", where, of[column], column, name)
			}
			if pages[column] == "" {
				continue
			}
			found++
			var links []link
			if value := property(p, column, "links"); value != nil {
				if err := json.Unmarshal(value, &links); err != nil {
					t.Fatal(err)
				}
			}
			if len(links) != 1 || !strings.HasPrefix(links[0].URL, pages[column]) {
				t.Errorf("%s: %s leads to %v", where, column, links)
			}
			if of["Cluster"] != "cluster" {
				t.Errorf("%s: %s has a link, but its row has no cluster", where, column)
			}
		}
	})
	if found < 40 {
		t.Errorf("only %d columns lead anywhere", found)
	}
}

// TestAnnotations: every page marks alerts, and that of a GPU marks other events too.
func TestAnnotations(t *testing.T) {
	for name, d := range dashboards(t) {
		enabled := map[string]bool{}
		for _, a := range d.Annotations.List {
			enabled[a.Name] = a.Enable
			if a.Datasource.UID != "${datasource}" || a.TitleFormat == "" {
				t.Errorf("%s, annotation %q: the data source is %q, the title %q", name, a.Name, a.Datasource.UID, a.TitleFormat)
			}
		}
		if !enabled["Alerts"] {
			t.Errorf("%s marks no alerts", name)
		}
		for _, event := range []string{"XIDs", "GPU resets", "MIG re-cuts", "Proxy restarts"} {
			if name == "kpulse-gpu.json" && !enabled[event] {
				t.Errorf("%s marks no %s", name, event)
			}
		}
	}
}

// TestTheWorseTheLouder: a state has the same color everywhere.
func TestTheWorseTheLouder(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`(import 'lib/query.libsonnet').severities`: {"0": "green", "0.5": "text", "1": "yellow", "2": "orange", "3": "red", "4": "red"},
		`(import 'lib/colors.libsonnet').raised`:    {"0": "transparent", "1": "yellow", "2": "orange", "3": "red"},
	} {
		var got map[string]struct{ Color string }
		decode(t, text, &got)
		for value, color := range want {
			if got[value].Color != color {
				t.Errorf("%s: %s is %s, not %s", text, value, got[value].Color, color)
			}
		}
	}
	var states [][2]string
	decode(t, `(import 'lib/colors.libsonnet').states`, &states)
	if want := [][2]string{{"ok", "green"}, {"hot", "yellow"}, {"warn", "orange"}, {"crit", "red"}, {"unknown", "#6e7077"}}; !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}
}

// decode evaluates jsonnet into a value.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	out, err := mixin.Evaluate(".", text)
	if err == nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		t.Fatal(text, err)
	}
}

// TestWhoIsChosenReachesEveryPanel: readers assume that every number follows the chosen values.
func TestWhoIsChosenReachesEveryPanel(t *testing.T) {
	for _, p := range dashboards(t)["kpulse-namespace.json"].Panels {
		for _, target := range p.Targets {
			for _, variable := range []string{`workload_namespace=~"$namespace"`, `hpc_job=~"$hpc_job"`, `hpc_user=~"$hpc_user"`, `hpc_account=~"$hpc_account"`} {
				if !strings.Contains(target.Expr, variable) {
					t.Errorf("panel %q, query %s does not select %s", p.Title, target.RefID, variable)
				}
			}
		}
	}
}

// TestIdleLiesBelow: idle is the lowest class of a stack. Grafana stacks in the order of the queries.
func TestIdleLiesBelow(t *testing.T) {
	found := 0
	eachPanel(t, "timeseries", func(where string, p panel) {
		if !strings.Contains(string(p.FieldConfig.Defaults.Custom), `"mode": "normal"`) || p.Targets[0].LegendFormat != "{{class}}" {
			return
		}
		found++
		if len(p.Targets) != 2 || !strings.Contains(p.Targets[0].Expr, `class="idle"`) || !strings.Contains(p.Targets[1].Expr, `class!="idle"`) {
			t.Errorf("%s does not begin with idle", where)
		}
	})
	if found < 3 {
		t.Errorf("only %d stacks by class", found)
	}
}
