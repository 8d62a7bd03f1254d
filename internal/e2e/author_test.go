package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// author writes random expositions and settings. No two bodies share a GPU: each is a first
// reading.
type author struct {
	rng    *rand.Rand
	bodies int
	// speaks holds the dialects to write in. Those of DCGM 4.6 and 4.7 cannot mix behind one
	// program, which remembers the unit in a family's HELP.
	speaks []dialect

	// Of the current body.
	dialect dialect
	lines   []string
}

// dialect is how a generation of the exporter writes.
type dialect struct {
	spelling             int // 0: DCGM_…, 1: renamed, 2: lower-case, 3: in other units
	uuid, host           string
	utilRatioIsPercent   bool
	copyIsRatio          bool
	fraction, everywhere string // format of fractions; lines that any body has
}

// dialects, oldest first.
var dialects = []dialect{
	{spelling: 2, uuid: "uuid", host: "", fraction: "%.6f"},
	{spelling: 0, uuid: "UUID", host: `,Hostname="n1",DCGM_FI_DRIVER_VERSION="570.124.06"`, fraction: "%.6f"},
	{spelling: 1, uuid: "UUID", host: `,hostname="n1"`, fraction: "%g", utilRatioIsPercent: true,
		everywhere: "# HELP DCGM_FI_DEV_GPU_UTIL_RATIO GPU utilization (in %).\n"},
	{spelling: 3, uuid: "gpu_uuid", host: `,hostname="n1",DCGM_FI_SYSTEM_DRIVER_VERSION="595.1"`, fraction: "%g", copyIsRatio: true},
	{spelling: 3, uuid: "uuid", host: `,hostname="n1"`, fraction: "%g", copyIsRatio: true,
		everywhere: "DCGM_FI_DEV_FB_FREE_BYTES{gpu=\"0\",uuid=\"GPU-clock\",hostname=\"n1\"} 2.6e+09\n"},
}

// setting draws a configuration.
func (a *author) setting() setting {
	s := preset([]string{"ai", "hpc", "mem"}[a.rng.IntN(3)])
	if a.rng.IntN(2) == 0 {
		w := [4]float64{1 + float64(a.rng.IntN(9))}
		for i := 1; i < 4; i++ {
			w[i] = float64(a.rng.IntN(10))
		}
		a.rng.Shuffle(4, func(i, j int) { w[i], w[j] = w[j], w[i] })
		s.SM, s.Tensor, s.DRAM, s.GR = w[0], w[1], w[2], w[3]
		s.flags = []string{fmt.Sprintf("--weights=%g,%g,%g,%g", w[0], w[1], w[2], w[3])}
	}
	if s.Zero = a.rng.IntN(3) == 0; s.Zero {
		s.flags = append(s.flags, "--missing-inputs=zero")
	}
	least := pick(a, 0, .3, .5, .5, .55, .65, .8, .9, 1)
	s.MinCoverage = least * 100
	s.flags = append(s.flags, fmt.Sprintf("--min-coverage=%g", least))
	return s
}

func pick[T any](a *author, from ...T) T { return from[a.rng.IntN(len(from))] }

func (a *author) chance(percent int) bool { return a.rng.IntN(100) < percent }

// body writes an exposition of one to six boards.
func (a *author) body() []byte {
	a.bodies++
	a.dialect = pick(a, a.speaks...)
	a.lines = a.lines[:0]
	for i := range 1 + a.rng.IntN(6) {
		a.board(i)
	}
	a.clutter()
	return a.shuffled()
}

// board writes the rows of a GPU, of its MIG instances, or of both.
func (a *author) board(index int) {
	uuid := fmt.Sprintf("GPU-%08x-%04x", a.bodies, index)
	common := fmt.Sprintf(`gpu="%d",%s="%s"`, index, a.dialect.uuid, uuid)
	if model := pick(a, "", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA H200", "Quadro RTX 6000", "Tesla T4"); model != "" {
		common += fmt.Sprintf(`,modelName="%s"`, model)
	}
	repeated := a.boardFields()
	instances := 0
	if a.chance(35) {
		instances = 1 + a.rng.IntN(3)
	}
	if instances == 0 || a.chance(50) {
		a.rows(common, slices.Concat(repeated, a.activityFields(instances == 0 || a.chance(30))))
	}
	for i := range instances {
		if a.chance(40) {
			repeated = a.boardFields()
		}
		a.rows(common+fmt.Sprintf(`,GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d"`, 7+i), slices.Concat(repeated, a.activityFields(a.chance(20))))
	}
}

// reading is a field and the text of its value.
type reading struct{ field, text string }

// boardFields draws the readings that MIG instances repeat.
func (a *author) boardFields() (all []reading) {
	for _, field := range []string{"board_temperature", "board_memory_temperature"} {
		all = append(all, reading{field, pick(a, "0", "35", "91", "92", "92.5", "93", "94", "95", "96", "200", "201", "82505", "NaN", "9223372036854775794")})
	}
	for _, field := range []string{"board_xid", "board_clock_bits"} {
		all = append(all, reading{field, pick(a, "0", "0", "0", "1", "4", "13", "31", "32", "48", "64", "79", "128", "140", "256", "9223372036854775794")})
	}
	for _, field := range []string{
		"board_replays", "board_uncorrectable", "board_remap_failure", "board_remap_pending", "board_double_bit", "board_link_crc", "board_link_replay",
	} {
		all = append(all, reading{field, pick(a, "0", "0", "0", "0", "0", "0", "1", "2", "2147483632", "9223372036854775794", "-1", "NaN")})
	}
	return a.thin(all)
}

// activityFields draws the activity of a GPU or an instance.
func (a *author) activityFields(withNVML bool) (all []reading) {
	scale := pick(a, 0, 0, .04, .1, .2, .3, .5, .7, 1, 1, 1)
	lone, noTensor := a.rng.IntN(16), a.chance(30) // at scale 0, the only nonzero field, if any
	for i, field := range []string{"sm", "occupancy", "tensor", "imma", "hmma", "dfma", "dram", "fp64", "fp32", "fp16", "int", "engine"} {
		text := fmt.Sprintf(a.dialect.fraction, scale*a.rng.Float64())
		switch {
		case scale == 0 && i == lone:
			text = "0.25"
		case noTensor && field == "tensor":
			text = fmt.Sprintf(a.dialect.fraction, .1*a.rng.Float64())
		case a.chance(25) && scale > 0:
			at := pick(a, 0, .05, .15, .2, .25, .3, .4, .5, .6, .8, 1)
			text = fmt.Sprintf(a.dialect.fraction, max(0, at+pick(a, 0, 0, -1e-6, 1e-6)))
		case a.chance(4):
			text = pick(a, "1.05", "1.1", "1.2", "-0.1", "NaN", "+Inf", "140737488355328.000000", "9.223372036854776e+18")
		case field == "dfma" || field == "hmma" || field == "imma" || field[:2] == "fp" && a.chance(50):
			continue // or some pipe nearly always bounds SM from below
		}
		if field != "sm" || a.chance(60) {
			all = append(all, reading{field, text})
		}
	}
	if !withNVML {
		return a.thin(all)
	}
	percent := []string{"0", "3", "19", "20", "21", "39", "40", "41", "87", "100"}
	nvml, copied := pick(a, percent...), pick(a, append(percent, "101", "4294967295", "NaN")...)
	switch {
	case a.dialect.spelling == 0 || a.dialect.spelling == 2:
		nvml = pick(a, nvml, nvml, nvml, nvml, "4294967295", "9223372036854775794", "100.5")
	case !a.dialect.utilRatioIsPercent:
		nvml = pick(a, "0", "0.03", "0.19", "0.2", "0.4", "0.87", "1", "NaN")
	}
	if a.dialect.copyIsRatio {
		copied = pick(a, "0", "0.39", "0.4", "0.41", "1", "1.05", "1.2", "NaN")
	}
	all = append(all, reading{"nvml", nvml}, reading{"copy", copied})
	for _, field := range []string{"pcie_tx", "pcie_rx"} {
		all = append(all, reading{field, pick(a, "0", "17544", "5e8", "999999999", "0", "3", "44", "1000000000", "1000000001", "140737488355328", "-5", "NaN")})
	}
	return a.thin(all)
}

// thin drops random readings.
func (a *author) thin(all []reading) []reading {
	keep := pick(a, 50, 85, 95, 100, 100)
	return slices.DeleteFunc(all, func(reading) bool { return !a.chance(keep) })
}

// rows writes the readings of one GPU or instance, for each of its pods.
func (a *author) rows(common string, all []reading) {
	pods := pick(a, []string{""}, []string{""}, []string{"a"}, []string{"a", "b"})
	for _, r := range all {
		name := a.name(r.field)
		if name == "" {
			continue
		}
		for _, pod := range pods {
			block := common + a.dialect.host
			if pod != "" {
				block += fmt.Sprintf(`,namespace="x",pod="%s"`, pod)
			}
			line := fmt.Sprintf("%s{%s} %s\n", name, block, r.text)
			a.lines = append(a.lines, line)
			if !a.chance(4) {
				continue
			}
			// A duplicate series: the first sample wins. The second differs only for temperatures,
			// whose values no other field has.
			if degrees := []string{"35", "91", "92", "93", "94", "95"}; len(pods) == 1 && slices.Contains(degrees, r.text) {
				line = fmt.Sprintf("%s{%s} %s\n", name, block, pick(a, degrees...))
			}
			a.lines = append(a.lines, line)
		}
	}
}

// name spells a field in the dialect; "" if it has no such field.
func (a *author) name(field string) string {
	s, name := a.spelled(field)
	if s == nil {
		return ""
	}
	return name
}

// spelled returns the spelling of a field in the dialect, and its name there; nil if it has none.
// DCGM 4.7 has other units for some fields, and the names of 4.6 for the others.
func (a *author) spelled(field string) (s *spelling, name string) {
	for i := range spellings {
		if spellings[i].field != field {
			continue
		}
		names := strings.Fields(spellings[i].names)
		for _, column := range []int{a.dialect.spelling, 1} {
			if column < len(names) && names[column] != "-" && (column == a.dialect.spelling || s == nil && a.dialect.spelling == 3) {
				s, name = &spellings[i], names[column]
				break
			}
		}
	}
	return s, name
}

// clutter writes lines that say nothing about a GPU's activity or health.
func (a *author) clutter() {
	gpu := fmt.Sprintf(`gpu="0",UUID="GPU-%08x-9999"`, a.bodies)
	for _, line := range []string{
		"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_L0_TOTAL{nvlink=\"0\"," + gpu + "} 3\n",
		"DCGM_FI_PROF_SM_ACTIVE{GPU_CI_ID=\"1\",GPU_I_ID=\"2\"," + gpu + "} 0.5\n",
		"DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu=\"0\"} 39.5\n",
		"DCGM_FI_DEV_GPU_TEMP{cpucore=\"0\"," + gpu + "} 99\n",
		"DCGM_FI_DEV_GPU_TEMP{nvswitch=\"0\"," + gpu + "} 99\n",
		"DCGM_FI_DEV_NAME{" + gpu + "} Tesla T4\n",
		"DCGM_FI_DEV_GPU_TEMP{gpu=\"7\"} 99\n",
		"DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-1\"} 99\n",
		"DCGM_FI_DEV_GPU_TEMP{" + gpu + " 99\n",
		"kpulse_gpu_health{state=\"crit\"," + strings.ToLower(gpu) + "} 1\n",
		"# HELP kpulse_gpu_health of another proxy\n",
		"# a comment\n", "\n", "go_goroutines 7\n",
	} {
		if a.chance(25) {
			a.lines = append(a.lines, line)
		}
	}
}

// damage returns a damaged copy of body.
func (a *author) damage(body []byte) []byte {
	b := bytes.Clone(body)
	for range 1 + a.rng.IntN(6) {
		if len(b) == 0 {
			return b
		}
		i := a.rng.IntN(len(b))
		start := bytes.LastIndexByte(b[:i], '\n') + 1
		end := lineEnd(b, i)
		switch a.rng.IntN(9) {
		case 0: // a byte flipped
			b[i] ^= 1 << a.rng.IntN(8)
		case 1: // a line cut
			b = slices.Delete(b, i, end)
		case 2: // a line doubled
			b = slices.Insert(b, end, bytes.Clone(b[start:end])...)
		case 3: // a piece of the body spliced in
			from := a.rng.IntN(len(b))
			to := min(len(b), from+a.rng.IntN(300))
			b = slices.Insert(b, i, bytes.Clone(b[from:to])...)
		case 4, 5: // syntax
			mark := pick(a, `"`, `{`, `}`, `\`, "\x00", "\r\n", "\n", "#", ",", " ", "\t", "=", "\xff", "é", "# HELP ", "# TYPE ")
			b = slices.Insert(b, i, []byte(mark)...)
		case 6: // Windows line endings
			b = bytes.ReplaceAll(b, []byte("\n"), []byte(pick(a, "\r\n", "\n\n", "\n", "\n")))
		case 7: // no final newline
			b = bytes.TrimRight(b, "\n")
		case 8: // a proxy behind a proxy
			b = slices.Insert(b, start, []byte(pick(a, "kpulse_up 1\n", "# HELP kpulse_up x\n", "# TYPE kpulse_up gauge\n", "{\"kpulse_up\",a=\"b\"} 1\n", " kpulse_up 1\n", "kpulse_up{a=\"\n\"} 1\n"))...)
		}
	}
	return b
}

// shuffled returns the lines of the current body, by family or in random order.
func (a *author) shuffled() []byte {
	slices.Sort(a.lines)
	if a.chance(30) {
		a.rng.Shuffle(len(a.lines), func(i, j int) { a.lines[i], a.lines[j] = a.lines[j], a.lines[i] })
	} else {
		slices.SortStableFunc(a.lines, func(x, y string) int {
			x, _, _ = strings.Cut(x, "{")
			y, _, _ = strings.Cut(y, "{")
			return strings.Compare(x, y)
		})
	}
	return []byte(strings.Join(a.lines, "") + a.dialect.everywhere)
}
