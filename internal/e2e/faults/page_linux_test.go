package faults

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/slow"
)

var update = flag.Bool("update", false, "rewrite testdata/FAULTS.md")

const pageFile = "../../../testdata/FAULTS.md"

// pageHead describes what holds for all rows.
const pageHead = `# The fault suite

` + "`make faults`" + ` inflicts %d of these %d faults, those of the suite, on the program, as a child process with the race
detector. The other rows name the tests that cover them. ` + "`go test ./internal/e2e/faults -update`" + ` writes this page from that package's tables.

Each test of the suite has the same steps. The program serves a reading of 40 °C. The fault begins, the source reports 41 °C if it
reports anything, and the program is scraped several times. Then the fault ends, and the source reports 42 °C. What the program is
started with, such as a limit, does not change. The suite checks for every row:

- Each scrape has the status in the table, and no scrape serves a reading from before the fault.
- Prometheus' parser accepts each page with status 200. A failure is one line with cause and remedy, without series of a GPU; it
  is logged once and shown on the landing page.
- ` + "`/-/healthy`" + ` answers 200 while the fault lasts.
- Afterwards 42 °C is served, ` + "`/-/ready`" + ` says ready, and the landing page says up, unless the program is started with the
  fault and never has a reading.
- Afterwards there are no more goroutines and open descriptors than before. After a few more scrapes, at most 2 MiB more memory is
  in use than before. Three rows with many large answers at a time may keep 10 MiB of buffers; their fault is repeated until
  a repetition adds at most 2 MiB.
- The program exits with status 0 on SIGTERM, and its log has no panic and no data race.

` + "`make soak`" + ` inflicts the faults that a running program can meet on one program, for hours, while fleets change and
workloads come and go: after a quarter of that time, its use of goroutines, descriptors and memory must not grow.

URL is the source's, ADDRESS its host and port, PAST and FUTURE are timestamps, and 1×N is a count that rises by one with each scrape.
`

// writePage returns the page of the tables.
func writePage(all []group) string {
	var rows strings.Builder
	n, held := 0, 0
	for _, g := range all {
		fmt.Fprintf(&rows, "\n## %s\n\n%s\n\n| fault | the scraper sees | metrics, log and landing page | covered by |\n|---|---|---|---|\n", strings.ToUpper(g.name[:1])+g.name[1:], g.about)
		for _, f := range g.faults {
			if n++; f.heldBy == "" {
				held++
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", escape(f.does), f.scraper(), f.pages(), cmp.Or(code(f.heldBy), "the suite"))
		}
	}
	return fmt.Sprintf(pageHead, held, n) + rows.String()
}

// scraper describes what a scraper sees of f.
func (f fault) scraper() string {
	if f.heldBy != "" {
		return escape(f.words)
	}
	said := fmt.Sprint(cmp.Or(f.seen.status, http.StatusOK))
	if f.exit != 0 {
		said = fmt.Sprintf("the program does not start: exit %d", f.exit)
	}
	if says := code(f.seen.says...); says != "" {
		said += ": " + says
	}
	for _, a := range f.asks {
		said += "; " + code(a.shown()) + ": " + a.status
	}
	if f.words != "" {
		said += "; " + f.words
	}
	if len(f.seen.lacks) > 0 {
		said += "; without " + code(f.seen.lacks...)
	}
	return said
}

// pages describes what other pages show of f.
func (f fault) pages() string {
	var parts []string
	if f.seen.kind != "" {
		parts = append(parts, "each failure counts as "+code(string(f.seen.kind)))
	}
	for _, p := range []struct {
		where string
		texts []string
	}{{"metrics", f.seen.metrics}, {"log", f.seen.log}, {"page", f.seen.page}} {
		if len(p.texts) > 0 {
			parts = append(parts, p.where+": "+code(p.texts...))
		}
	}
	if len(f.seen.rises) > 0 {
		parts = append(parts, "rises above 0: "+code(f.seen.rises...))
	}
	return strings.Join(parts, "; ")
}

// code formats texts as code in a table.
func code(texts ...string) string {
	var quoted []string
	for _, text := range texts {
		if text != "" && text != "URL" {
			quoted = append(quoted, "`"+strings.NewReplacer("|", `\|`, "`", "'").Replace(printable(text))+"`")
		}
	}
	return strings.Join(quoted, ", ")
}

// printable returns text without line breaks, and escapes unprintable characters as Go does.
func printable(text string) string {
	quoted := strconv.Quote(strings.ReplaceAll(text, "\n", ""))
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

func escape(text string) string { return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text) }

// TestPage checks testdata/FAULTS.md against the tables.
func TestPage(t *testing.T) {
	want := writePage(groups())
	if *update {
		if err := os.WriteFile(pageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(pageFile); err != nil || string(got) != want {
		t.Errorf("%s differs from the tables (%v); run go test ./internal/e2e/faults -run TestPage -update", pageFile, err)
	}
}

// TestTables: each row has a unique name and says what is seen, or names an existing test.
func TestTables(t *testing.T) {
	tests := map[string]map[string]bool{}
	for _, g := range groups() {
		names := map[string]bool{}
		for _, f := range g.faults {
			if names[f.does] || f.does == "" {
				t.Errorf("%s: %q is a duplicate or empty", g.name, f.does)
			}
			names[f.does] = true
			if f.heldBy == "" {
				if len(f.seen.says)+len(f.seen.page)+len(f.seen.log)+len(f.seen.metrics) == 0 {
					t.Errorf("%s: %q does not say what is seen", g.name, f.does)
				}
				continue
			}
			dir, test, _ := strings.Cut(f.heldBy, ".")
			if tests[dir] == nil {
				tests[dir] = heldIn(t, dir)
			}
			if !tests[dir][test] || f.words == "" {
				t.Errorf("%s: %q is covered by %s, which is not a test in internal/%s, or does not say what is seen", g.name, f.does, test, dir)
			}
			if alone := (fault{does: f.does, heldBy: f.heldBy, words: f.words}); !reflect.DeepEqual(f, alone) {
				t.Errorf("%s: %q is covered by %s, and has fields that nothing reads", g.name, f.does, test)
			}
		}
	}
}

// heldIn returns the names of the tests in a folder below internal, scripts included.
func heldIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range slow.TestsOf(t, "../../"+dir) {
		found[name] = true
	}
	scripts, _ := filepath.Glob("../../" + dir + "/testdata/script/*.txtar")
	for _, script := range scripts {
		found["TestScripts/"+strings.TrimSuffix(filepath.Base(script), ".txtar")] = true
	}
	return found
}
