package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inBubble is the reason for functions outside a synctest.Test that sleep on its clock.
const inBubble = "called in a bubble of synctest"

// sleeps are the functions in tests that may sleep other than to poll, by file and name, and why.
// On a busy machine, a sleep instead of a wait is too short.
var sleeps = map[string]string{
	"internal/app/day_test.go live":                                            inBubble,
	"internal/holders/completer_test.go TestCompleterKeepsAPodOfAnotherSource": inBubble,
	"internal/holders/completer_test.go TestCompletersShareLookUps":            inBubble,
	"internal/holders/resolver_test.go TestResolverForgetsPodsThatWent":        inBubble,
	"internal/holders/resolver_test.go TestResolverIsBounded":                  inBubble,
	"internal/holders/resolver_test.go TestResolverSparesAServerThatFails":     inBubble,
	"internal/pipeline/shared_test.go meet":                                    inBubble,
	"internal/pipeline/observer_test.go Observe":                               inBubble,
	"internal/source/dcgm/noise_test.go TestNoise":                             inBubble,
	"internal/source/dcgm/receiver_test.go Read":                               inBubble,
	"internal/source/dcgm/receiver_test.go TestReceiver":                       inBubble,
	"internal/source/dcgm/receiver_test.go TestReceiverTellsOfASlowChild":      inBubble,
	"internal/source/nvml/machine_test.go counters":                            inBubble,
	"internal/source/replay/controls_test.go after":                            inBubble,

	"internal/e2e/discovery_many_test.go startFleet":                    "an exporter takes so long to answer",
	"internal/e2e/upstream_test.go":                                     "an exporter takes so long to answer",
	"internal/source/exporter/web_test.go TestReadFillsTheBatch":        "an exporter takes so long to answer",
	"internal/tui/client/lead_test.go Step":                             "a step takes so long",
	"internal/e2e/slow_clients_test.go TestSlowClientIsCut":             "a client reads so slowly",
	"internal/e2e/slow_clients_test.go TestClientAboveTheLimitIsNotCut": "a client reads so slowly",
	"internal/pipeline/pipeline_test.go TestEverythingAtOnce":           "a client asks so often",
	"internal/source/exporter/close_test.go TestCloseRacesRead":         "Close meets Read at another point in each round",

	"internal/e2e/dashboard_replay_test.go TestDashboardReplays": "a pause lasts longer than a stream may be silent, and nothing happens",
	"internal/e2e/exporters_test.go TestVirtualGPUs":             "the clock goes on between two readings",
	"internal/source/nvml/nvmltest/gpm_test.go TestGPM":          "the clock goes on between two samples",
	"internal/source/nvml/nvmltest/library_test.go TestMIG":      "the clock goes on between two samples",
	"internal/e2e/targets_terminal_linux_test.go startTerminal":  "costs are measured over a span",
	"internal/e2e/targets_terminal_linux_test.go hourRSS":        "costs are measured over a span",
}

// TestNoTestSleepsToWait: tests poll, or use the clock of synctest.
func TestNoTestSleepsToWait(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			where := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if f, ok := decl.(*ast.FuncDecl); ok {
				where += " " + f.Name.Name
			}
			if sleepsToWait(decl) {
				found[where] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range slices.Sorted(maps.Keys(found)) {
		if sleeps[where] == "" {
			t.Errorf("%s sleeps: poll in a for clause, use testing/synctest, or say in the table why it may", where)
		}
	}
	for where := range sleeps {
		if !found[where] {
			t.Errorf("the table has a row for %s, which does not sleep", where)
		}
	}
}

// sleepsToWait reports whether a declaration calls time.Sleep outside synctest, other than in a for
// clause, or as the only statement of a loop with a condition.
func sleepsToWait(decl ast.Decl) bool {
	polls, sleeps := map[ast.Node]bool{}, 0
	bubble := false
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			waits := []ast.Stmt{n.Post}
			if n.Cond != nil && len(n.Body.List) == 1 {
				waits = append(waits, n.Body.List...)
			}
			for _, wait := range waits {
				if call, ok := wait.(*ast.ExprStmt); ok {
					polls[call.X] = true
				}
			}
		case *ast.CallExpr:
			switch callee(n) {
			case "time.Sleep":
				if !polls[n] {
					sleeps++
				}
			case "synctest.Test":
				bubble = true
			}
		}
		return true
	})
	return sleeps > 0 && !bubble
}

// callee returns the name of a called function, as package.Function.
func callee(call *ast.CallExpr) string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + s.Sel.Name
}
