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

// layers are rows "layer: what it may import", packages below internal. A layer is a package with all below it, which
// may import each other; sources have rows of their own, for they must not know each other. All may import diag,
// to show text to people.
const layers = `
exposition:
raw: exposition
canonical:
diag:
source: raw exposition canonical
source/exporter: raw exposition canonical source
source/dcgm: raw exposition canonical source
source/nvml: raw exposition canonical source source/dcgm
source/recording: raw exposition canonical source source/dcgm/dmon
kernellog: canonical
host: canonical
selection: canonical
holders: canonical
translate: raw canonical exposition
compute: canonical
pipeline: raw canonical source translate compute
rules: canonical exposition
expose: canonical exposition
export: canonical exposition
tui: canonical exposition
settings: canonical compute translate source holders source/exporter source/dcgm source/nvml source/recording expose export pipeline rules tui selection kernellog host
checks: everything
app: everything
e2e: everything
`

// mayImport returns the longest row of layers that a package is in, and what it may import.
func mayImport(pkg string) (layer string, allowed []string) {
	for row := range strings.Lines(strings.TrimSpace(layers)) {
		name, imports, _ := strings.Cut(strings.TrimSpace(row), ":")
		if within(pkg, name) && len(name) > len(layer) {
			layer, allowed = name, strings.Fields(imports)
		}
	}
	return layer, allowed
}

// within reports whether a package is another, or below it.
func within(pkg, other string) bool {
	return pkg == other || strings.HasPrefix(pkg, other+"/")
}

// standardOnly are the vocabularies: they import only Go's standard library.
var standardOnly = []string{"internal/exposition", "internal/raw", "internal/canonical"}

// pure packages must not even be able to do I/O, read a clock or log.
var pure = map[string][]string{
	"internal/compute":             {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio"},
	"internal/compute/computetest": {"internal/canonical"},
	"internal/tui/history":         {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio", "context", "sync"},
	"internal/tui/view":            {"os", "io", "net", "net/http", "log", "log/slog", "os/exec", "syscall", "bufio", "context", "sync"},
}

// running are the packages that may run commands, with all below them: a backend runs dcgmi, and the rest are for tests.
var running = []string{"internal/source/dcgm", "internal/source/nvml/nvmltest", "internal/e2e"}

func TestImportsFollowTheLayers(t *testing.T) {
	for pkg, imports := range goList(t) {
		name, inside := strings.CutPrefix(pkg, "internal/")
		if !inside {
			continue // cmd and the generators of rules
		}
		layer, allowed := mayImport(name)
		if layer == "" {
			t.Errorf("%s is in no layer: add a row", pkg)
		}
		for _, imp := range imports {
			own, ours := strings.CutPrefix(imp, module+"internal/")
			switch {
			case ours && !within(own, layer) && own != "diag" && !slices.Contains(allowed, own) && !slices.Contains(allowed, "everything"):
				t.Errorf("%s imports %s; %s may import %v", pkg, own, layer, allowed)
			case !ours && slices.Contains(standardOnly, pkg) && strings.Contains(strings.Split(imp, "/")[0], "."):
				t.Errorf("%s imports %s; it may import the standard library only", pkg, imp)
			case imp == "os/exec" && !slices.ContainsFunc(running, func(layer string) bool { return within(pkg, layer) }):
				t.Errorf("%s imports os/exec; only %v may", pkg, running)
			case slices.Contains(pure[pkg], imp):
				t.Errorf("%s imports %s; it must stay pure", pkg, imp)
			case ours && own == "app" && pkg != "internal/e2e" && !strings.HasPrefix(pkg, "internal/e2e/"):
				t.Errorf("%s imports app, which only cmd and the tests of the whole binary may", pkg)
			}
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
