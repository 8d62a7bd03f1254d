package mixin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/mixin/fleet"
)

// stop is what a panel must show about an incident: for a table, texts of one row by column; for a chart, the last value of
// each line; for a stat, its text by "" or by its name. {x} stands for a value of the incident.
type stop struct {
	panel string
	cells map[string]string
}

// stops are what the page shows to which the alert of each incident leads, as Grafana renders it.
var stops = map[string][]stop{
	"GPU gone": {
		{"Health", map[string]string{"": "GONE"}},
		{"Holders", map[string]string{"Namespace": "team-vision", "Pod": "vision-1-worker-{gpu}", "Holds it": "no longer"}},
	},
	"XID 79": {
		{"Health", map[string]string{"": "GONE"}},
		{"Last XID", map[string]string{"": "79"}},
		{"XIDs by code", map[string]string{"XID": "79", "What happened": "The driver lost the board: it no longer answers on PCIe.", "What to do": "reboot the node", "Times": "1"}},
		{"Holders", map[string]string{"Job": "88050300", "Holds it": "no longer"}},
	},
	"NVLink down": {
		{"Health", map[string]string{"": "CRIT"}},
		{"Conditions over time", map[string]string{"nvlink_down": "raised"}},
		{"Recommended action over time", map[string]string{"reset_gpu": "yes"}},
		{"Holders", map[string]string{"Job": "88050300", "Holds it": "now"}},
	},
	"straggler": {
		{"Workload class", map[string]string{"busy_low_sm_use": "1"}},
		{"Holders", map[string]string{"Job": "88049301", "Holds it": "now"}},
	},
	"hot": {
		{"Health", map[string]string{"": "HOT"}},
		{"What holds the clocks down", map[string]string{"hw_thermal": "yes"}},
		{"Holders", map[string]string{"Namespace": "team-nlp", "Pod": "nlp-3-worker-{gpu}", "Holds it": "now"}},
	},
	"hung job": {
		{"State", map[string]string{"": "STALLED"}},
		{"GPUs and hosts", map[string]string{"GPUs": "16", "hosts": "2"}},
		{"What to change", map[string]string{"What": "stalled"}},
		{"Whose", map[string]string{"Cluster": "{cluster}", "Job": "{job}", "User": "ada", "Account": "physics", "GPUs": "16.0"}},
		{"Alerts", map[string]string{"Severity": "critical", "Alert": "KpulseJobStalled", "Job": "{job}"}},
		{"Boards of the job", map[string]string{"Host": "{host}", "GPU": "{gpu}"}},
	},
	"proxy down": {
		{"Proxies down", map[string]string{"": "1"}},
		{"Proxies and sources that are down", map[string]string{"Cluster": "west", "Proxy": "gpu-004:9401", "Scrape job": "kpulse-proxy", "Silent for": "21 mins"}},
	},
}

// walk follows the path of an operator who is paged: from the alert, by the link in its
// annotation, to a page whose variables select the faulty part. It returns that page, nil if
// the path is broken.
func (f *playedFleet) walk(found *findings, i fleet.Incident) *page {
	at := place{"incident", i.Name}
	alert := f.alertOf(i)
	if alert == nil {
		found.fail(at, "alert", "no %s fires for it", i.Alert)
		return nil
	}
	p, err := f.follow(alert.Annotations["dashboard_url"])
	if err != nil {
		found.fail(at, "link", "%s: %v", i.Alert, err)
		return nil
	}
	if err := p.offers(); err != nil {
		found.fail(at, "variable", "%v", err)
	}
	return p
}

// checkIncidents walks to the page of each incident, and checks its stops there: the panels that show what is wrong.
func (f *playedFleet) checkIncidents(t *testing.T, r renderer) {
	raw, err := rawPanels()
	if err != nil {
		t.Fatal(err)
	}
	found := &findings{}
	var panels []rendering
	var wanted []stop
	var types []string
	for _, i := range f.Incidents {
		if i.Alert == "" {
			continue
		}
		p := f.walk(found, i)
		if p == nil {
			continue
		}
		if len(stops[i.Name]) == 0 {
			found.fail(place{"incident", i.Name}, "answer", "it has no stops")
		}
		for _, s := range stops[i.Name] {
			at := slices.IndexFunc(p.Panels, func(of panel) bool { return of.Title == s.panel })
			if at < 0 {
				found.fail(place{"incident", i.Name}, "panel", "%s has no %q", p.UID, s.panel)
				continue
			}
			one, err := p.rendering(p.Panels[at], raw[place{p.UID, s.panel}], i.Name)
			if err != nil {
				found.fail(place{"incident", i.Name}, "error", "%v", err)
				continue
			}
			panels, wanted, types = append(panels, one), append(wanted, s.of(i)), append(types, p.Panels[at].Type)
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
	t.Logf("%d panels answered", len(looks))
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
		for row := range l.rows() {
			if all(cells, func(name, text string) bool { f := l.field(name); return f != nil && f.Cells[row].Text == text }) {
				return true
			}
		}
		return false
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

// alertOf returns the alert for an incident, nil for none.
func (f *playedFleet) alertOf(i fleet.Incident) *fleet.Alert {
	at := slices.IndexFunc(f.Alerts, func(a fleet.Alert) bool {
		return a.Labels["alertname"] == i.Alert && i.Is(a.Labels)
	})
	if at < 0 {
		return nil
	}
	return &f.Alerts[at]
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
