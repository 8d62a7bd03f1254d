package e2e

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest"
)

// symptom is how a board falls ill and recovers: a condition, the state that it raises, and the
// DCGM field that shows it.
type symptom struct {
	condition, state string
	field            int // of DCGM; links for NVLinks that are up, which have no field per board
	well, ill        float64
	manner           manner
}

// manner is what raises a condition.
type manner int

const (
	immediate manner = iota
	rises            // above the previous value
	lasting          // the same, by more than its rate allows, remembered for longer than the thresholds say
	inARow           // three consecutive readings
	stalled          // while the GPU is busy
)

// links stands for NVLinks that are up: exporters have a row for each.
const links = -1

// counts reports whether a counter raises the condition by its rise.
func (s *symptom) counts() bool { return s.manner == rises || s.manner == lasting }

// symptoms covers all conditions except those of XIDs, one board each.
var symptoms = []symptom{
	{"row_remap_failure", "crit", 395, 0, 1, immediate},
	{"uncorrectable_remapped_rows", "crit", 393, 0, 600, immediate},
	{"pcie_replay", "warn", 202, 7, 16, lasting},
	{"gpu_temperature", "hot", 150, 60, 99, immediate},
	{"gpu_temperature", "hot", 153, 20, 0, immediate},
	{"memory_temperature", "hot", 140, 60, 99, immediate},
	{"recovery_action", "crit", 1523, 0, 1, immediate},
	{"recovery_action", "crit", 1523, 0, 2, immediate},
	{"recovery_action", "warn", 1523, 0, 3, immediate},
	{"recovery_action", "crit", 1523, 0, 4, immediate},
	{"recovery_action", "warn", 1523, 0, 5, immediate},
	{"ecc_double_bit", "crit", 311, 7, 8, rises},
	{"row_remap_pending", "warn", 396, 0, 1, immediate},
	{"retired_pages_pending", "warn", 392, 0, 1, immediate},
	{"memory_worn", "crit", 346, 0, 1, immediate},
	{"memory_worn", "crit", 1507, 0, 1, immediate},
	{"memory_worn", "warn", 389, 0, 4, immediate},
	{"thermal_slowdown", "hot", 112, 4, 0x20, inARow},
	{"thermal_slowdown", "hot", 112, 4, 0x44, inARow},
	{"power_brake", "warn", 112, 4, 0x84, inARow},
	{"nvlink_errors", "warn", 409, 7, 18, lasting},
	{"nvlink_errors", "warn", 419, 7, 18, lasting},
	{"nvlink_errors", "warn", 429, 7, 18, lasting},
	{"nvlink_errors", "warn", 439, 7, 18, lasting},
	{"nvlink_errors", "warn", 1204, 7, 18, lasting},
	{"nvlink_errors", "warn", 1205, 7, 18, lasting},
	{"nvlink_errors", "warn", 1206, 7, 18, lasting},
	{"nvlink_errors", "warn", 1207, 7, 18, lasting},
	{"nvlink_errors", "warn", 1208, 7, 18, lasting},
	{"nvlink_errors", "warn", 1209, 7, 18, lasting},
	{"nvlink_errors", "warn", 1214, 7, 18, lasting},
	{"nvlink_errors", "warn", 1219, 7, 18, lasting},
	{"nvlink_flapping", "warn", 1211, 7, 12, lasting},
	{"nvlink_down", "crit", 1212, 7, 8, rises},
	{"nvlink_down", "crit", links, 18, 17, inARow},
	{"fabric", "crit", 170, 3, 4, inARow},
	{"fabric", "crit", 174, 0b10101010, 0b10011010, inARow}, // its route is not healthy
	{"fabric", "crit", 174, 0b10101010, 0b01101010, inARow}, // an access timed out
	{"fabric", "warn", 174, 0b10101010, 0b10101001, inARow}, // its bandwidth is degraded
	{"fabric", "warn", 174, 0b10101010, 0b10100110, inARow}, // a route recovers
	{"fabric", "crit", 175, 1, 2, inARow},
	{"fabric", "warn", 175, 1, 3, inARow},
	{"fabric", "crit", 171, 0, 999, inARow},
	{"profiling_stalled", "warn", 1001, 0.5, 0, stalled},
}

// TestSymptomsAreOfAllConditions, except those of XIDs and SXIDs, and of links that lack lanes for ten minutes.
func TestSymptomsAreOfAllConditions(t *testing.T) {
	t.Parallel()
	for i := range canonical.Conditions {
		name := canonical.Conditions[i].Name
		if !strings.HasPrefix(name, "xid_") && name != "nvswitch" && name != "pcie_degraded" && !slices.ContainsFunc(symptoms, func(s symptom) bool { return s.condition == name }) {
			t.Errorf("nothing raises %s", name)
		}
	}
}

// awaitRaised polls c until the symptom's condition on board gpu is raised or no longer is.
func (s *symptom) awaitRaised(t *testing.T, c *child, gpu int, want bool) {
	t.Helper()
	raised := regexp.MustCompile(fmt.Sprintf(`(?m)^kpulse_gpu_health_condition\{.*gpu="%d".*condition="%s",state="%s"\} 1$`, gpu, s.condition, s.state))
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if status, body := page(t, c, "/metrics"); status == 200 && raised.MatchString(body) == want {
			return
		}
	}
	t.Errorf("%s by field %d to %g: raised is not %t", s.condition, s.field, s.ill, want)
}

// familyOf returns the exporter's name of a field.
func familyOf(field int) string {
	return dcgm.Fields[slices.IndexFunc(dcgm.Fields[:], func(f dcgm.Field) bool { return f.ID == field })].Family
}

// bodyInReading returns the exporter's page of all boards: n > 0 is the nth reading while they are
// ill, 0 is before and n < 0 after.
func bodyInReading(n int) []byte {
	var body strings.Builder
	for gpu, s := range symptoms {
		value := s.well
		switch {
		case n > 0 && s.counts():
			value = s.ill + float64(n)
		case n > 0:
			value = s.ill
		case n < 0 && s.counts():
			value = s.ill + 1000
		}
		if s.field == links {
			for link := range 18 {
				fmt.Fprintf(&body, "DCGM_FI_DEV_NVLINK_GET_STATE{gpu=\"%d\",UUID=\"GPU-%d\",nvlink=\"%d\"} %d\n", gpu, gpu, link, min(1, max(0, int(value)-link)))
			}
			fmt.Fprintf(&body, "DCGM_FI_DEV_POWER_USAGE{gpu=\"%d\",UUID=\"GPU-%d\"} 100\n", gpu, gpu)
			continue
		}
		fmt.Fprintf(&body, "%s{gpu=\"%d\",UUID=\"GPU-%d\"} %g\n", familyOf(s.field), gpu, gpu, value)
		if s.manner == stalled {
			fmt.Fprintf(&body, "%s{gpu=\"%d\",UUID=\"GPU-%d\"} 90\n", familyOf(203), gpu, gpu)
		}
	}
	return []byte(body.String())
}

// quickly writes a config file that forgets rises after hold and needs no time for stalls, and
// returns its flag.
func quickly(t *testing.T, hold time.Duration) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quickly.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "thresholds: {rise_hold: %s, stalled_span: 0}\n", hold), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--config.file=" + file
}

// TestConditionsOfAnExporter counts readings: the source is read only when scraped.
func TestConditionsOfAnExporter(t *testing.T) {
	t.Parallel()
	p := startProgram(t, quickly(t, time.Hour))
	check := func(when string, answer []byte, raised func(s *symptom) bool) {
		t.Helper()
		got, err := found(answer)
		if err != nil {
			t.Fatal(err)
		}
		for gpu, s := range symptoms {
			want := 0.0
			if raised(&s) {
				want = 1
			}
			id := key("gpu_health_condition", gpuOf(gpu), fmt.Sprintf("condition=%q state=%q", s.condition, s.state))
			if v := got[id]; v != want {
				t.Errorf("%s: %s by field %d to %g: %g", when, s.condition, s.field, s.ill, v)
			}
			worst := key("gpu_health", gpuOf(gpu), fmt.Sprintf("state=%q", s.state))
			if got[worst] != want {
				t.Errorf("%s: health of %s by field %d to %g", when, s.condition, s.field, s.ill)
			}
		}
	}
	never := func(*symptom) bool { return false }
	for range 3 {
		answer, _ := p.scrape(t, bodyInReading(0))
		check("well", answer, never)
	}
	for n := 1; n <= 4; n++ {
		answer, _ := p.scrape(t, bodyInReading(n))
		check(fmt.Sprint("ill ", n), answer, func(s *symptom) bool { return n >= 3 || s.manner == immediate || s.counts() })
	}
	answer, _ := p.scrape(t, bodyInReading(0))
	check("well again", answer, func(s *symptom) bool { return s.counts() })
}

func gpuOf(index int) gpu { return gpu{uuid: fmt.Sprintf("GPU-%d", index)} }

// TestConditionsPlayedBack plays back saved pages, a second apart, and checks the CSV.
func TestConditionsPlayedBack(t *testing.T) {
	t.Parallel()
	var pages []string
	for n := range 20 {
		ill := n - 4 // from the sixth page on
		if ill > 6 {
			ill = -1
		}
		pages = append(pages, string(bodyInReading(max(-1, ill))))
		if ill < 0 && n < 5 {
			pages[n] = string(bodyInReading(0))
		}
	}
	file := filepath.Join(t.TempDir(), "pages.prom")
	if err := os.WriteFile(file, []byte(strings.Join(pages, "# EOF\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _ := exportFile(t, file, quickly(t, 2*time.Second), "--export=timestamp,gpu_id,gpu_health_condition")
	rows := map[string]int{} // by board and condition
	page, last := -1, ""
	firsts, lasts := map[string]int{}, map[string]int{}
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const at, board, conditions = 0, 1, 2
	for _, row := range table[1:] {
		if row[at] != last {
			page, last = page+1, row[at]
		}
		for condition := range strings.SplitSeq(row[conditions], ";") {
			id := row[board] + " " + condition
			if rows[id]++; rows[id] == 1 {
				firsts[id] = page
			}
			lasts[id] = page
		}
	}
	for gpu, s := range symptoms {
		from, until := 5, 10
		switch s.manner {
		case inARow, stalled:
			from = 7
		case rises:
			until = 13 // after the last rise, remembered for two seconds
		case lasting:
			until = 19
		}
		if s.field == 393 {
			until = 19 // a warning that rows were remapped remains
		}
		id := fmt.Sprintf("%d %s", gpu, s.condition)
		if firsts[id] != from || lasts[id] != until || rows[id] != until-from+1 {
			t.Errorf("%s by field %d to %g: raised on %d pages from %d to %d, want %d to %d", s.condition, s.field, s.ill, rows[id], firsts[id], lasts[id], from, until)
		}
	}
}

func TestConditionsOfDCGMI(t *testing.T) {
	slow.Test(t, "all health conditions in what dcgmi prints, on as many GPUs")
	t.Parallel()
	world := dcgmtest.Scenario{GPUs: dcgmtest.Boards(len(symptoms))}
	exe := dcgmtest.Install(t, world)
	say := func(ill, before bool) {
		world.Readings = []dcgmtest.Reading{{Blank: true}}
		for gpu, s := range symptoms {
			r := dcgmtest.Reading{Entity: fmt.Sprint("GPU ", gpu), Field: s.field, Value: s.well}
			switch {
			case ill && s.counts():
				r.Value, r.Step = 1000, 1
			case ill:
				r.Value = s.ill
			case before && s.counts():
				r.Value = 1e6
			}
			world.Readings = append(world.Readings, r)
			if s.manner == stalled {
				world.Readings = append(world.Readings, dcgmtest.Reading{Entity: r.Entity, Field: 203, Value: 90})
			}
		}
		world.Write(t, dcgmtest.Beside(exe))
	}
	say(false, false)
	c := startDCGM(t, exe, quickly(t, 3*time.Second))
	for i, ill := range []bool{false, true, false} {
		say(ill, i > 0)
		for gpu, s := range symptoms {
			if s.field != links && (i < 2 || s.manner != lasting) { // dmon has no row per link
				s.awaitRaised(t, c, gpu, ill)
			}
		}
	}
}
