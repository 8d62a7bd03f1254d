package mixin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// belowZero are charts of values that can be below 0, or are never near it.
var belowZero = []string{"Temperature", "Distance to the warning temperature"}

// TestCharts: charts begin at 0, have their legend below, without values that may be those of a line that has ended, and the lines have
// different hues: Grafana's, or those that the dashboard gives to each.
func TestCharts(t *testing.T) {
	eachPanel(t, "timeseries", func(where string, p panel) {
		defaults := p.FieldConfig.Defaults
		var custom struct{ AxisSoftMax float64 }
		var options struct {
			Legend struct {
				Placement string
				Calcs     []string
			}
		}
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
		if len(options.Legend.Calcs) > 0 {
			t.Errorf("%s shows in its legend the %s of lines that may have ended", where, options.Legend.Calcs)
		}
		// The fifth color of the palette is red, which is for faults wherever the lines are known.
		open := slices.ContainsFunc(p.Targets, func(t target) bool { return strings.Contains(t.LegendFormat, "{{") })
		if mode := defaults.Color.Mode; mode != "palette-classic" || !open && len(p.Targets) > 4 && len(p.FieldConfig.Overrides) < len(p.Targets) {
			t.Errorf("%s has the color mode %q for %d lines", where, mode, len(p.Targets))
		}
	})
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

// hotColor is the color of what is hot, or idle.
const hotColor = "#b8860b"

// TestHotIsReadable computes the contrast of hotColor with Grafana's backgrounds by WCAG 2.2, which wants 3:1 for large text.
func TestHotIsReadable(t *testing.T) {
	luminance := func(color string) (sum float64) {
		for i, weight := range []float64{.2126, .7152, .0722} {
			n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			v := float64(n) / 255
			if v <= .04045 {
				sum += weight * v / 12.92
			} else {
				sum += weight * math.Pow((v+.055)/1.055, 2.4)
			}
		}
		return sum
	}
	for _, background := range []string{"#ffffff", "#181b1f"} {
		of, on := luminance(hotColor), luminance(background)
		if contrast := (max(of, on) + .05) / (min(of, on) + .05); contrast < 3 {
			t.Errorf("%s on %s has a contrast of %.2f", hotColor, background, contrast)
		}
	}
}

// TestTheWorseTheLouder: a state has the same color everywhere.
func TestTheWorseTheLouder(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`(import 'lib/query.libsonnet').severities`: {"0": "green", "0.5": "text", "1": hotColor, "2": "orange", "3": "red", "4": "red"},
		`(import 'lib/colors.libsonnet').raised`:    {"0": "transparent", "1": hotColor, "2": "orange", "3": "red"},
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
	if want := [][2]string{{"ok", "green"}, {"hot", hotColor}, {"warn", "orange"}, {"crit", "red"}, {"unknown", "#6e7077"}}; !slices.Equal(states, want) {
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
