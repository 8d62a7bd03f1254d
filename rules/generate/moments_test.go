package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// moment is what an exporter serves some time after the first reading, and the condition's
// value then: "1" raised, "0" clear, "" absent.
type moment struct {
	after  time.Duration
	lines  string
	raised string
}

// labelled matches the name of a family and its own labels.
var labelled = regexp.MustCompile(`(?m)^(\w+)(,\S+)? `)

// TestMoments plays each condition's past up to its exact ends, and checks that the program
// agrees.
func TestMoments(t *testing.T) {
	const temperature = "DCGM_FI_DEV_GPU_TEMP 50\n"
	replays := func(n int) string { return fmt.Sprintf("%sDCGM_FI_DEV_PCIE_REPLAY_COUNTER %d\n", temperature, n) }
	xid := func(n int) string { return fmt.Sprintf("%sDCGM_FI_DEV_XID_ERRORS %d\n", temperature, n) }
	links := func(crc, replay int) string {
		return fmt.Sprintf("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL %d\nDCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL %d\n", crc, replay)
	}
	flag := func(name string, v int) string { return fmt.Sprintf("%s%s %d\n", temperature, name, v) }
	clocks := func(bits int) string { return flag("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", bits) }
	failed := func(n int) string { return flag("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", n) }
	margin := func(n int) string { return flag("DCGM_FI_DEV_GPU_TEMP_LIMIT", n) }
	energy := func(joules, code int) string {
		return fmt.Sprintf("%sDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION %d\n", xid(code), joules*1000)
	}
	asks := func(code, action int) string {
		return fmt.Sprintf("%sDCGM_FI_DEV_GPU_RECOVERY_ACTION %d\n", xid(code), action)
	}
	count := func(family string, code, n int) string {
		return fmt.Sprintf("%sDCGM_EXP_XID_ERRORS_%s,xid=\"%d\" %d\n", temperature, family, code, n)
	}
	quiet := "DCGM_FI_PROF_GR_ENGINE_ACTIVE 0\nDCGM_FI_DEV_GPU_UTIL 90\n"
	busy := "DCGM_FI_PROF_GR_ENGINE_ACTIVE 0.001\nDCGM_FI_DEV_GPU_UTIL 90\n"
	const m, ms = time.Minute, time.Millisecond
	for _, c := range []struct {
		condition string
		moments   []moment
	}{
		{"pcie_replay", []moment{
			{0, replays(7), "0"}, {m, replays(8), "1"}, {6 * m, replays(8), "1"}, {7 * m, temperature, "1"},
			{11 * m, replays(8), "1"}, {11*m + ms, replays(8), "0"}, {12 * m, temperature, ""},
			{13 * m, replays(2), "0"}, {14 * m, temperature, ""}, {15 * m, replays(3), "1"}, // a reset, and a rise after a gap
		}},
		{"pcie_replay", []moment{ // a board that was away
			{0, replays(7), "0"}, {m, "", ""}, {50 * m, replays(8), "1"}, {51 * m, "", ""}, {52 * m, replays(8), "1"}, {60*m + ms, replays(8), "0"},
		}},
		{"xid_recent", []moment{
			{0, xid(54), "0"}, {m, xid(54), "0"}, {90 * time.Second, xid(43), "0"}, {2 * m, xid(74), "1"}, {12 * m, xid(74), "1"}, {12*m + ms, xid(74), "0"},
			{13 * m, temperature, ""}, {14 * m, xid(74), "0"}, {15 * m, xid(0), "0"}, {16 * m, xid(74), "1"}, {17 * m, xid(31), "1"},
		}},
		{"xid_recent", []moment{{0, temperature, ""}, {m, xid(154), "1"}, {11*m + ms, xid(154), "0"}}}, // none, then one
		{"xid_fatal", []moment{ // later readings change nothing, except a reset of the board
			{0, xid(0), "0"}, {m, xid(48), "1"}, {90 * time.Second, xid(45), "1"}, {50 * m, xid(45), "1"}, {51 * m, temperature, "1"}, {52 * m, energy(5000, 45), "1"}, {53 * m, energy(9000, 45), "1"}, {54 * m, energy(7000, 45), "0"},
			{55 * m, energy(8000, 79), "1"}, {56 * m, "", ""}, {57 * m, energy(9000, 79), "1"}, {58 * m, energy(10, 79), "0"},
		}},
		{"xid_fatal", held()},
		{"xid_fatal", []moment{ // resolved by the recovery action, which follows 48, and 46 only after the driver asked for something
			{0, asks(0, 0), "0"}, {m, asks(48, 0), "1"}, {90 * time.Second, asks(45, 0), "1"}, {119 * time.Second, asks(45, 0), "1"}, {2 * m, asks(45, 0), "0"},
			{3 * m, asks(46, 0), "1"}, {4 * m, asks(46, 0), "1"}, {5 * m, asks(46, 0), "1"}, {9 * m, asks(46, 0), "1"},
			{10 * m, asks(46, 1), "1"}, {11 * m, asks(46, 0), "1"}, {12 * m, asks(46, 0), "1"}, {13 * m, xid(46), "1"}, {14 * m, asks(46, 0), "0"},
		}},
		{"xid_fatal", []moment{ // only counted, and present from the start
			{0, count("TOTAL", 95, 3), "1"}, {m, count("TOTAL", 95, 3), "1"}, {2 * m, temperature, "1"},
		}},
		{"xid_fatal", []moment{{0, temperature + "DCGM_EXP_XID_ERRORS_COUNT 0\n", "0"}, {m, count("COUNT", 31, 1), "0"}, {2 * m, count("COUNT", 95, 1), "1"}, {8 * m, count("COUNT", 31, 1), "1"}}},
		{"xid_recent", []moment{ // leaves the window and comes back; 999 is not in the table
			{0, count("COUNT", 54, 1), "0"}, {m, count("COUNT", 54, 2), "1"}, {6 * m, count("COUNT", 54, 1), "1"}, {12 * m, count("COUNT", 43, 1), "0"},
			{13 * m, count("COUNT", 54, 1), "1"}, {24 * m, count("COUNT", 54, 1), "0"}, {25 * m, count("COUNT", 999, 1), "1"}, {36 * m, count("COUNT", 999, 1), "0"},
		}},
		{"nvlink_errors", []moment{
			{0, links(1, 5), "0"}, {m, links(0, 5), "0"}, {2 * m, links(0, 6), "1"}, {12 * m, links(1, 6), "1"}, {22 * m, links(1, 6), "1"}, {22*m + ms, links(1, 6), "0"},
		}},
		{"power_brake", []moment{ // one reading, then three in a row, then none
			{0, clocks(0x80), "0"}, {m, clocks(0), "0"}, {2 * m, clocks(0x80), "0"}, {3 * m, clocks(0x84), "0"}, {4 * m, clocks(0x80), "1"}, {5 * m, temperature, ""}, {6 * m, clocks(0x80), "0"},
			{7 * m, clocks(0x80), "0"}, {8 * m, clocks(0xa0), "1"}, {9 * m, clocks(0x20), "0"},
		}},
		{"thermal_slowdown", []moment{{0, clocks(0x20), "0"}, {m, clocks(0x40), "0"}, {2 * m, clocks(0x60), "1"}, {3 * m, clocks(0), "0"}}},
		{"nvlink_down", []moment{{0, failed(2), "0"}, {m, failed(2), "0"}, {2 * m, failed(3), "1"}, {12 * m, failed(3), "1"}, {12*m + ms, failed(3), "0"}}},
		{"nvlink_errors", []moment{{0, failed(2), "0"}, {2 * m, failed(3), "1"}, {12*m + ms, failed(3), "0"}}},
		{"gpu_temperature", []moment{{0, margin(5), "0"}, {m, margin(0), "1"}, {2 * m, temperature, "0"}}},
		{"retired_pages_pending", []moment{{0, flag("DCGM_FI_DEV_RETIRED_PENDING", 0), "0"}, {m, flag("DCGM_FI_DEV_RETIRED_PENDING", 1), "1"}, {2 * m, temperature, ""}}},
		{"profiling_stalled", []moment{
			{0, quiet, "0"}, {5*time.Second - ms, quiet, "0"}, {10*time.Second - ms, quiet, "0"}, {10 * time.Second, quiet, "1"}, {20 * time.Second, busy, "0"},
			{25 * time.Second, quiet, "0"}, {40 * time.Second, quiet, "0"}, {41 * time.Second, quiet, "1"},
			{50 * time.Second, "DCGM_FI_DEV_GPU_UTIL 90\n", ""}, {60 * time.Second, quiet, "0"}, {65 * time.Second, "", ""}, {70 * time.Second, quiet, "0"},
			{75 * time.Second, quiet, "0"}, {80 * time.Second, quiet, "1"},
		}},
	} {
		playMoments(t, c.condition, c.moments)
	}
}

// held returns the day for which a fatal XID is held, with a reading every half hour.
func held() []moment {
	const page = "DCGM_FI_DEV_GPU_TEMP 50\nDCGM_FI_DEV_XID_ERRORS %d\n"
	list := []moment{{0, fmt.Sprintf(page, 0), "0"}, {time.Minute, fmt.Sprintf(page, 151), "1"}}
	for at := 30 * time.Minute; at <= 24*time.Hour; at += 30 * time.Minute {
		list = append(list, moment{at, fmt.Sprintf(page, 43), "1"})
	}
	return append(list,
		moment{24*time.Hour + time.Minute, fmt.Sprintf(page, 43), "1"},
		moment{24*time.Hour + time.Minute + time.Second, fmt.Sprintf(page, 43), "0"})
}

// playMoments gives the moments to the rules and to the program.
func playMoments(t *testing.T, condition string, moments []moment) {
	p, s := newProxy(t, "h"), newServer(t, shipped(t))
	for _, now := range moments {
		page := labelled.ReplaceAllString(now.lines, `$1{gpu="0",UUID="GPU-a",Hostname="h"$2} `)
		at, want := start.Add(now.after), map[string]float64{}
		s.scrape("h:9400", at, []byte(page))
		p.read(at, []byte(page))
		p.conclude(want)
		s.evaluate(at)
		got := s.concluded(at)
		if list := differences(want, got); len(list) > 0 {
			t.Errorf("%s after %v:\n%s", condition, now.after, strings.Join(list, "\n"))
		}
		raised := ""
		for id, v := range got {
			if strings.Contains(id, "condition="+condition+" ") {
				raised = fmt.Sprint(v)
			}
		}
		if raised != now.raised {
			t.Errorf("%s after %v: %q, want %q", condition, now.after, raised, now.raised)
		}
	}
}
