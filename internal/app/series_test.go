package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/expose"
)

// TestNeededIsWhatTheRulesRead: --series.exclude warns about all of our families that a rule file
// reads, and only about existing families.
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
				t.Errorf("%s reads %s, and there is no warning if that is left out", file, name)
			}
		}
	}
	for name := range needed {
		if !known[name] {
			t.Errorf("%s is not a family", name)
		}
	}
	if seen < 20 {
		t.Errorf("the rules read %d families", seen)
	}
}

// TestExcludedAreToldOnce: one log line names all excluded families that are needed.
func TestExcludedAreToldOnce(t *testing.T) {
	for pattern, want := range map[string][]string{
		"kpulse_.+":          {"level=WARN", "kpulse_gpu_info (rules and the terminal), ", "kpulse_build_info (the alert that the proxy is down)"},
		"kpulse_gpu_fp64_.+": {},
		"none":               {"level=WARN", "leaves nothing out"},
	} {
		opts, err := parse([]string{"--series.exclude=" + pattern}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		opts.warnOfExcluded(slog.New(slog.NewTextHandler(&log, nil)))
		if lines := strings.Count(log.String(), "\n"); lines != min(len(want), 1) {
			t.Errorf("%s: %d lines:\n%s", pattern, lines, &log)
		}
		for _, text := range want {
			if !strings.Contains(log.String(), text) {
				t.Errorf("%s: %q is not logged:\n%s", pattern, text, &log)
			}
		}
		if pattern == "kpulse_.+" && strings.Count(log.String(), " (") != len(needed) {
			t.Errorf("of %d families %s", len(needed), &log)
		}
	}
}
