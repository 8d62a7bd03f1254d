package dcgm

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestFieldsAreSound(t *testing.T) {
	family := regexp.MustCompile(`^DCGM_FI_(DEV|PROF)_[A-Z0-9_]+$`)
	ids, columns, families := map[int]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range Fields {
		if ids[f.ID] && !f.Foreign() || columns[f.Column] || families[f.Family] {
			t.Errorf("%d %s %s: twice", f.ID, f.Column, f.Family)
		}
		ids[f.ID], columns[f.Column], families[f.Family] = true, true, true
		// Fields that DCGM lacks must not look like DCGM's.
		if dcgms := family.MatchString(f.Family); dcgms == f.Foreign() || f.Foreign() && f.Column != f.Family {
			t.Errorf("%s has number %d", f.Family, f.ID)
		}
		if f.Type != gauge && f.Type != counter {
			t.Errorf("%s: TYPE %q", f.Family, f.Type)
		}
		// DCGM numbers the profiling module's fields from 1001 to 1199.
		prof := f.ID > 1000 && f.ID < 1200
		if (f.Stream == ProfilingStream) != prof || strings.HasPrefix(f.Family, "DCGM_FI_PROF_") != prof {
			t.Errorf("%d %s is in the wrong stream", f.ID, f.Family)
		}
		if f.Rate != (prof || f.Column == "NBWLT") || f.Multiplexed && !prof {
			t.Errorf("%s: profiling fields and the bandwidth of NVLink are averages since the last sample, and only profiling fields are multiplexed", f.Family)
		}
		if strings.HasSuffix(f.Family, "_FLOAT") && !f.Float {
			t.Errorf("%s is a double", f.Family)
		}
		if !strings.HasSuffix(f.Help, ".") || strings.ContainsAny(f.Help, "\n\\\"") || len(f.Help) > 120 {
			t.Errorf("%s: HELP %q", f.Family, f.Help)
		}
	}
}

// defaultCounters is a scrape of dcgm-exporter 4.8 with its default counters.
const defaultCounters = "../../../testdata/captures/default-counters.prom"

// The default counters of dcgm-exporter 4.8 come first, in the order of a scrape.
func TestDefaultCountersComeFirstInTheirOrder(t *testing.T) {
	text, err := os.ReadFile(defaultCounters)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range strings.Lines(string(text)) {
		word := strings.Fields(line)
		if len(word) != 4 || word[1] != "TYPE" || word[2] == "DCGM_FI_DEV_VGPU_LICENSE_STATUS" {
			continue
		}
		i := slices.IndexFunc(Fields[:], func(f Field) bool { return f.Family == word[2] })
		if i < at {
			t.Errorf("%s is at %d, behind %d", word[2], i, at)
			continue
		}
		at = i
		if Fields[i].Type != word[3] {
			t.Errorf("%s: TYPE %s, the exporter says %s", word[2], Fields[i].Type, word[3])
		}
	}
	if at < 20 {
		t.Errorf("the capture ends at %d", at)
	}
}

// The values in a scrape have decimals if Float is set.
func TestFloatsAreWhatTheExporterWritesWithDecimals(t *testing.T) {
	text, err := os.ReadFile(defaultCounters)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range Fields {
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, f.Family+"{") {
				continue
			}
			word := strings.Fields(line)
			value := word[len(word)-1]
			if _, err := strconv.ParseFloat(value, 64); err != nil {
				continue
			}
			seen++
			if strings.Contains(value, ".") != f.Float {
				t.Errorf("%s: %s", f.Family, value)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d values seen", seen)
	}
}
