package dcgm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/raw"
)

// Each field of DCGM is in one table, with an id, a column and names of its own.
func TestOthers(t *testing.T) {
	seen := map[string]bool{}
	for i := range Fields {
		for _, word := range []string{fmt.Sprint(Fields[i].ID), Fields[i].Column, Fields[i].Family} {
			seen[word] = true
		}
	}
	n := 0
	for line := range strings.Lines(others) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		n++
		f, ok := otherOf(words[len(words)-1])
		if !ok || !f.Rate || fmt.Sprint(f.ID) != words[0] || f.Column != words[1] || f.Float != (words[2] == "double") || words[2] != "double" && words[2] != "integer" {
			t.Errorf("%q reads as %+v", line, f)
		}
		for _, word := range slices.Delete(words, 2, 3) {
			if seen[word] {
				t.Errorf("%s is there twice", word)
			}
			seen[word] = true
		}
	}
	if n < 250 {
		t.Errorf("%d fields", n)
	}
}

// byField are readings by index and device.
type byField func(field, device int) float64

func (f byField) Reading(field, device int) float64 { return f(field, device) }

func (byField) IsLost(int) bool { return true }

// A Page has fields that are not in Fields, as integers or doubles, even under two names, of
// devices with other readings: without these, a board is lost all the same.
func TestPageOfOtherFields(t *testing.T) {
	w := writer("", inventory(nil), nil)
	page, notGiven := NewPage([]Counter{
		counterOf("DCGM_FI_DEV_FAN_SPEED", "gauge", "fans", "none"), counterOf("DCGM_FI_DEV_GPU_TEMP", "gauge", "heat", "TMPTR"),
		counterOf("DCGM_FI_DEV_PSTATE", "gauge", "", "none"), counterOf("DCGM_FI_DEV_POWER_USAGE_INSTANT", "gauge", "power", "none"),
		counterOf("DCGM_FI_DEV_GPU_PSTATE", "gauge", "", "none"), counterOf("DCGM_FI_DEV_NAME", "gauge", "", "none"),
		counterOf("DCGM_FI_DEV_MIG_MODE", "gauge", "", "none"), // has no number
	}, everything)
	if want := []int{67, 150, 157, 190, 191}; !slices.Equal(page.Wants(), want) || !slices.Equal(notGiven, []string{"DCGM_FI_DEV_NAME"}) {
		t.Fatalf("wants %v and does not give %v", page.Wants(), notGiven)
	}
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, byField(func(field, device int) float64 {
		switch f := page.Field(field); {
		case f.ID == 150 && device > 0:
			return math.NaN()
		case f.ID == 150 || f.ID == 190 || f.ID == 191:
			return float64(f.ID)
		case f.ID == 157:
			return 97.5
		case f.ID == 67:
			return math.Inf(1)
		}
		return math.NaN()
	}))
	var got []string
	for line := range strings.Lines(string(b.AppendText(nil))) {
		name, _, _ := strings.Cut(line, "{")
		got = append(got, strings.TrimSpace(name+line[strings.LastIndexByte(line, ' '):]))
	}
	want := []string{"DCGM_FI_DEV_GPU_TEMP 150", "DCGM_FI_DEV_POWER_USAGE_INSTANT 97.500000", "DCGM_FI_DEV_PSTATE 190", "DCGM_FI_DEV_GPU_PSTATE 190", "DCGM_FI_DEV_FAN_SPEED 191"}
	if got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "#") }); !slices.Equal(got, want) {
		t.Errorf("serves %q, want %q", got, want)
	}
	for i := range b.Samples {
		if at := b.Samples[i].Family; b.Dict.Family(at).Name != page.Field(int(at)).Family {
			t.Errorf("family %d is called %s", at, b.Dict.Family(at).Name)
		}
	}
	if text := string(b.AppendAll(nil)); strings.Contains(text, "FAN_SPEED") || !strings.Contains(text, "gpu_lost{gpu=\"1\"") {
		t.Errorf("Fields alone give\n%s", text)
	}
}

// TestFieldGroupHoldsTheDeviceStream: dmon requests all fields of a stream as one group, which
// has at most 128 fields before DCGM 4.6 (see MaxOthers).
func TestFieldGroupHoldsTheDeviceStream(t *testing.T) {
	const maxFieldIDsPerFieldGroup = 128
	asked := MaxOthers
	for i := range Fields {
		if f := &Fields[i]; !f.Foreign() && f.Stream == DeviceStream {
			asked++
		}
	}
	if asked > maxFieldIDsPerFieldGroup {
		t.Errorf("dmon is asked for up to %d fields at once, DCGM takes %d: lower MaxOthers", asked, maxFieldIDsPerFieldGroup)
	}
}

// Of a file with more than 48 further fields, a Page has the first 48, and any name of these.
func TestPageBounds(t *testing.T) {
	lines := []Counter{counterOf("DCGM_FI_DEV_PSTATE", "gauge", "", "none")}
	for line := range strings.Lines(others) {
		if words := strings.Fields(line); words[0] != "#" && words[1] != "PSTAT" {
			lines = append(lines, counterOf(words[3], "gauge", "", "none"))
		}
	}
	page, notGiven := NewPage(append(lines, counterOf("DCGM_FI_DEV_GPU_PSTATE", "gauge", "", "none")), everything)
	if len(page.Others()) != 48 || len(page.Wants()) != 48 || len(notGiven) != len(lines)-48 || notGiven[0] != lines[48].Name {
		t.Errorf("wants %d, does not give %d", len(page.Wants()), len(notGiven))
	}
	w := writer("", inventory(nil), nil)
	w.Serve(page)
	var b raw.Batch
	w.Write(&b, noon, byField(func(field, _ int) float64 { return float64(field) }))
	if text := string(b.AppendText(nil)); strings.Count(text, "# TYPE ") != 49 || !strings.Contains(text, "DCGM_FI_DEV_GPU_PSTATE{") || !strings.Contains(text, lines[47].Name+"{") {
		t.Errorf("serves\n%s", text)
	}
}
