package mixin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/mixin"
	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

// renderer renders panels with the code in Grafana's npm packages: see grafana/render.cjs.
type renderer struct{ dir string }

func newRenderer(t *testing.T) renderer {
	t.Helper()
	return renderer{installed(t, ".")}
}

// installed installs the packages of a folder of grafana/, and returns a copy of it with them. CI sets KPULSE_REQUIRE_NODE:
// there a missing Node.js is a failure.
func installed(t *testing.T, folder string) string {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("KPULSE_REQUIRE_NODE") != "" {
				t.Fatal(err)
			}
			t.Skipf("%v; apt-get install nodejs npm", err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("grafana")); err != nil {
		t.Fatal(err)
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = filepath.Join(dir, folder)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return install.Dir
}

// rendering is a panel with the results of its queries.
type rendering struct {
	at      place
	choice  string
	Panel   json.RawMessage `json:"panel"`
	Results []shownResult   `json:"results"`
}

type shownResult struct {
	RefID  string        `json:"refId"`
	Series []shownSeries `json:"series"`
}

type shownSeries struct {
	Metric map[string]string    `json:"metric"`
	Values [][2]json.RawMessage `json:"values"`
}

// look is what a panel shows: fields with a text for each value, or single values.
type look struct {
	Error  string
	Fields []shownField
	Values []shownCell
}

type shownField struct {
	Name   string
	Column string // the name in the query
	String bool
	Color  string
	Links  [][]string // for each value
	Raw    []string
	Cells  []shownCell
}

type shownCell struct {
	Name, Text, Color string
	Links             []string // of a single value
}

// field returns the field with a name, nil for none.
func (l *look) field(name string) *shownField {
	for i := range l.Fields {
		if l.Fields[i].Name == name {
			return &l.Fields[i]
		}
	}
	return nil
}

// colorNames are the names in Grafana's palette that tests use.
var colorNames = []string{"red", "orange", hotColor, "green"}

// render returns the look of each panel, and the colors of colorNames.
func (r renderer) render(t *testing.T, panels []rendering) (looks []look, colors map[string]string) {
	t.Helper()
	input, err := json.Marshal(map[string]any{"colors": colorNames, "panels": panels})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	node := exec.Command("node", "render.cjs")
	node.Dir, node.Stdin, node.Stdout, node.Stderr = r.dir, bytes.NewReader(input), &out, &errs
	if err := node.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, errs.Bytes())
	}
	var answer struct {
		Colors map[string]string
		Panels []look
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Panels) != len(panels) {
		t.Fatalf("%d of %d panels: %v\n%s", len(answer.Panels), len(panels), err, errs.Bytes())
	}
	return answer.Panels, answer.Colors
}

// rendering runs the queries of a panel.
func (p *page) rendering(of panel, raw json.RawMessage, choice string) (rendering, error) {
	r := rendering{at: place{p.UID, of.Title}, choice: choice, Panel: raw}
	for _, target := range of.Targets {
		found, err := p.asker.ask(p.question(of, target))
		if err != nil {
			return r, fmt.Errorf("%s: %w", of.Title, err)
		}
		result := shownResult{RefID: target.RefID, Series: []shownSeries{}}
		for _, s := range found.series {
			values := s.Values
			if target.Instant {
				values = append(values, s.Value)
			}
			result.Series = append(result.Series, shownSeries{s.Metric, values})
		}
		r.Results = append(r.Results, result)
	}
	return r, nil
}

// rawPanels returns the JSON of the panels, by place.
var rawPanels = sync.OnceValues(func() (map[place]json.RawMessage, error) {
	files, err := filepath.Glob("dashboards_out/*.json")
	all := map[place]json.RawMessage{}
	for _, file := range files {
		var d struct {
			UID    string
			Panels []json.RawMessage
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, raw := range d.Panels {
			var p struct{ Title string }
			if err := json.Unmarshal(raw, &p); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all[place{d.UID, p.Title}] = raw
		}
	}
	return all, err
})

// texts are the forms of numbers in columns and series, by name.
var texts = []struct{ name, text *regexp.Regexp }{
	{regexp.MustCompile(`(?i)utili[sz]ation$|^GPU-Util$|memory free|share`), regexp.MustCompile(`^-?\d+(\.\d+)?%$`)},
	{regexp.MustCompile(`(?i)temperature`), regexp.MustCompile(`^-?\d+(\.\d+)? °C$`)},
	{regexp.MustCompile(`^Power$|^Draw$|^Limit$`), regexp.MustCompile(`^\d+(\.\d+)? k?W$`)},
	{regexp.MustCompile(`^Cost$`), regexp.MustCompile(`^\$\d`)},
	{regexp.MustCompile(`^Energy$`), regexp.MustCompile(`^\d+(\.\d+)? [kM]?Wh$`)},
}

// noValue are the texts for a missing value.
var noValue = []string{"", "NaN", "No data", "not read"}

// wordColors are the colors of the words for a board's state.
var wordColors = map[string]string{"OK": "green", "HOT": hotColor, "WARN": "orange", "CRIT": "red", "GONE": "red"}

// checkGrafana renders every panel as Grafana does, and checks texts and colors.
func (f *playedFleet) checkGrafana(t *testing.T, r renderer) {
	raw, err := rawPanels()
	if err != nil {
		t.Fatal(err)
	}
	var panels []rendering
	for _, name := range sorted(f.pages) {
		for choice, chosen := range f.choices(t) {
			p, err := f.open(f.pages[name], f.End.Add(-time.Hour), f.End, chosen)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, of := range p.Panels {
				if of.Type == "row" || of.Type == "text" {
					continue
				}
				one, err := p.rendering(of, raw[place{p.UID, of.Title}], choice)
				if err != nil {
					t.Fatal(name, err)
				}
				panels = append(panels, one)
			}
		}
	}
	looks, colors := r.render(t, panels)
	found := &findings{}
	classes := map[string]string{} // colors by name
	numbers, words := 0, 0
	for i := range looks {
		at, l := panels[i].at, &looks[i]
		if l.Error != "" {
			found.fail(at, "error", "Grafana: %s", l.Error)
		}
		for _, field := range l.Fields {
			if text := madeUp(&field); text != "" {
				found.fail(at, "empty", "%s shows %q in an empty cell", field.Name, text)
			}
			if field.String {
				if text := asNumber(&field); text != "" && !slices.Contains(codesInWords, field.Name) {
					found.fail(at, "label", "%s shows %q", field.Name, text)
				}
				continue
			}
			if color, is := classes[field.Name]; is && color != field.Color {
				found.fail(at, "color", "%s is %s here, and %s elsewhere", field.Name, field.Color, color)
			} else if slices.Contains(classNames(t), field.Name) {
				classes[field.Name] = field.Color
			}
			for _, cell := range field.Cells {
				n, w := checkCell(found, at, field.Name, cell, colors)
				numbers, words = numbers+n, words+w
			}
		}
		for _, cell := range l.Values {
			n, w := checkCell(found, at, at.panel, cell, colors)
			numbers, words = numbers+n, words+w
		}
	}
	f.checkGone(found, panels, looks, colors)
	if f.hosts == leastHosts {
		checkTold(found, panels, looks)
	}
	links := f.checkLinks(found, panels, looks)
	f.report(t, found)
	t.Logf("%d panels rendered, %d numbers and %d words checked, colors of %d classes, %d links of rows followed", len(looks), numbers, words, len(classes), links)
	if links < 50 || numbers < 1000 || words < 50 || len(classes) < 5 {
		t.Error("that is less than expected")
	}
}

// shown is a panel, with a choice.
type shown struct{ page, panel, choice string }

// told are rows of tables, and values of tiles and ends of lines, over an hour of leastHosts, as worked out from the script of the fleet (works in
// package fleet, weights 0.35, 0.35, 0.2 and 0.1 of SM, tensor, DRAM and engine), at $2.5 for a GPU-hour.
var told = map[shown][]map[string]string{
	// Four parked GPUs use 0.1 %; eight that pretrain 71.3 %.
	{"kpulse-efficiency", "Holders by unused GPU-hours", "all"}: {
		// Four idle GPUs for an hour at $2.50, and for a minute more: Prometheus 2 counts both ends of a range.
		{"Cluster": "west", "Namespace": "notebooks", "Workload": "lab-7", "Unused": "4.0", "Cost": "$10.05", "Held": "4.0", "Idle": "4.0", "Real utilization": "0%"},
		{"Cluster": "east", "Namespace": "team-vision", "Workload": "vision-1", "Unused": "2.3", "Held": "8.0", "Idle": "0.0", "Real utilization": "71%"},
	},
	// 15 GPUs of the solver use 44.4 %, and one is at 14.1 % for 55 minutes.
	{"kpulse-efficiency", "Users by unused GPU-hours", "all"}:      {{"Cluster": "east", "User": "bob", "Unused": "9.2", "Idle": "0.0", "Real utilization": "43%"}},
	{"kpulse-efficiency", "Accounts by unused GPU-hours", "all"}:   {{"Cluster": "east", "Account": "biology", "Unused": "9.2"}},
	{"kpulse-efficiency", "Namespaces by unused GPU-hours", "all"}: {{"Cluster": "east", "Namespace": "notebooks", "Unused": "4.0", "Cost": "$10.05"}},
	// Since the fleet began, two hours ago.
	{"kpulse-efficiency", "Devices held and idle", "all"}:      {{"Cluster": "east", "Host": "gpu-007", "GPU": "0", "Namespace": "notebooks", "GPUs": "1.00", "Idle of it": "2.0 hours", "Held for": "2.0 hours"}},
	{"kpulse-efficiency", "GPUs held, free and in all", "all"}: {{"in all": "102"}}, // 13 hosts of 8, but for two boards that are gone; a host has lost all, and two are silent
	{"kpulse-health", "PCIe below its maximum", "all"}:         {{"Cluster": "east", "Host": "gpu-001", "GPU": "1", "Lanes": "8", "Of": "16"}},
	{"kpulse-health", "NVLinks down", "all"}:                   {{"Cluster": "west", "Host": "gpu-002", "GPU": "2", "Up": "16", "Of": "18"}},
	{"kpulse-health", "Fabric", "all"}:                         {{"Cluster": "west", "Host": "gpu-002", "GPU": "2", "Health": "limited"}},
	{"kpulse-health", "Recommended actions", "all"}:            {{"Cluster": "west", "Host": "gpu-002", "GPU": "2", "Action": "reset_gpu", "Driver asks for": "reset the GPU"}},
	// One error a second, from 50 minutes before the end to the last recording, 45 s before it.
	{"kpulse-health", "Memory errors and remapped rows", "all"}: {{"Cluster": "east", "Host": "gpu-001", "GPU": "0", "Correctable per hour": "2955 /h"}},
	// An error each minute, for 24 minutes.
	{"kpulse-health", "SXIDs of NVSwitches", "all"}:           {{"Cluster": "west", "Host": "gpu-002", "Switch": "0000:05:00.0", "SXID": "12028", "Severity": "warning", "Times": "24"}},
	{"kpulse-node", "CPU and memory of the host", "one host"}: {{"CPUs": "25%", "memory": "40%"}},
	{"kpulse-job", "CPU of its hosts", "one job"}:             {{"gpu-000": "25%", "gpu-002": "25%"}},
	{"kpulse-job", "Memory of its hosts", "one job"}:          {{"gpu-000": "40%", "gpu-002": "40%"}},
	{"kpulse-proxy", "Sources", "all"}:                        {{"Cluster": "west", "Proxy": "gpu-005:9401", "Source": "dcgmi dmon", "Up": "up"}},
	{"kpulse-proxy", "Fields missing by source", "all"}:       {{"Cluster": "east", "Proxy": "gpu-007:9401", "Field": "gpu_dram_active_ratio"}},
	{"kpulse-proxy", "Sources down", "all"}:                   {{"": "0"}},
	{"kpulse-namespace", "Stalled now", "one job"}:            {{"": "16.0"}},
	{"kpulse-namespace", "Stalled now", "one host"}:           {{"": "0.0"}}, // no job of the other cluster hangs
	{"kpulse-namespace", "Alerts", "one job"}:                 {{"Alert": "KpulseJobStalled", "Job": "88049300"}},
	// At 18 % of the range from 70 W to 700 W on one host, from 60 W to 400 W on the other: 183 W and 121 W.
	{"kpulse-namespace", "Power of a GPU by namespace and job", "one job"}: {{"east  88049300": "152 W"}},
}

// checkTold checks told.
func checkTold(found *findings, panels []rendering, looks []look) {
	for of, all := range told {
		at := place{of.page, of.panel}
		i := slices.IndexFunc(panels, func(r rendering) bool { return r.at == at && r.choice == of.choice })
		if i < 0 {
			found.fail(at, "told", "there is no such panel")
			continue
		}
		var p struct{ Type string }
		_ = json.Unmarshal(panels[i].Panel, &p)
		for _, cells := range all {
			if !looks[i].says(p.Type, cells) {
				found.fail(at, "told", "with %s it does not show %q, but %.2500s", of.choice, cells, &looks[i])
			}
		}
	}
}

// codesInWords are the columns that show an XID in words.
var codesInWords = []string{"What happened", "What to do"}

// asNumber returns a text in a column of labels that differs from its label: "3" may become
// 300%.
func asNumber(field *shownField) string {
	for i, cell := range field.Cells {
		if _, err := strconv.ParseFloat(field.Raw[i], 64); err == nil && cell.Text != field.Raw[i] {
			return cell.Text
		}
	}
	return ""
}

// madeUp returns the text of an empty cell: a panel's noValue, meant for a panel without rows,
// would also fill empty cells.
func madeUp(field *shownField) string {
	for i, cell := range field.Cells {
		if field.Raw[i] == "" && cell.Text != "" {
			return cell.Text
		}
	}
	return ""
}

// checkCell checks a value against texts and wordColors, and returns how often each applied.
func checkCell(found *findings, at place, name string, cell shownCell, colors map[string]string) (numbers, words int) {
	for _, want := range texts {
		if want.name.MatchString(name) && !slices.Contains(noValue, cell.Text) {
			numbers++
			if !want.text.MatchString(cell.Text) {
				found.fail(at, "unit", "%s shows %q", name, cell.Text)
			}
		}
	}
	if want, is := wordColors[cell.Text]; is {
		words++
		if cell.Color != colors[want] {
			found.fail(at, "color", "%s is %s, not %s", cell.Text, cell.Color, want)
		}
	}
	return numbers, words
}

// classNames returns the classes of lib/colors.libsonnet.
var classNames = func() func(*testing.T) []string {
	read := sync.OnceValues(func() (names []string, err error) {
		text, err := mixin.Evaluate(".", `[class[0] for class in (import 'lib/colors.libsonnet').classes]`)
		if err == nil {
			err = json.Unmarshal([]byte(text), &names)
		}
		return names, err
	})
	return func(t *testing.T) []string {
		t.Helper()
		names, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
}()

// checkGone checks that each missing board is a red GONE in the table of Fleet, and that the
// selected one is so on its own page.
func (f *playedFleet) checkGone(found *findings, panels []rendering, looks []look, colors map[string]string) {
	shown := func(at place, choice string) *look {
		i := slices.IndexFunc(panels, func(r rendering) bool { return r.at == at && r.choice == choice })
		if i < 0 {
			found.fail(at, "gone", "there is no such panel")
			return &look{}
		}
		return &looks[i]
	}
	isGone := func(c shownCell) bool { return c.Text == "GONE" && c.Color == colors["red"] }
	boards := place{"kpulse-fleet", "GPUs"}
	fleet := shown(boards, "all")
	for _, incident := range f.Incidents {
		if incident.Alert != "KpulseGPUMissing" {
			continue
		}
		uuids, health := fleet.field("UUID"), fleet.field("Health")
		row := -1
		if uuids != nil && health != nil {
			row = slices.Index(uuids.Raw, incident.UUID)
		}
		if row < 0 || !isGone(health.Cells[row]) {
			found.fail(boards, "gone", "%s: %s is not a red GONE", incident.Name, incident.UUID)
		}
	}
	own := place{"kpulse-gpu", "Health"}
	if l := shown(own, "gone GPU"); len(l.Values) != 1 || !isGone(l.Values[0]) {
		found.fail(own, "gone", "it is %+v, not a red GONE", l.Values)
	}
}

// checkLinks follows the links of each table in the first row and in rows of faulty boards: on
// the target page, the row's values are among the choices. It returns the number of links.
func (f *playedFleet) checkLinks(found *findings, panels []rendering, looks []look) (followed int) {
	for i := range looks {
		if panels[i].choice != "all" {
			continue
		}
		for n := range looks[i].Fields {
			field := &looks[i].Fields[n]
			for row := range field.Raw {
				if row > 0 && !f.wrong(&looks[i], row) || field.Raw[row] == "" {
					continue
				}
				for _, link := range field.Links[row] {
					if !strings.Contains(link, "/d/") {
						continue // a runbook
					}
					followed++
					if err := f.checkLink(&looks[i], link, row); err != nil {
						found.fail(panels[i].at, "link", "%s %q: %v", field.Name, field.Raw[row], err)
					}
				}
			}
		}
	}
	return followed
}

// wrong reports whether a row is of a faulty board.
func (f *playedFleet) wrong(l *look, row int) bool {
	uuids := slices.IndexFunc(l.Fields, func(f shownField) bool { return f.Column == "uuid" })
	return uuids >= 0 && slices.ContainsFunc(f.Incidents, func(i fleet.Incident) bool { return i.UUID == l.Fields[uuids].Raw[row] })
}

// checkLink follows a link of a row, which must select the row's cluster: hosts of both clusters have the same names.
func (f *playedFleet) checkLink(l *look, link string, row int) error {
	p, err := f.follow(link)
	if err != nil {
		return err
	}
	cluster := l.field("Cluster")
	if cluster == nil || !slices.Equal(p.chosen["cluster"], []string{cluster.Raw[row]}) {
		return fmt.Errorf("%s leads to the cluster %q, which is not that of the row", link, p.chosen["cluster"])
	}
	return p.offers()
}

// checkThresholds renders made-up values in the panels that count faults.
func (r renderer) checkThresholds(t *testing.T) {
	raw, err := rawPanels()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		at          place
		value, want string // a number, and its color or its text
	}{
		{place{"kpulse-fleet", "Critical"}, "0", "green"},
		{place{"kpulse-fleet", "Critical"}, "1", "red"},
		{place{"kpulse-health", "Gone"}, "0", "green"},
		{place{"kpulse-health", "Gone"}, "2", "red"},
		{place{"kpulse-proxy", "Proxies down"}, "0", "green"},
		{place{"kpulse-proxy", "Proxies down"}, "3", "red"},
		{place{"kpulse-power", "Slowed by heat"}, "1", hotColor},
		{place{"kpulse-gpu", "Last XID"}, "79", "79"},
		{place{"kpulse-gpu", "Last XID"}, "0", "none"},
	}
	var panels []rendering
	for _, c := range cases {
		if raw[c.at] == nil {
			t.Fatalf("%v is not a panel; there are %v", c.at, slices.Collect(maps.Keys(raw)))
		}
		panels = append(panels, rendering{Panel: raw[c.at], Results: []shownResult{{"A", []shownSeries{{map[string]string{}, [][2]json.RawMessage{{json.RawMessage("1"), json.RawMessage(`"` + c.value + `"`)}}}}}}})
	}
	looks, colors := r.render(t, panels)
	for i, c := range cases {
		if len(looks[i].Values) != 1 {
			t.Fatalf("%v of %s is %+v", c.at, c.value, looks[i])
		}
		shown, text, color := looks[i].Values[0], c.value, colors[c.want]
		if color == "" {
			text, color = c.want, shown.Color
		}
		if shown.Color != color || !strings.HasPrefix(shown.Text, text) {
			t.Errorf("%v of %s is %+v, want it %s", c.at, c.value, shown, c.want)
		}
	}
}
