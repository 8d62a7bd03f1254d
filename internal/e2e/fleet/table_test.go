package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../../../"
	readme = root + "rules/README.md"
)

// TestTables checks that the tables in rules/README.md have the program's format, with a column for
// each rule group that `make fleet` measures.
func TestTables(t *testing.T) {
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(root + "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, m := range regexp.MustCompile(`(?m)^(?:EXPORTER_)?RULES := (.+)$`).FindAllStringSubmatch(string(makefile), -1) {
		for file := range strings.FieldsSeq(m[1]) {
			files = append(files, root+"rules/"+file)
		}
	}
	groups, err := groupsOf(files)
	if err != nil || len(groups) < 12 {
		t.Fatalf("the rule groups that make fleet measures: %q, %v", groups, err)
	}
	timed := evaluations
	timed.head = append(timed.head[:2:2], groups...)
	for _, measured := range []*table{{name: costs.name, head: costs.head}, &timed} {
		if err := measured.read(string(page)); err != nil {
			t.Fatal(err)
		}
		if _, _, section, _ := measured.cut(string(page)); section != "\n"+measured.String()+"\n" {
			t.Errorf("%s: the table of %s differs from the program's; run make fleet NODES=. It should be\n%s", readme, measured.name, measured)
		}
	}
}

// TestSizes: the sizes in deploy/fleet/README.md are those of the measured costs.
func TestSizes(t *testing.T) {
	page, err := os.ReadFile(root + "deploy/fleet/README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	measured := &table{name: costs.name, head: costs.head}
	if err := measured.read(string(text)); err != nil {
		t.Fatal(err)
	}
	want, err := size(measured)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, section, err := want.cut(string(page)); err != nil || section != "\n"+want.String()+"\n" {
		t.Errorf("the sizes in deploy/fleet/README.md do not follow from the costs (%v); run make fleet NODES=. They are\n%s", err, want)
	}
}

// TestMerge: a run replaces what it measured, keeps the rest, and recomputes all ratios.
func TestMerge(t *testing.T) {
	file := t.TempDir() + "/page.md"
	if err := os.WriteFile(file, []byte("before\n<!-- fleet:begin -->\n<!-- fleet:end -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form string
		live float64
	}{{"full", 300e6}, {"exporter", 200e6}, {"lean", 150e6}, {"exporter", 100e6}} {
		measured := costs
		measured.set(cost{live: c.live, resident: 2 * c.live, series: 10, bytes: 1.5}.row(10, c.form))
		if err := measured.merge(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"before", "<!-- fleet:begin -->", "", "| 10 | exporter | 10 | 0 | 100 | 1.00 × | 200 | 1.00 × | 0.00 | 1.50 | – |",
		"| 10 | lean | 10 | 0 | 150 | 1.50 × | 300 | 1.50 × | 0.00 | 1.50 | – |", "| 10 | full | 10 | 0 | 300 | 3.00 × | 600 | 3.00 × | 0.00 | 1.50 | – |", "", "<!-- fleet:end -->", "after", ""}
	lines := strings.Split(string(text), "\n")
	if got := slices.Concat(lines[:3], lines[5:]); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
}

// TestReadOfAnotherVersion: rows keep their cells when the columns of the table change.
func TestReadOfAnotherVersion(t *testing.T) {
	now := table{name: "fleet-rules", head: []string{"nodes", "scraped", "a", "new", "b"}}
	if err := now.read("<!-- fleet-rules:begin -->\n| nodes | scraped | b | gone | a |\n|--:|---|--:|--:|--:|\n| 10 | lean | 2.00 | 3.00 | 1.00 |\n<!-- fleet-rules:end -->\n"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1.00", "–", "2.00"}; len(now.rows) != 1 || !slices.Equal(now.rows[0].cells, want) {
		t.Errorf("%+v, want %q", now.rows, want)
	}
}

// TestExclusions: README.md has the measured exclusions, and the rules that lose their inputs. No
// alert loses any.
func TestExclusions(t *testing.T) {
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{withoutSeconds, withoutReadings} {
		name, pattern, _ := strings.Cut(flag, "=")
		if quoted := name + "='" + pattern + "'"; !strings.Contains(string(page), quoted) {
			t.Errorf("%s lacks %s", readme, quoted)
		}
	}
	_, costs, _ := strings.Cut(string(page), "\n- **Without the exporter's readings**")
	costs, _, _ = strings.Cut(costs, "\n- ")
	_, pattern, _ := strings.Cut(withoutReadings, "=")
	out := regexp.MustCompile("^(?:" + pattern + ")$")
	files, err := filepath.Glob(root + "rules/*.rules.yml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, root+"mixin/prometheus_alerts.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range strings.Split(string(text), "\n      - record: ") {
			record, expr, _ := strings.Cut(rule, "\n")
			for _, family := range regexp.MustCompile(`\bkpulse_gpu_\w+`).FindAllString(expr, -1) {
				if out.MatchString(family) && !strings.Contains(costs, "`"+record+"`") {
					t.Errorf("%s: %s reads %s, which is left out; %s does not say so", file, record, family, readme)
				}
			}
		}
	}
}

// TestSplit: each node gets its own lines, with their HELP and TYPE, and the lines of no node.
func TestSplit(t *testing.T) {
	const head = "# HELP a b\n# TYPE a gauge\n"
	pages := map[string]*bytes.Buffer{}
	split(head+"a{n=\"node-0001\"} 1\na{n=\"node-0002\"} 2\n# HELP c d\n# TYPE c gauge\nc 3\n# HELP e f\ne{n=\"node-0002\"} 4\n", pages)
	for node, want := range map[string]string{
		"node-0001": head + "a{n=\"node-0001\"} 1\n# HELP c d\n# TYPE c gauge\nc 3\n",
		"node-0002": head + "a{n=\"node-0002\"} 2\n# HELP e f\ne{n=\"node-0002\"} 4\n# HELP c d\n# TYPE c gauge\nc 3\n",
	} {
		if got := pages[node].String(); got != want {
			t.Errorf("%s has\n%s\nwant\n%s", node, got, want)
		}
	}
}
