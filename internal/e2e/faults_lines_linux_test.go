package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// skips is a page without the lines for which Prometheus would reject all of it.
func skips(lines string, lacks ...string) seen {
	return seen{says: []string{temperature(during), ofSource("skipped_lines_total", lines)}, lacks: lacks}
}

// board is the labels of the exporter's only GPU.
const board = `{gpu="0",UUID="GPU-1"} `

// lineFaults returns lines that a valid page does not have.
func lineFaults() []fault {
	behind := func(lines string) exporterAnswer { return says(reading(during) + lines) }
	return []fault{
		{does: "has a line that is not a sample", exporter: behind("this is no line\n"), seen: skips("1×N", "this is no line")},
		{does: "has a line of 5 MB that is not a sample", exporter: behind(strings.Repeat("x y", 5<<20/3) + "\n"), seen: skips("1×N", "x yx")},
		{does: "does not close a label", exporter: behind("a{b=\"c 1\n"), seen: skips("1×N", `a{b="c`)},
		{does: "breaks a line within a label", exporter: behind("a{b=\"c\nd\"} 1\ne 1\n"), seen: seen{says: []string{temperature(during), "e 1"}}}, // Prometheus takes it
		{does: "has a label that is not UTF-8", exporter: behind("a{b=\"\xff\"} 1\n"), seen: skips("1×N", "\xff")},
		{does: "has a label twice", exporter: behind("a{b=\"1\",b=\"2\"} 1\n"), seen: skips("1×N", `b="2"`)},
		{does: "has a series twice", exporter: behind("DCGM_FI_DEV_GPU_TEMP" + board + "99\n"), seen: seen{says: []string{temperature(during)}, lacks: []string{temperature(99)}, twice: "DCGM_FI_DEV_GPU_TEMP" + board + "99\n"}},
		{does: "has an unknown TYPE", exporter: behind("# TYPE a b c\n# TYPE d nothing\nd 1\n"), seen: seen{says: []string{temperature(during), "d 1"}}},
		{does: "has families named kpulse_*", exporter: behind("kpulse_gpu_health{gpu=\"0\",uuid=\"GPU-1\",state=\"crit\"} 1\n"),
			seen: seen{says: []string{temperature(during), ofSource("dropped_families_total", "1×N")}, lacks: []string{`state="crit"} 1`}}},
		{does: "has families of GPUs that the program does not know", exporter: behind("DCGM_FI_DEV_NEWS" + board + "1\n"),
			seen: seen{says: []string{"DCGM_FI_DEV_NEWS" + strings.TrimSpace(board) + " 1", ofSource("unknown_families", 1)}, page: []string{"DCGM_FI_DEV_NEWS"}}},
		{does: "has 100,000 further series", exporter: behind(many(100_000)), seen: seen{says: []string{temperature(during), ofSource("samples", 100_002), `a{b="99999"} 1`}}},
	}
}

// many returns n series of no GPU.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a{b=\"%d\"} 1\n", i)
	}
	return b.String()
}

// past and future are timestamps far from now, however long the tests run.
var past, future = itoa(int(time.Now().Add(-time.Hour).UnixMilli())), itoa(int(time.Now().Add(24 * time.Hour).UnixMilli()))

// value makes the exporter report text as the GPU's temperature. What Prometheus can parse passes
// unchanged.
func value(text string) exporterAnswer {
	return says("DCGM_FI_DEV_GPU_TEMP" + board + text + "\nDCGM_FI_DEV_POWER_USAGE" + board + "300\n")
}

// left is a temperature that is passed on but not used.
func left(text, reason string) seen {
	return seen{
		says:  []string{"DCGM_FI_DEV_GPU_TEMP" + board + text, `kpulse_gpu_power_watts{hostname="n",gpu="0",uuid="GPU-1"} 300`, dropped(reason, "1×N")},
		lacks: []string{"kpulse_gpu_temperature_celsius{", "kpulse_gpu_health_condition{"},
	}
}

// valueFaults returns impossible values and times.
func valueFaults() []fault {
	return []fault{
		{does: "gives NaN", exporter: value("NaN"), seen: left("NaN", "not_finite")},
		{does: "gives +Inf", exporter: value("+Inf"), seen: left("+Inf", "not_finite")},
		{does: "gives DCGM's blank value of integers", exporter: value("9223372036854775792"), seen: left("9223372036854775792", "blank")},
		{does: "gives 4,000 °C", exporter: value("4000"), seen: left("4000", "out_of_range")},
		{does: "gives a value too large for a float", exporter: value("1e400"), seen: seen{says: []string{ofSource("up", 1)}, lacks: []string{"kpulse_gpu_temperature_celsius{"}}},
	}
}

// went is the series of a GPU that disappeared.
const went = `kpulse_gpu_present{hostname="n",gpu="0",uuid="GPU-1"} 0`

// fleetFaults returns GPUs, exporters and counters that change.
func fleetFaults() []fault {
	return []fault{
		{does: "has another GPU in the same slot", exporter: says(boardSamples("0", "GPU-2", during)),
			seen: seen{says: []string{`kpulse_gpu_temperature_celsius{hostname="n",gpu="0",uuid="GPU-2"} 41`, went}, lacks: []string{`celsius{hostname="n",gpu="0",uuid="GPU-1"}`}}},
		{does: "loses a GPU of two", exporter: says(boardSamples("1", "GPU-2", during)),
			seen: seen{says: []string{`kpulse_gpu_present{hostname="n",gpu="1",uuid="GPU-2"} 1`, went}, lacks: []string{`celsius{hostname="n",gpu="0"`}, page: []string{"gone"}}},
		{does: "loses all GPUs", exporter: says(""),
			seen: seen{says: []string{went, ofSource("devices", 0), `kpulse_gpu_health{hostname="n",gpu="0",uuid="GPU-1",state="unknown"} 1`},
				lacks: []string{"kpulse_gpu_temperature_celsius{"}, page: []string{"gone"}}},
		{does: "gains 63 GPUs", exporter: says(gpus(64)), seen: seen{says: []string{temperature(during), ofSource("devices", 64), `kpulse_gpu_temperature_celsius{hostname="n",gpu="63",uuid="GPU-64"} 41`}}},
		{does: "has each GPU renamed at each scrape", exporter: renaming(), seen: seen{says: []string{ofSource("devices", 1)}}},
		{does: "splits the GPU into instances", exporter: says(reading(during) + cut("1", "2")),
			seen: seen{says: []string{temperature(during), ofSource("devices", 3), instance("1"), instance("2")}}},
		{does: "splits the GPU differently at each scrape", exporter: recutting(), seen: seen{says: []string{temperature(during), ofSource("devices", 2)}}},
		{does: "has a counter that falls", exporter: falling(), seen: seen{says: []string{temperature(during)}, lacks: []string{`condition="pcie_replay",state="warn"} 1`}}},
		{does: "restarts as the version that renames all families", exporter: says("DCGM_FI_DEV_GPU_TEMP_CELSIUS{gpu=\"0\",gpu_uuid=\"GPU-1\"} 41\n"), seen: seen{says: []string{temperature(during), ofSource("devices", 1)}, lacks: []string{went}}},
		{does: "restarts as version 1", exporter: says("dcgm_gpu_temp{gpu=\"0\",uuid=\"GPU-1\"} 41\n"), seen: seen{says: []string{temperature(during), ofSource("devices", 1)}, lacks: []string{went}}},
		{does: "gives a GPU's temperature in two units", exporter: says("DCGM_FI_DEV_GPU_TEMP" + board + "41\nDCGM_FI_DEV_GPU_TEMP_CELSIUS" + board + "77\n"), seen: seen{lacks: []string{`celsius{hostname="n",gpu="0",uuid="GPU-1"} 77`}, says: []string{temperature(during)}}},
		{does: "names another node at each scrape", exporter: moving(), seen: seen{says: []string{temperature(during)}}},
	}
}

func gpus(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(boardSamples(itoa(i), "GPU-"+itoa(i+1), during))
	}
	return b.String()
}

// cut returns an exporter's samples of instances.
func cut(ids ...string) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu=\"0\",UUID=\"GPU-1\",GPU_I_ID=%q,GPU_I_PROFILE=\"1g.10gb\"} 0.5\n", id)
	}
	return b.String()
}

func instance(id string) string {
	return fmt.Sprintf(`kpulse_gpu_graphics_engine_active_ratio{hostname="n",gpu="0",uuid="GPU-1",mig_instance=%q,mig_profile="1g.10gb"} 0.5`, id)
}

// each answers the nth request with page(n).
func each(page func(n int) string) exporterAnswer {
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		n++ // scrapes of a row are sequential
		says(page(n))(w, nil)
	}
}

func renaming() exporterAnswer {
	return each(func(n int) string { return boardSamples("0", "GPU-x"+itoa(n), during) })
}

func recutting() exporterAnswer {
	return each(func(n int) string { return reading(during) + cut(itoa(n)) })
}

// falling has a lower counter each time, as if the driver was reloaded.
func falling() exporterAnswer {
	return each(func(n int) string {
		return reading(during) + "DCGM_FI_DEV_PCIE_REPLAY_COUNTER" + board + itoa(1000-n) + "\n"
	})
}

func moving() exporterAnswer {
	return each(func(n int) string {
		return strings.ReplaceAll(reading(during), "}", ",Hostname=\"node-"+itoa(n)+"\"}")
	})
}
