package mixin_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/mixin/backfill"
)

// checkIncidents goes the way of whoever is paged: from the alert by the link in its
// annotation to a page, whose variables name what went wrong, and whose panels show it.
func (f *playedFleet) checkIncidents(t *testing.T) {
	found := &findings{}
	stops := 0
	for _, i := range f.Incidents {
		if i.Alert == "" {
			continue
		}
		at := place{"incident", i.Name}
		alert := f.alertOf(i)
		if alert == nil {
			found.fail(at, "alert", "no %s fires of it", i.Alert)
			continue
		}
		stops++
		p, err := f.follow(alert.Annotations["dashboard_url"])
		if err != nil {
			found.fail(at, "link", "%s: %v", i.Alert, err)
			continue
		}
		stops++
		if err := p.offers(); err != nil {
			found.fail(at, "variable", "%v", err)
		}
		shown, err := p.shows(i)
		if err != nil {
			found.fail(at, "error", "%s: %v", p.UID, err)
		} else if len(shown) == 0 {
			found.fail(at, "panel", "no panel of %s with %v has it", p.UID, p.chosen)
		}
		stops++
		t.Logf("%s: %s leads to %s with %v, where it is in %q", i.Name, i.Alert, p.UID, p.chosen, shown)
	}
	f.checkHistory(t, found)
	f.report(t, found)
	t.Logf("%d stops", stops)
}

// checkHistory looks for the XID of a board that was reset since, and is well: it is among
// those of all boards, and of its own page, over every range.
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
				found.fail(place{p.UID, "XIDs"}, "history", "over %s nothing tells of XID 48", length)
			}
		}
	}
}

// alertOf returns the alert that tells of an incident, nil for none.
func (f *playedFleet) alertOf(i backfill.Incident) *backfill.Alert {
	at := slices.IndexFunc(f.Alerts, func(a backfill.Alert) bool {
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

// isNone reports whether a value of a link is none: a label that there is not, or what a page
// had in a variable.
func isNone(value string) bool { return value == "" || strings.HasPrefix(value, "$") }

// offers returns an error unless what is chosen is among the choices of a page.
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

// shows returns the titles of the panels of a page that say of an incident how it is now.
func (p *page) shows(i backfill.Incident) (titles []string, err error) {
	for _, of := range p.Panels {
		for _, target := range of.Targets {
			if !target.Instant {
				continue
			}
			r, err := p.asker.ask(p.question(of, target))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.Title, err)
			}
			if slices.ContainsFunc(r.series, func(s series) bool { return i.Is(s.Metric) }) && !slices.Contains(titles, of.Title) {
				titles = append(titles, of.Title)
			}
		}
	}
	return titles, nil
}
