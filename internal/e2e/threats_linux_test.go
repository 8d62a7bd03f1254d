package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModel: each test that the threat model of deploy/README.md names exists.
func TestThreatModel(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\nThese tests show it;")
	list, _, _ = strings.Cut(list, "\n- **")
	rows := map[string]bool{}
	for _, g := range groups() {
		for _, f := range g.faults {
			rows[g.name+": "+f.does] = true
		}
	}
	all, err := exec.Command("git", "grep", "-hoE", "^func Test[A-Za-z0-9]+", "--", "../*_test.go").Output()
	if err != nil {
		t.Skip("no git repository: ", err)
	}
	for line := range strings.Lines(string(all)) {
		rows[strings.TrimSpace(strings.TrimPrefix(line, "func "))] = true
	}
	names := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(list, -1)
	for _, name := range names[1:] { // after make faults
		if !rows[name[1]] {
			t.Errorf("deploy/README.md names %s, which is no test", name[1])
		}
	}
	if len(names) < 40 {
		t.Errorf("it names %d tests", len(names))
	}
}
