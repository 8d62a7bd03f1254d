package expose

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// TestSeriesTableIsTheExposition compares the table with an exposition in which
// every family has series.
func TestSeriesTableIsTheExposition(t *testing.T) {
	snap := fleet(1)
	snap.Source.Period = 1
	snap.Source.Missing = []canonical.Field{canonical.SMActive}
	body := render(good(snap))
	parse(t, body)
	table := SeriesTable()
	heads := typeLine.FindAllStringSubmatch(string(body), -1)
	if len(heads) != len(table) {
		t.Fatalf("%d families are served, %d in the table", len(heads), len(table))
	}
	for i, s := range table {
		if heads[i][1] != s.Name || heads[i][2] != string(s.Type) {
			t.Errorf("family %d is %s %s, in the table %s %s", i, heads[i][1], heads[i][2], s.Name, s.Type)
		}
		if !strings.Contains(string(body), "# HELP "+s.Name+" "+s.Help+"\n") {
			t.Errorf("the help of %s is not in the exposition", s.Name)
		}
		line := regexp.MustCompile(`(?m)^` + s.Name + `\{(.*)\} `).FindStringSubmatch(string(body))
		if line == nil {
			t.Errorf("%s has no series", s.Name)
			continue
		}
		var names []string
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line[1], -1) {
			names = append(names, label[1])
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(strings.Join(names, ","), "hostname,gpu,uuid"), ","); got != s.Labels {
			t.Errorf("%s has the labels %s, in the table %s", s.Name, got, s.Labels)
		}
	}
}

// TestMaxDevices checks the promise with devices that give everything.
func TestMaxDevices(t *testing.T) {
	for _, limit := range []int{1, 400, 1000, 5000} {
		n := MaxDevices(limit)
		if n < 1 {
			t.Fatalf("limit %d leaves %d devices", limit, n)
		}
		snap := fleet(n)
		snap.Source.Period = 1
		for f := range canonical.NumFields {
			snap.Source.Missing = append(snap.Source.Missing, f)
		}
		series := len(parse(t, render(good(snap))))
		if n > 1 && (series > limit || series < limit*6/10) {
			t.Errorf("limit %d allows %d devices, which make %d series", limit, n, series)
		}
	}
}
