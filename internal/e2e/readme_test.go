package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/app"
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/expose"
)

var update = flag.Bool("update", false, "rewrite golden files and the tables of pages")

// Pages with parts generated from the program.
const (
	readme     = root + "README.md"
	usingPage  = root + "cmd/kpulse-proxy/README.md"
	seriesPage = root + "internal/expose/SERIES.md"
)

// TestPagesListEverySeries checks the table in SERIES.md against the exposition's own.
func TestPagesListEverySeries(t *testing.T) {
	var table strings.Builder
	table.WriteString("| series | type | labels | meaning |\n|---|---|---|---|\n")
	for _, s := range expose.SeriesTable() {
		labels := ""
		if s.Labels != "" {
			labels = "`" + s.Labels + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", s.Name, s.Type, labels, s.Help)
	}
	checkTable(t, seriesPage, "series", table.String())
}

// TestPagesListWhatLeanLeavesOut checks that table against what the lean form omits.
func TestPagesListWhatLeanLeavesOut(t *testing.T) {
	var table strings.Builder
	table.WriteString("| series | left out | in its place |\n|---|---|---|\n")
	for _, row := range expose.ThinnedTable() {
		var names []string
		for _, name := range row.Families {
			names = append(names, "`"+canonical.Prefix+name+"`")
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", strings.Join(names, ", "), row.Without, row.Instead)
	}
	checkTable(t, seriesPage, "lean", table.String())
}

// TestPagesListTheConditions checks the table of conditions in SERIES.md, and the key health of the
// example of the config file, against the program's own table.
func TestPagesListTheConditions(t *testing.T) {
	table, keys := "| condition | state | raised |\n|---|---|---|\n", "\nhealth:\n"
	for _, c := range canonical.Conditions {
		word, states := c.States.Worst().String(), c.States.Worst().String()
		if milder := c.States.Mildest(); milder != c.States.Worst() {
			word, states = "default", states+", "+milder.String()
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", c.Name, states, c.When)
		keys += fmt.Sprintf("  %s: %s\n", c.Name, word)
	}
	checkTable(t, seriesPage, "conditions", table)

	const example = root + "deploy/config.example.yml"
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`\nhealth:\n(  .*\n)*`).ReplaceAllString(string(text), keys)
	if want != string(text) && !*update {
		t.Errorf("%s does not have the conditions; run go test ./internal/e2e -run %s -update", example, t.Name())
	}
	if *update {
		if err := os.WriteFile(example, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesCountTheMixin checks the numbers of alerts on the pages against the files. Each alert
// has a runbook; optional alerts are in no file.
func TestPagesCountTheMixin(t *testing.T) {
	text, err := os.ReadFile("../../mixin/prometheus_alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	on, rules := map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`- alert: "?(\w+)`).FindAllStringSubmatch(string(text), -1) {
		on[m[1]] = true
		rules++
	}
	all, err := filepath.Glob("../../mixin/runbooks/*.md")
	if err != nil || len(all)-len(on) != 4 {
		t.Errorf("%d runbooks and %d default alerts; want four more runbooks (%v)", len(all), len(on), err)
	}
	for page, want := range map[string]string{
		readme:                  fmt.Sprintf("%d alerts (four of them off by default)", len(all)),
		"../../mixin/README.md": fmt.Sprintf("%d alerts in %d rules: %d have a rule for critical and one for warning; four more are optional", len(on), rules, rules-len(on)),
	} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q (%v)", page, want, err)
		}
	}
}

// checkTable checks that a page has table between the comments name; -update rewrites it.
func checkTable(t *testing.T, page, name, table string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no %q … %q", page, begin, end)
	}
	want := before + begin + "\n" + table + "\n" + end + after
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the table of %s in %s is out of date; run go test ./internal/e2e -run %s -update", name, page, t.Name())
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestShippedCountersLackNothing: the shipped counters file lacks only fields that an older DCGM
// does not have; with its commented lines enabled, it lacks none that our scores need.
func TestShippedCountersLackNothing(t *testing.T) {
	text, err := os.ReadFile("../../deploy/dcgm-counters.csv")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) string {
		file := filepath.Join(t.TempDir(), "counters.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		if code := app.Run([]string{"check", "counters", file}, &stdout, &stderr); code != 0 {
			t.Errorf("exit %d: %s", code, &stderr)
		}
		return stderr.String()
	}
	if said := check(string(text)); strings.Count(said, "warning:") != strings.Count(said, "with DCGM 4.5 or newer") {
		t.Errorf("as it is: %s", said)
	}
	if said := check(strings.ReplaceAll(string(text), "\n# DCGM_", "\nDCGM_")); said != "" {
		t.Errorf("with all lines: %s", said)
	}
}
