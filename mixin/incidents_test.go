package mixin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

// stop is what a panel must show about an incident: for a table, texts of one row by column, of # its number; for a chart, the last value of
// each line; for a stat, its text by "" or by its name. {x} stands for a value of the incident.
type stop struct {
	panel string
	cells map[string]string
}

// click is the link that an operator follows next: that of a cell in the row of a table that has all of these texts, or of a tile.
type click struct {
	panel, column string // "" for a tile
	row           map[string]string
}

// walk is the path of an operator to an answer: from the alert of an incident, or an alert with these labels, or else from the
// page Fleet, by at most two clicks to a page that shows it.
type walk struct {
	name, incident string
	alert          map[string]string
	clicks         []click // after that on the link of the alert
	stops          []stop
}

// toEfficiency is the link of a tile of Fleet.
var toEfficiency = click{panel: "Held"}

// walks are the paths to what each incident did, and to what a team and its administrators ask. What Grafana shows at their ends
// is worked out from the script of the fleet.
var walks = []walk{
	{name: "GPU gone", incident: "GPU gone", stops: []stop{
		{"Health", map[string]string{"": "GONE"}},
		{"Holders", map[string]string{"Namespace": "team-vision", "Pod": "vision-1-worker-{gpu}", "Holds it": "no longer"}},
	}},
	{name: "XID 79", incident: "XID 79", stops: []stop{
		{"Health", map[string]string{"": "GONE"}},
		{"Last XID", map[string]string{"": "79"}},
		{"XIDs by code", map[string]string{"XID": "79", "What happened": "The driver lost the board: it no longer answers on PCIe.", "What to do": "reboot the node", "Times": "1"}},
		{"Holders", map[string]string{"Job": "88050300", "Holds it": "no longer"}},
	}},
	{name: "NVLink down", incident: "NVLink down", stops: []stop{
		{"Health", map[string]string{"": "CRIT"}},
		{"Conditions over time", map[string]string{"nvlink_down": "raised"}},
		{"Recommended action over time", map[string]string{"reset_gpu": "yes"}},
		{"Holders", map[string]string{"Job": "88050300", "Holds it": "now"}},
	}},
	// At 14.1 % for 55 of 61 minutes, which the averages of five minutes show half of them later, and at 44.4 % before, as the others: 18.3 %.
	{name: "straggler", incident: "straggler", clicks: []click{{"Holders", "Job", map[string]string{"Job": "88049301", "Holds it": "now"}}}, stops: []stop{
		{"What to change", map[string]string{"What": "stragglers", "#": "1"}},
		{"Alerts", map[string]string{"Alert": "KpulseGPUStragglerInJob", "Host": "{host}", "GPU": "{gpu}", "Job": "88049301"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}", "Real utilization": "18%", "Of the median": "40%", "#": "1"}},
	}},
	{name: "heat", incident: "hot", stops: []stop{
		{"Health", map[string]string{"": "HOT"}},
		{"What holds the clocks down", map[string]string{"hw_thermal": "yes"}},
		{"Holders", map[string]string{"Namespace": "team-nlp", "Pod": "nlp-3-worker-{gpu}", "Holds it": "now"}},
	}},
	{name: "hung job", incident: "hung job", stops: []stop{
		{"State", map[string]string{"": "STALLED"}},
		{"GPUs and hosts", map[string]string{"GPUs": "16", "hosts": "2"}},
		{"What to change", map[string]string{"What": "stalled", "#": "1"}},
		{"Whose", map[string]string{"Cluster": "{cluster}", "Job": "{job}", "User": "ada", "Account": "physics", "GPUs": "16.0"}},
		{"Alerts", map[string]string{"Severity": "critical", "Alert": "KpulseJobStalled", "Job": "{job}"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}"}},
	}},
	{name: "proxy down", incident: "proxy down", stops: []stop{
		{"Proxies down", map[string]string{"": "1"}},
		{"Proxies and sources that are down", map[string]string{"Cluster": "west", "Proxy": "gpu-004:9401", "Scrape job": "kpulse-proxy", "Silent for": "21 mins"}},
	}},
	{name: "all GPUs lost", incident: "all GPUs lost", stops: []stop{
		{"Devices read", map[string]string{"": "0"}},
		{"Sources down", map[string]string{"": "0"}},
		{"Sources", map[string]string{"Cluster": "east", "Proxy": "gpu-005:9401", "Up": "up", "Devices": "0", "Had": "11"}}, // eight boards, one of them with three instances,
	}},
	// Four parked GPUs in each cluster, for an hour.
	{name: "waste", alert: map[string]string{"alertname": "KpulseNamespaceWaste", "cluster": "west", "workload_namespace": "notebooks"}, stops: []stop{
		{"GPUs held now", map[string]string{"": "4.0"}},
		{"Idle share", map[string]string{"": "100%"}},
		{"Alerts", map[string]string{"Alert": "KpulseNamespaceWaste", "Cluster": "west", "Subject": "notebooks"}},
		{"Kubernetes workloads", map[string]string{"Namespace": "notebooks", "Workload": "lab-7", "Idle GPU-hours": "4.0", "Real utilization": "0%"}},
		{"Devices held now", map[string]string{"Host": "gpu-007", "GPU": "3", "Pod": "lab-7-3", "Real utilization": "0%"}},
	}},
	// Of 16 hosts, two are silent and one has lost all of its boards; of the rest two boards are gone, and pods leave four free on two hosts.
	// The proxy whose stream ticks every 10 s counts 290 s of eight GPUs in the 285 s between the scrapes of 5 minutes: 0.14 too many.
	{name: "capacity", clicks: []click{toEfficiency}, stops: []stop{
		{"Free GPUs", map[string]string{"": "7.9"}},
		{"GPUs held, free and in all", map[string]string{"held": "94.1", "free": "7.86", "in all": "102"}},
	}},
	{name: "one job", clicks: []click{toEfficiency, {"Holders by unused GPU-hours", "Job", map[string]string{"Job": "88049301"}}}, stops: []stop{
		{"State", map[string]string{"": "holds GPUs"}},
		{"Whose", map[string]string{"Cluster": "east", "Job": "88049301", "User": "bob", "Account": "biology", "GPUs": "16.0"}},
		{"What to change", map[string]string{"What": "stragglers"}},
		{"Boards of the job", map[string]string{"Host": "gpu-006", "GPU": "5", "Mostly": "busy_low_sm_use", "Worst health": "OK"}},
	}},
	{name: "one user", clicks: []click{toEfficiency, {"Users by unused GPU-hours", "User", map[string]string{"Cluster": "east", "User": "bob"}}}, stops: []stop{
		{"GPUs held now", map[string]string{"": "16.0"}},
		{"Batch jobs", map[string]string{"Cluster": "east", "Job": "88049301", "Idle GPU-hours": "0.0", "Real utilization": "43%"}},
		{"Users", map[string]string{"User": "bob", "Real utilization": "43%"}},
		{"Devices held now", map[string]string{"Job": "88049301", "Host": "gpu-006", "GPU": "5", "Real utilization": "14%"}},
	}},
	{name: "silent host", incident: "silent host", clicks: []click{{"Hosts", "Host", map[string]string{"Cluster": "{cluster}", "Host": "{host}", "Worst board": "SILENT"}}}, stops: []stop{
		{"Worst health", map[string]string{"": "silent"}},
		{"Here / expected", map[string]string{"only here": "0", "expected": "8"}},
		{"Sources of the host", map[string]string{"Cluster": "{cluster}", "Proxy": "{host}:9401", "Up": "silent", "Age": "21 mins"}},
		{"Holders", map[string]string{"Job": "88050301", "Holds it": "no longer"}},
	}},
}

// from returns the page to which a walk leads, nil if the path is broken: at each page, the chosen values are among those that its
// variables offer.
func (f *playedFleet) from(t *testing.T, r renderer, found *findings, w walk) (*page, fleet.Incident) {
	t.Helper()
	at := place{"walk", w.name}
	var i fleet.Incident
	if w.incident != "" {
		i = f.incident(t, w.incident)
	}
	clicks := len(w.clicks)
	p, err := f.open(f.pages["kpulse-fleet.json"], f.End.Add(-time.Hour), f.End, nil)
	if w.alert != nil || i.Alert != "" {
		clicks++
		alert := f.firing(func(l map[string]string) bool {
			return w.alert == nil && l["alertname"] == i.Alert && i.Is(l) || w.alert != nil && all(w.alert, func(name, text string) bool { return l[name] == text })
		})
		if alert == nil {
			found.fail(at, "alert", "no %s%v fires for it", i.Alert, w.alert)
			return nil, i
		}
		p, err = f.follow(alert.Annotations["dashboard_url"])
	}
	if clicks > 2 {
		found.fail(at, "clicks", "%d", clicks)
	}
	for n := 0; err == nil && n < len(w.clicks); n++ {
		var link string
		if link, err = p.link(t, r, w.clicks[n], i); err == nil {
			p, err = f.follow(link)
		}
	}
	if err == nil {
		err = p.offers()
	}
	if err != nil {
		found.fail(at, "path", "%v", err)
		return nil, i
	}
	return p, i
}

// link returns the address of the link of a click, as Grafana makes it.
func (p *page) link(t *testing.T, r renderer, c click, i fleet.Incident) (string, error) {
	t.Helper()
	raw, err := rawPanels()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(p.Panels, func(of panel) bool { return of.Title == c.panel })
	if at < 0 {
		return "", fmt.Errorf("%s has no %q", p.UID, c.panel)
	}
	one, err := p.rendering(p.Panels[at], raw[place{p.UID, c.panel}], "")
	if err != nil {
		return "", err
	}
	looks, _ := r.render(t, []rendering{one})
	l, links := &looks[0], []string(nil)
	if row := l.row(stop{c.panel, c.row}.of(i).cells); c.column == "" && len(l.Values) == 1 {
		links = l.Values[0].Links
	} else if of := l.field(c.column); of != nil && row >= 0 {
		links = of.Links[row]
	}
	if len(links) != 1 {
		return "", fmt.Errorf("%q of %s has the links %q in a row with %q: %.800s", c.column, c.panel, links, c.row, l)
	}
	chosen := url.Values{}
	for name, values := range p.chosen {
		chosen["var-"+name] = values
	}
	return strings.ReplaceAll(links[0], "${__all_variables}", chosen.Encode()), nil
}

// checkIncidents takes all walks, and checks their stops: the panels that answer.
func (f *playedFleet) checkIncidents(t *testing.T, r renderer) {
	raw, err := rawPanels()
	if err != nil {
		t.Fatal(err)
	}
	found := &findings{}
	var panels []rendering
	var wanted []stop
	var types []string
	for _, w := range walks {
		p, i := f.from(t, r, found, w)
		if p == nil {
			continue
		}
		for _, s := range w.stops {
			at := slices.IndexFunc(p.Panels, func(of panel) bool { return of.Title == s.panel })
			if at < 0 {
				found.fail(place{"walk", w.name}, "panel", "%s has no %q", p.UID, s.panel)
				continue
			}
			one, err := p.rendering(p.Panels[at], raw[place{p.UID, s.panel}], w.name)
			if err != nil {
				found.fail(place{"walk", w.name}, "error", "%v", err)
				continue
			}
			panels, wanted, types = append(panels, one), append(wanted, s.of(i)), append(types, p.Panels[at].Type)
		}
	}
	for _, i := range f.Incidents {
		if i.Alert != "" && !slices.ContainsFunc(walks, func(w walk) bool { return w.incident == i.Name }) {
			found.fail(place{"incident", i.Name}, "walk", "there is none")
		}
	}
	looks, _ := r.render(t, panels)
	for n := range looks {
		if !looks[n].says(types[n], wanted[n].cells) {
			found.fail(panels[n].at, "answer", "for %q it does not show %q, but %.1500s", panels[n].choice, wanted[n].cells, &looks[n])
		}
	}
	f.checkHistory(t, found)
	f.checkJobs(t, r, found, raw)
	f.report(t, found)
	t.Logf("%d walks, %d panels answered", len(walks), len(looks))
}

// of returns a stop with the values of an incident in its texts.
func (s stop) of(i fleet.Incident) stop {
	has := strings.NewReplacer("{host}", i.Hostname, "{gpu}", i.GPU, "{cluster}", i.Cluster, "{job}", i.Job)
	filled := stop{s.panel, map[string]string{}}
	for name, text := range s.cells {
		filled.cells[name] = has.Replace(text)
	}
	return filled
}

// says reports whether a panel of a type shows all texts of cells: a table in one row, a chart at its end.
func (l *look) says(panelType string, cells map[string]string) bool {
	switch panelType {
	case "stat":
		return all(cells, func(name, text string) bool {
			return slices.ContainsFunc(l.Values, func(c shownCell) bool { return c.Text == text && (name == "" || strings.TrimSpace(c.Name) == name) })
		})
	case "table":
		return l.row(cells) >= 0
	}
	return all(cells, func(name, text string) bool {
		return slices.ContainsFunc(l.Fields, func(f shownField) bool {
			return strings.TrimSpace(f.Name) == name && len(f.Cells) > 0 && f.Cells[len(f.Cells)-1].Text == text
		})
	})
}

// all reports whether holds is true for all texts.
func all(cells map[string]string, holds func(name, text string) bool) bool {
	for name, text := range cells {
		if !holds(name, text) {
			return false
		}
	}
	return true
}

// row returns the first row of a table with all texts of cells, -1 for none.
func (l *look) row(cells map[string]string) int {
	for row := range l.rows() {
		if all(cells, func(name, text string) bool {
			f := l.field(name)
			return name == "#" && text == strconv.Itoa(row+1) || f != nil && f.Cells[row].Text == text
		}) {
			return row
		}
	}
	return -1
}

// rows returns the number of rows of a table.
func (l *look) rows() int {
	if len(l.Fields) == 0 {
		return 0
	}
	return len(l.Fields[0].Cells)
}

// String returns what a panel shows, abbreviated.
func (l *look) String() string {
	var text strings.Builder
	for _, c := range l.Values {
		fmt.Fprintf(&text, "%q: %q; ", c.Name, c.Text)
	}
	for _, f := range l.Fields {
		var cells []string
		for _, c := range f.Cells[max(0, len(f.Cells)-8):] {
			cells = append(cells, c.Text)
		}
		fmt.Fprintf(&text, "%q: %q; ", f.Name, cells)
	}
	return text.String()
}

// checkHistory looks for the XID of a board that has since been reset and is healthy: Health
// and the board's own page show it over every range.
func (f *playedFleet) checkHistory(t *testing.T, found *findings) {
	t.Helper()
	i := f.incident(t, "reset")
	for length, long := range lengths {
		for _, name := range []string{"kpulse-health.json", "kpulse-gpu.json"} {
			p, err := f.open(f.pages[name], f.End.Add(-long), f.End, map[string][]string{"cluster": {i.Cluster}, "hostname": {i.Hostname}, "gpu": {i.UUID}})
			if err != nil {
				t.Fatal(name, err)
			}
			told := false
			for _, of := range p.Panels {
				for _, target := range of.Targets {
					r, err := f.ask(p.question(of, target))
					told = told || err == nil && target.Instant && slices.ContainsFunc(r.series, func(s series) bool { return s.Metric["xid"] == "48" })
				}
			}
			if !told {
				found.fail(place{p.UID, "XIDs"}, "history", "over %s nothing shows XID 48", length)
			}
		}
	}
}

// ofJobs are what the Job page shows of the holder of an incident's board, over the hour of the incidents and some time after
// it, in which the fleet is silent as if all jobs had ended.
var ofJobs = []struct {
	incident, job string
	after         time.Duration
	stops         []stop
}{
	{"hung job", "88049300", 30 * time.Minute, []stop{
		{"State", map[string]string{"": "ended"}},
		{"GPUs and hosts", map[string]string{"GPUs": "16", "hosts": "2"}},
		{"Whose", map[string]string{"Job": "88049300", "User": "ada", "Account": "physics"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}", "GPU-hours": "1.0"}},
	}},
	{"straggler", "88049301", 0, []stop{
		{"State", map[string]string{"": "holds GPUs"}},
		{"What to change", map[string]string{"What": "stragglers"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}", "Mostly": "busy_low_sm_use", "Worst health": "OK"}},
	}},
	{"hot", "team-nlp/PyTorchJob/nlp-3", 0, []stop{
		{"What to change", map[string]string{"What": "io_or_data_loading"}},
		{"CPU of its hosts", map[string]string{"gpu-003": "97%"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}", "Worst health": "HOT"}},
	}},
	{"GPU gone", "team-vision/PyTorchJob/vision-1", 0, []stop{
		{"GPUs and hosts", map[string]string{"GPUs": "8", "hosts": "1"}},
		{"Whose", map[string]string{"Namespace": "team-vision", "Kind": "PyTorchJob", "Workload": "vision-1"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}", "Mostly": "tensor_heavy_compute", "Worst health": "GONE"}},
	}},
}

// checkJobs opens the Job page of each of ofJobs: that of a job that ended lacks only what is known of now.
func (f *playedFleet) checkJobs(t *testing.T, r renderer, found *findings, raw map[place]json.RawMessage) {
	t.Helper()
	for _, of := range ofJobs {
		i := f.incident(t, of.incident)
		p, err := f.open(f.pages["kpulse-job.json"], f.Start, f.End.Add(of.after), map[string][]string{"cluster": {i.Cluster}, "job": {of.job}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.offers(); err != nil {
			found.fail(place{p.UID, "Job"}, "choice", "%v", err)
		}
		var panels []rendering
		types := map[string]string{}
		for _, shown := range p.Panels {
			if shown.Type == "row" {
				continue
			}
			one, err := p.rendering(shown, raw[place{p.UID, shown.Title}], of.job)
			if err != nil {
				t.Fatal(shown.Title, err)
			}
			empty := !slices.ContainsFunc(one.Results, func(r shownResult) bool { return len(r.Series) > 0 })
			if of.after > 0 && excused[p.UID+"/"+shown.Title].why == "" && empty != (shown.Title == "Alerts") {
				found.fail(one.at, "ended", "it is empty: %v", empty)
			}
			panels, types[shown.Title] = append(panels, one), shown.Type
		}
		looks, _ := r.render(t, panels)
		for _, s := range of.stops {
			n := slices.IndexFunc(panels, func(r rendering) bool { return r.at.panel == s.panel })
			if want := s.of(i).cells; !looks[n].says(types[s.panel], want) {
				found.fail(panels[n].at, "job", "of %s it does not show %q, but %.1500s", of.job, want, &looks[n])
			}
		}
	}
}

// firing returns the first alert whose labels are wanted, nil for none.
func (f *playedFleet) firing(wanted func(map[string]string) bool) *fleet.Alert {
	if at := slices.IndexFunc(f.Alerts, func(a fleet.Alert) bool { return wanted(a.Labels) }); at >= 0 {
		return &f.Alerts[at]
	}
	return nil
}

// follow opens the page that a link of an alert leads to, over the hour before the end.
func (f *playedFleet) follow(link string) (*page, error) {
	if link == "" {
		return nil, fmt.Errorf("it has no dashboard_url")
	}
	to, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	_, uid, found := strings.Cut(to.Path, "/d/")
	uid, _, _ = strings.Cut(uid, "/")
	for _, d := range f.pages {
		if !found || d.UID != uid {
			continue
		}
		chosen := map[string][]string{}
		for name, values := range to.Query() {
			v, is := strings.CutPrefix(name, "var-")
			if !is {
				continue
			}
			if !slices.ContainsFunc(d.Templating.List, func(known variable) bool { return known.Name == v }) {
				return nil, fmt.Errorf("%s has no variable %s", uid, v)
			}
			if !slices.ContainsFunc(values, isNone) {
				chosen[v] = values
			}
		}
		return f.open(d, f.End.Add(-time.Hour), f.End, chosen)
	}
	return nil, fmt.Errorf("%s leads to no page", link)
}

// isNone reports whether a value in a link is empty, as for a missing label, or an unresolved
// variable of the page.
func isNone(value string) bool { return value == "" || strings.HasPrefix(value, "$") }

// offers returns an error unless the chosen values are among the values of the page's variables.
func (p *page) offers() error {
	for name, chosen := range p.chosen {
		for _, value := range chosen {
			if !slices.Contains(p.values[name], value) {
				return fmt.Errorf("%s of %s has no %q among %d", name, p.UID, value, len(p.values[name]))
			}
		}
	}
	return nil
}
