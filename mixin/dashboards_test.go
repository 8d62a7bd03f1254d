package mixin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dashboard is the part of a dashboard that the tests read.
type dashboard struct {
	UID, Title, Description string
	Tags                    []string
	Links                   []pageLink
	Panels                  []panel
	Templating              struct{ List []variable }
	Annotations             struct{ List []annotation }
}

// pageLink is a link at the head of a dashboard.
type pageLink struct {
	Type, Title, URL string
	Tags             []string
	IncludeVars      bool
}

// annotation is a query whose results are marks in all charts.
type annotation struct {
	Name, Expr, TitleFormat, TagKeys string
	Step                             string // the minimum
	Enable                           bool
	Datasource                       struct{ UID string }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Interval                 string  // the minimum step
	Panels                   []panel // of a collapsed row
	Datasource               *struct{ UID string }
	Targets                  []target
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit     string
			Min, Max *float64
			Color    struct{ Mode string }
			Links    []link
			Custom   json.RawMessage
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Options         json.RawMessage
	Transformations []struct {
		ID      string
		Options struct {
			Include      struct{ Names []string }
			Sort         []struct{ Field string }
			RenameByName map[string]string
		}
	}
}

type target struct {
	RefID              string `json:"refId"`
	Expr, LegendFormat string
	Instant            bool
	Format             string
	Datasource         struct{ UID string }
}

type variable struct {
	Name, Type, Regex string
	Query             json.RawMessage
	Multi, IncludeAll bool
	SkipURLSync       bool // links do not set it
	AllValue          string
}

type link struct{ Title, URL string }

// dashboards returns the mixin's dashboards, by file name.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("dashboards_out/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// schemaOf returns the part of a schema's file name for a type of panel.
func schemaOf(panel string) string { return strings.ReplaceAll(panel, "-", "") }

// validate checks a JSON text against schema/NAME.json.
func validate(name string, text []byte) error {
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("schema", name+".json"))
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func TestDashboardsFitGrafanasTypes(t *testing.T) {
	for name, d := range dashboards(t) {
		text, err := os.ReadFile(filepath.Join("dashboards_out", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate("dashboard", withoutExtras(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			if err := validate(schemaOf(p.Type)+".options", p.Options); err != nil {
				t.Errorf("%s, panel %q: %v", name, p.Title, err)
			}
			if custom := p.FieldConfig.Defaults.Custom; custom != nil {
				if err := validate(schemaOf(p.Type)+".custom", custom); err != nil {
					t.Errorf("%s, panel %q: %v", name, p.Title, err)
				}
			}
		}
	}
}

// ofPrometheus are the properties that Grafana's Prometheus plugin adds to annotations, which
// the schema of dashboards lacks.
var ofPrometheus = []string{"expr", "step", "titleFormat", "tagKeys"}

// ofExports are the properties that an export for sharing adds.
var ofExports = []string{"__inputs", "__elements", "__requires"}

// units are the Grafana units that our panels may have.
var units = []string{"none", "dateTimeFromNow", "percentunit", "bytes", "Bps", "watt", "kwatth", "celsius", "hertz", "cps", "reqps", "s", "h", "suffix:/h", "suffix:/min", "currencyUSD"}

func TestPanelsSayWhatTheyShow(t *testing.T) {
	for name, d := range dashboards(t) {
		if d.Description == "" || !strings.HasSuffix(d.Description, "?") {
			t.Errorf("%s asks no question: %q", name, d.Description)
		}
		titles := map[string]bool{}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, panel %q", name, p.Title)
			if p.Title == "" || titles[p.Title] {
				t.Errorf("%s: the title is missing or repeated", where)
			}
			titles[p.Title] = true
			if p.Type == "row" {
				continue
			}
			if len(strings.Fields(p.Description)) < 4 {
				t.Errorf("%s does not say what to do about it: %q", where, p.Description)
			}
			// A table has a unit for each value column.
			if p.Type != "table" && !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
				t.Errorf("%s has the unit %q", where, p.FieldConfig.Defaults.Unit)
			}
			if len(p.Targets) == 0 || p.Datasource == nil || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s has no query, or not the selected data source", where)
			}
			for i, target := range p.Targets {
				if target.RefID != string(rune('A'+i)) || target.Datasource.UID != "${datasource}" {
					t.Errorf("%s, query %d: refId %q of %q", where, i, target.RefID, target.Datasource.UID)
				}
			}
		}
	}
}

// TestTablesShowTheirColumns: Grafana ignores missing columns. It calls the value column Value
// if there is one query, else Value #A and so on.
func TestTablesShowTheirColumns(t *testing.T) {
	tables := 0
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			if p.Type != "table" {
				continue
			}
			tables++
			where := fmt.Sprintf("%s, panel %q", name, p.Title)
			var expressions strings.Builder
			columns := map[string]bool{}
			for _, target := range p.Targets {
				expressions.WriteString(target.Expr + "\n")
				if len(p.Targets) == 1 {
					columns["Value"] = true
				} else {
					columns["Value #"+target.RefID] = true
				}
			}
			exists := func(column string) bool {
				return columns[column] || !strings.HasPrefix(column, "Value") && regexp.MustCompile(`\b`+column+`\b`).MatchString(expressions.String())
			}
			shown, merged, renamed := map[string]bool{}, false, false
			for _, step := range p.Transformations {
				merged = merged || step.ID == "merge"
				for _, column := range step.Options.Sort {
					if renamed || len(p.Targets) > 1 && !merged || !exists(column.Field) {
						t.Errorf("%s is ordered by %q, which is not a column then", where, column.Field)
					}
				}
				for _, column := range step.Options.Include.Names {
					if !exists(column) {
						t.Errorf("%s shows %q, which no query returns", where, column)
					}
				}
				for _, column := range step.Options.RenameByName {
					shown[column], renamed = true, true
				}
			}
			for _, override := range p.FieldConfig.Overrides {
				if override.Matcher.ID == "byName" && !shown[override.Matcher.Options] {
					t.Errorf("%s styles %q, which it does not show", where, override.Matcher.Options)
				}
			}
		}
	}
	if tables < 15 {
		t.Errorf("only %d tables", tables)
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for name, d := range dashboards(t) {
		ids := map[int]bool{}
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: the id %d of %q is 0 or repeated", name, p.ID, p.Title)
			}
			ids[p.ID] = true
			g := p.GridPos
			if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
				t.Errorf("%s: %q is outside the grid: %+v", name, p.Title, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %q overlaps %q", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

var dashboardLink = regexp.MustCompile(`^/d/([a-z-]+)\?`)

func TestLinksLeadSomewhere(t *testing.T) {
	all := dashboards(t)
	uids := map[string]dashboard{}
	for name, d := range all {
		if len(d.UID) == 0 || len(d.UID) > 40 || uids[d.UID].UID != "" {
			t.Errorf("%s: the uid %q is empty, too long or repeated", name, d.UID)
		}
		uids[d.UID] = d
	}
	found := 0
	for name, d := range all {
		for _, p := range d.Panels {
			links := p.FieldConfig.Defaults.Links
			for _, override := range p.FieldConfig.Overrides {
				for _, property := range override.Properties {
					if property.ID != "links" {
						continue
					}
					var more []link
					if err := json.Unmarshal(property.Value, &more); err != nil {
						t.Fatal(err)
					}
					links = append(links, more...)
				}
			}
			for _, l := range links {
				found++
				if strings.HasSuffix(l.URL, "/runbooks/${__value.raw}.md") {
					continue // each alert has one
				}
				match := dashboardLink.FindStringSubmatch(l.URL)
				if match == nil || uids[match[1]].UID == "" {
					t.Errorf("%s, panel %q: the link %s leads nowhere", name, p.Title, l.URL)
					continue
				}
				checkVariables(t, fmt.Sprintf("%s, panel %q", name, p.Title), l.URL, uids[match[1]])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links", found)
	}
}

// TestChoicesGoWhereTheyFit: links at the head lead to all dashboards, but do not pass a choice of several hosts or jobs to a
// dashboard of one.
func TestChoicesGoWhereTheyFit(t *testing.T) {
	all := dashboards(t)
	for name, d := range all {
		for _, to := range all {
			one := slices.ContainsFunc(to.Templating.List, func(v variable) bool { return (v.Name == "hostname" || v.Name == "job") && !v.Multi })
			var leading []pageLink
			for _, l := range d.Links {
				tagged := l.Type == "dashboards" && !slices.ContainsFunc(l.Tags, func(tag string) bool { return !slices.Contains(to.Tags, tag) })
				if tagged || l.Type == "link" && strings.HasPrefix(l.URL, "/d/"+to.UID+"?") && !strings.Contains(l.URL, "hostname") {
					leading = append(leading, l)
				}
			}
			if len(leading) != 1 || leading[0].IncludeVars == one {
				t.Errorf("%s leads to %s by %+v", name, to.Title, leading)
			}
		}
	}
}

// checkVariables checks that a link sets only variables of its target.
func checkVariables(t *testing.T, where, url string, to dashboard) {
	t.Helper()
	for _, match := range regexp.MustCompile(`var-([a-z_]+)=`).FindAllStringSubmatch(url, -1) {
		if !slices.ContainsFunc(to.Templating.List, func(v variable) bool { return v.Name == match[1] }) {
			t.Errorf("%s: %s has no variable %s", where, to.Title, match[1])
		}
	}
	if !strings.Contains(url, "${__url_time_range}") ||
		!strings.Contains(url, "${__all_variables}") && !strings.Contains(url, "var-datasource=${datasource}&var-cluster=${__data.fields.Cluster}&") {
		t.Errorf("%s: %s does not carry the time range, the data source and the cluster", where, url)
	}
}

// TestVariablesAreUsedAndDeclared: dashboards declare the variables that they use, and use
// those that they declare.
func TestVariablesAreUsedAndDeclared(t *testing.T) {
	for name, d := range dashboards(t) {
		declared := map[string]bool{}
		for i, v := range d.Templating.List {
			declared[v.Name] = true
			if i == 0 && v.Name != "datasource" {
				t.Errorf("%s: the first variable is %s, not the data source", name, v.Name)
			}
		}
		used := map[string]bool{"datasource": true, "cluster": true}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, match := range regexp.MustCompile(`\$([a-z]\w*)`).FindAllStringSubmatch(target.Expr, -1) {
					used[match[1]] = true
					if !declared[match[1]] {
						t.Errorf("%s, panel %q: $%s is not declared", name, p.Title, match[1])
					}
				}
			}
		}
		for _, a := range d.Annotations.List {
			for _, match := range regexp.MustCompile(`\$([a-z]\w*)`).FindAllStringSubmatch(a.Expr, -1) {
				if !declared[match[1]] {
					t.Errorf("%s, annotation %q: $%s is not declared", name, a.Name, match[1])
				}
			}
		}
		for _, v := range d.Templating.List {
			text := string(v.Query)
			for _, match := range regexp.MustCompile(`\$([a-z]\w*)`).FindAllStringSubmatch(text, -1) {
				used[match[1]] = true
			}
		}
		for _, v := range sorted(declared) {
			if !used[v] {
				t.Errorf("%s: the variable %s is not used", name, v)
			}
		}
	}
}

// withoutExtras returns a dashboard without the properties in ofPrometheus and ofExports.
func withoutExtras(t *testing.T, text []byte) []byte {
	t.Helper()
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, a := range d["annotations"].(map[string]any)["list"].([]any) {
		for _, key := range ofPrometheus {
			if a.(map[string]any)[key] == "" {
				t.Errorf("an annotation without %s", key)
			}
			delete(a.(map[string]any), key)
		}
	}
	for _, key := range ofExports {
		delete(d, key)
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFilesAreForSharing: each file says what it needs, as an export for sharing does: Grafana, Prometheus, and each type of its panels
// once. Grafana's importer asks for a value of each input, puts it where a text has ${NAME}, and saves the rest under the uid as it is; a
// number as id would name a dashboard of that Grafana. So a file without inputs is imported unchanged if it has a title, a uid and no id,
// and if all of its references to data sources, in the form that they have since schema 36, are those of its own first variable.
func TestFilesAreForSharing(t *testing.T) {
	for name, raw := range readAll(t, "dashboards_out/*.json") {
		var d struct {
			Inputs     *[]any                            `json:"__inputs"`
			Elements   map[string]any                    `json:"__elements"`
			Needs      []struct{ Type, ID, Name string } `json:"__requires"`
			ID         any
			UID        string
			Title      string
			Schema     int `json:"schemaVersion"`
			Panels     []panel
			Templating struct{ List []variable }
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(name, err)
		}
		if d.Inputs == nil || len(*d.Inputs) > 0 || d.Elements == nil || d.ID != nil || strings.Contains(string(raw), "${DS_") {
			t.Errorf("%s has the inputs %v, the elements %v and the id %v", name, d.Inputs, d.Elements, d.ID)
		}
		if !regexp.MustCompile(`^[\w-]{1,40}$`).MatchString(d.UID) || d.Title == "" || d.Schema < 36 || d.Schema > 42 {
			t.Errorf("%s has the uid %q, the title %q and the schema %d", name, d.UID, d.Title, d.Schema)
		}
		if v := d.Templating.List[0]; v.Name != "datasource" || v.Type != "datasource" || string(v.Query) != `"prometheus"` {
			t.Errorf("%s begins with the variable %s of type %s", name, v.Name, v.Type)
		}
		var any any
		if err := json.Unmarshal(raw, &any); err != nil {
			t.Fatal(name, err)
		}
		if refs := references(any); len(refs) != 1 || refs[`{"type":"prometheus","uid":"${datasource}"}`] < len(d.Panels) {
			t.Errorf("%s refers to the data sources %v", name, refs)
		}
		want, got := map[string]bool{"grafana grafana": true, "datasource prometheus": true}, map[string]bool{}
		for _, p := range d.Panels {
			if p.Type != "row" {
				want["panel "+p.Type] = true
			}
		}
		for _, need := range d.Needs {
			got[need.Type+" "+need.ID] = need.Name != ""
		}
		if len(d.Needs) != len(want) || !maps.Equal(got, want) {
			t.Errorf("%s requires %v, want %v", name, d.Needs, sorted(want))
		}
	}
}

// references counts the data sources in a value, as JSON.
func references(of any) map[string]int {
	counted := map[string]int{}
	add := func(in any) {
		for name, n := range references(in) {
			counted[name] += n
		}
	}
	switch of := of.(type) {
	case []any:
		for _, v := range of {
			add(v)
		}
	case map[string]any:
		for key, v := range of {
			if key == "datasource" {
				text, _ := json.Marshal(v)
				counted[string(text)]++
			}
			add(v)
		}
	}
	return counted
}
