package app

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// TestNeededIsWhatTheRulesRead: every family of ours that a rule file reads is among those
// that --series.exclude warns of, and each of these is a family.
func TestNeededIsWhatTheRulesRead(t *testing.T) {
	files, err := filepath.Glob("../../rules/kpulse-*.rules.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	known := map[string]bool{}
	for _, s := range expose.SeriesTable() {
		known[s.Name] = true
	}
	seen := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`[\w:]+`).FindAllString(string(body), -1) {
			if !known[name] {
				continue
			}
			if seen++; needed[name] == "" {
				t.Errorf("%s reads %s, and nobody is warned where it is left out", file, name)
			}
		}
	}
	for name := range needed {
		if !known[name] {
			t.Errorf("%s is no family", name)
		}
	}
	if seen < 20 {
		t.Errorf("the rules read %d families", seen)
	}
}
