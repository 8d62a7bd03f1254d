package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dialectCaptures hold one small body of each dialect; they are translate's.
const dialectCaptures = "../../internal/translate/testdata/*.prom"

// changing are the series that differ from one run to the next.
var changing = regexp.MustCompile(`(?m)^kpulse_(source_read_duration_seconds|source_last_read_timestamp_seconds|build_info)\{.*\n`)

// TestGoldenExpositions compares our part of the whole program's answer, dialect
// by dialect, with what stands in testdata/golden (rewritten by -update). It shows
// a change of names, labels, order or units to whoever reads the diff; that the
// values are right is for the tests of the layers and for the reference.
func TestGoldenExpositions(t *testing.T) {
	files, err := filepath.Glob(dialectCaptures)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d captures (%v)", len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := startProgram(t, "--passthrough=off", "--node-name=golden")
		answer, status := p.scrape(t, body)
		if status != 200 {
			t.Errorf("%s: %d %s", file, status, answer)
			continue
		}
		if err := checkExposition(answer); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		got := changing.ReplaceAllString(string(answer), "")
		got = regexp.MustCompile(`source="[^"]*"`).ReplaceAllString(got, `source="exporter"`)
		compareGolden(t, strings.TrimSuffix(filepath.Base(file), ".prom")+".golden", got)
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wanted, gotten := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range wanted {
		if i >= len(gotten) || wanted[i] != gotten[i] {
			t.Errorf("%s differs from line %d on:\nwant %s\ngot  %s\n(-update rewrites it)", path, i+1, wanted[i], strings.Join(gotten[min(i, len(gotten)):min(i+1, len(gotten))], ""))
			return
		}
	}
	if len(gotten) > len(wanted) {
		t.Errorf("%s lacks what comes from line %d on: %s", path, len(wanted)+1, gotten[len(wanted)])
	}
}
