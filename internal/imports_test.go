// Package internal_test checks the direction of imports between the layers.
package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kpulse/kpulse-proxy/"

// mayImport lists, for each package, the packages of this module that it may import.
// CONTRIBUTING.md has the same table. Every package must be listed.
var mayImport = map[string][]string{
	"internal/exposition":                 {},
	"internal/raw":                        {"internal/exposition"},
	"internal/raw/rawtest":                {},
	"internal/canonical":                  {},
	"internal/source":                     {"internal/raw"},
	"internal/source/exporter":            {"internal/raw", "internal/source"},
	"internal/itself":                     {},
	"internal/jobinfo":                    {"internal/canonical"},
	"internal/source/dcgm":                {"internal/canonical", "internal/exposition", "internal/raw"},
	"internal/selection":                  {"internal/canonical"},
	"internal/source/dcgmi":               {"internal/raw", "internal/source", "internal/source/dcgm/dmon", "internal/source/dcgm"},
	"internal/source/dcgm/dmon":           {"internal/raw"},
	"internal/host":                       {"internal/canonical"},
	"internal/kernellog":                  {"internal/canonical"},
	"internal/kube":                       {"internal/canonical"},
	"internal/kube/kubelettest":           {},
	"internal/kube/kubetest":              {},
	"internal/source/dcgm/dcgmtest":       {},
	"internal/source/dcgm/dcgmtest/fake":  {"internal/source/dcgm/dcgmtest"},
	"internal/source/dcgm/dcgmtest/dcgmi": {"internal/source/dcgm/dcgmtest/fake"},
	"internal/source/nvml":                {"internal/raw", "internal/source", "internal/source/dcgm"},
	"internal/source/nvml/nvmltest":       {},
	"internal/source/recording":           {"internal/raw", "internal/source"},
	"internal/source/replay":              {"internal/raw", "internal/source", "internal/source/recording", "internal/source/dcgm/dmon", "internal/exposition"},
	"internal/translate":                  {"internal/raw", "internal/canonical", "internal/exposition"},
	"internal/compute":                    {"internal/canonical"},
	"internal/compute/computetest":        {"internal/canonical"},
	"internal/pipeline":                   {"internal/raw", "internal/canonical", "internal/source", "internal/translate", "internal/compute"},
	"internal/diag":                       {},
	"internal/counters":                   {"internal/canonical", "internal/source/dcgm", "internal/translate"},
	"internal/rules":                      {"internal/canonical"},
	"internal/expose":                     {"internal/canonical", "internal/exposition"},
	"internal/expose/exposetest":          {"internal/canonical", "internal/expose"},
	"internal/rules/engine":               {"internal/rules", "internal/canonical", "internal/exposition"},
	"internal/export":                     {"internal/canonical", "internal/exposition"},
	"internal/tui":                        {"internal/tui/client", "internal/tui/history", "internal/tui/screen", "internal/tui/svg", "internal/tui/view", "internal/canonical"},
	"internal/tui/client":                 {"internal/canonical", "internal/exposition"},
	"internal/tui/history":                {"internal/canonical", "internal/tui/client"},
	"internal/tui/view":                   {"internal/canonical", "internal/tui/client", "internal/tui/history", "internal/tui/screen"},
	"internal/tui/screen":                 {},
	"internal/tui/screenshots":            {"internal/tui/svg"},
	"internal/tui/svg":                    {},
	"internal/config":                     {"internal/canonical", "internal/compute", "internal/translate", "internal/source", "internal/kube"},
	"internal/mutants":                    {},
	"internal/release":                    {},
	"internal/slow":                       {},
	"internal":                            {},
	"rules":                               {},
	"rules/generate":                      {"internal/canonical", "internal/compute", "internal/translate"},
	"cmd/kpulse-proxy":                    {"internal/app"},
	"internal/app":                        {"internal/canonical", "internal/source/dcgm", "internal/source", "internal/source/dcgmi", "internal/selection", "internal/source/exporter", "internal/host", "internal/source/nvml", "internal/source/recording", "internal/source/replay", "internal/translate", "internal/compute", "internal/pipeline", "internal/expose", "internal/export", "internal/tui", "internal/tui/client", "internal/config", "internal/rules/engine", "internal/rules", "internal/counters", "internal/kernellog", "internal/kube", "internal/jobinfo", "internal/itself"},
	"internal/e2e":                        {},
	"internal/e2e/e2etest":                {"internal/app", "internal/e2e/environment", "internal/slow"},
	"internal/e2e/environment":            {},
	"internal/e2e/faults":                 {},
	"internal/e2e/fleet":                  {"internal/e2e/ports"},
	"internal/e2e/ports":                  {},
}

// open may be imported by all packages: every layer shows text to people.
const open = "internal/diag"

// standardOnly are the vocabularies: they import only Go's standard library.
var standardOnly = []string{"internal/exposition", "internal/raw", "internal/canonical"}

// pure packages must not even be able to do I/O, read a clock or log.
var pure = map[string][]string{
	"internal/compute":             {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio"},
	"internal/compute/computetest": {"internal/canonical"},
	"internal/tui/history":         {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio", "context", "sync"},
	"internal/tui/view":            {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio", "context", "sync"},
}

// running are the packages that may run commands: backends run others' programs, itself this
// program, and the rest are for tests and tools.
var running = []string{"internal/itself", "internal/source/dcgmi", "internal/source/dcgm/dcgmtest", "internal/source/nvml/nvmltest", "internal/tui/screenshots", "internal/mutants", "internal/release", "internal/e2e/e2etest", "internal/e2e/fleet"}

func TestImportsFollowTheLayers(t *testing.T) {
	packages := goList(t)
	for pkg := range mayImport {
		if _, ok := packages[pkg]; !ok {
			t.Errorf("the table has a row for %s, which is not a package", pkg)
		}
	}
	for pkg, imports := range packages {
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("package %s is in no layer: add it to the table here and in CONTRIBUTING.md", pkg)
			continue
		}
		for _, imp := range imports {
			own, ours := strings.CutPrefix(imp, module)
			switch {
			case ours && own != open && !slices.Contains(allowed, own):
				t.Errorf("%s imports %s; it may import %v", pkg, own, allowed)
			case !ours && slices.Contains(standardOnly, pkg) && strings.Contains(strings.Split(imp, "/")[0], "."):
				t.Errorf("%s imports %s; it may import the standard library only", pkg, imp)
			case imp == "os/exec" && !slices.Contains(running, pkg):
				t.Errorf("%s imports os/exec; only %v may", pkg, running)
			case slices.Contains(pure[pkg], imp):
				t.Errorf("%s imports %s; it must stay pure", pkg, imp)
			}
		}
	}
}

// quoted matches a name in a table of CONTRIBUTING.md.
var quoted = regexp.MustCompile("`[^`]+`")

// names returns the packages in a cell of the table; /b after internal/a means internal/a/b.
func names(cell string) (packages []string) {
	for _, name := range quoted.FindAllString(cell, -1) {
		if name = strings.Trim(name, "`"); strings.HasPrefix(name, "/") && packages != nil {
			name = packages[0] + name
		}
		packages = append(packages, name)
	}
	return packages
}

// TestContributingHasTheSameTable compares the rows that list imports; rows in words mean
// everything, or no package of ours.
func TestContributingHasTheSameTable(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		packages := names(cells[0])
		for _, pkg := range packages {
			documented[pkg] = nil
		}
		for _, imported := range names(cells[2]) { // imports of the first
			if !strings.HasPrefix(imported, "x/") {
				documented[packages[0]] = append(documented[packages[0]], "internal/"+imported)
			}
		}
	}
	for pkg, allowed := range mayImport {
		got, ok := documented[pkg]
		if !ok && pkg != "internal" {
			t.Errorf("CONTRIBUTING.md has no row for %s", pkg)
		}
		if len(got) > 0 && !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(allowed))) {
			t.Errorf("%s may import %v, but according to CONTRIBUTING.md %v", pkg, allowed, got)
		}
	}
	for pkg := range documented {
		if _, ok := mayImport[pkg]; !ok && !strings.Contains(pkg, ".") {
			t.Errorf("CONTRIBUTING.md has a row for %s, which is not a package", pkg)
		}
	}
}

// forbidden matches texts that must not occur in a package's files, except tests and pages: the
// vendor's names above translate, and clocks in compute.
var forbidden = map[string]*regexp.Regexp{
	"compute":     regexp.MustCompile(`DCGM_|dcgm|time\.(Now|Since|Until|After|Sleep|NewTimer)`),
	"canonical":   regexp.MustCompile(`DCGM_|dcgm|time\.(Now|Since|Until|After|Sleep|NewTimer)`),
	"expose":      regexp.MustCompile(`DCGM_|dcgm`),
	"export":      regexp.MustCompile(`DCGM_|dcgm`),
	"tui/client":  regexp.MustCompile(`DCGM_|dcgm`),
	"tui/history": regexp.MustCompile(`DCGM_|dcgm|time\.(Now|Since|Until|After|Sleep|NewTimer)`),
	"tui/view":    regexp.MustCompile(`DCGM_|dcgm|time\.(Now|Since|Until|After|Sleep|NewTimer)`),
	"tui":         regexp.MustCompile(`DCGM_|dcgm`),
}

func TestLayersDoNotNameWhatTheyMustNotKnow(t *testing.T) {
	for pkg, words := range forbidden {
		files, err := filepath.Glob(pkg + "/*.*")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s (%v)", pkg, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".md") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if word := words.Find(b); word != nil {
				t.Errorf("%s contains %s", file, word)
			}
		}
	}
}

// goList returns the direct imports of every package of ours, without those of tests.
func goList(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		packages[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	if len(packages) < 8 {
		t.Fatalf("go list names %d packages: %v", len(packages), packages)
	}
	return packages
}
