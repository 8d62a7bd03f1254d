package checks

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/tui/client"
)

// answering returns a proxy that answers with an exposition.
func answering(body string) client.Target {
	return client.Target{URL: "http://node:9401/metrics", Client: client.ForHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, body)
	}))}
}

// readAt returns the exposition of a source that was read at a time, with one GPU that is ok.
func readAt(at time.Time, backend string, more ...string) string {
	return fmt.Sprintf(`kpulse_source_up{source="s",backend=%[1]q} 1
kpulse_source_last_read_timestamp_seconds{source="s",backend=%[1]q} %[2]d
kpulse_gpu_info{hostname="n",gpu="0",uuid="u0"} 1
kpulse_gpu_health{hostname="n",gpu="0",uuid="u0",state="ok"} 1
`, backend, at.Unix()) + strings.Join(more, "\n") + "\n"
}

// TestHealthIsUnknownWhereNotAllIsKnown: a partial or an old reading is not ok. An old one is not
// crit either.
func TestHealthIsUnknownWhereNotAllIsKnown(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	crit := `kpulse_gpu_health{hostname="n",gpu="1",uuid="u1",state="crit"} 1` + "\n" + `kpulse_gpu_present{hostname="n",gpu="1",uuid="u1"} 1`
	gone := func(gpu string) string {
		labels := fmt.Sprintf("hostname=\"n\",gpu=%q,uuid=\"u%s\"", gpu, gpu)
		return "kpulse_gpu_present{" + labels + "} 0\nkpulse_gpu_health{" + labels + `,state="crit"} 1`
	}
	missing := func(gpu string) string {
		return strings.Replace(gone(gpu), `state="crit"`, `state="unknown"`, 1)
	}
	for _, test := range []struct {
		name, body, problem string
		state               canonical.Health
		lines               int
	}{
		{"as it should be", readAt(now, "dcgm"), "", canonical.HealthOK, 1},
		{"old by two clocks", readAt(now.Add(-9*time.Minute), "dcgm"), "", canonical.HealthOK, 1},
		{"old", readAt(now.Add(-11*time.Minute), "dcgm"), "the latest reading is 11m0s old; see why", canonical.HealthUnknown, 0},
		{"old and crit", readAt(now.Add(-11*time.Minute), "dcgm", crit), "11m0s old", canonical.HealthUnknown, 0},
		{"played", readAt(now.Add(-99*time.Hour), "replay"), "", canonical.HealthOK, 1},
		{"a source that is down", readAt(now, "dcgm", `kpulse_source_up{source="b",backend="dcgm"} 0`, `kpulse_source_up{source="c",backend="dcgm"} 0`),
			"b and 1 more could not be read", canonical.HealthUnknown, 1},
		{"a source that is down, and a crit GPU", readAt(now, "dcgm", crit, `kpulse_source_up{source="b",backend="dcgm"} 0`), "b could not be read", canonical.HealthCrit, 2},
		{"values that stand still", readAt(now, "dcgm", `kpulse_source_unchanged_seconds{source="s",backend="dcgm"} 1800`), "no value of a source has changed for 30m0s", canonical.HealthUnknown, 1},
		{"broken lines", readAt(now, "dcgm", "kpulse_gpu_health{"), "the answer has 1 line that cannot be read", canonical.HealthUnknown, 1},
		{"no source", `kpulse_source_up{source="s",backend="dcgm"} 0`, "no source could be read", canonical.HealthUnknown, 0},
		{"no GPU", `kpulse_source_up{source="s",backend="dcgm"} 1`, "there is no GPU in the reading", canonical.HealthUnknown, 0},
		{"none of the GPUs that were there", readAt(now, "dcgm", missing("0"), missing("1")), "the reading has none of the GPUs", canonical.HealthUnknown, 0},
		{"the only GPU missing", readAt(now, "dcgm", missing("0")), "the reading has none of the GPUs", canonical.HealthUnknown, 0},
		{"none of them, and one crit", readAt(now, "dcgm", missing("0"), gone("1")), "", canonical.HealthCrit, 2},
		{"the only GPU gone", readAt(now, "dcgm", gone("0")), "", canonical.HealthCrit, 1},
		{"one of two gone", readAt(now, "dcgm", gone("1")), "", canonical.HealthCrit, 2},
		{"one of two missing", readAt(now, "dcgm", missing("1")), "", canonical.HealthUnknown, 2},
		{"one missing, one crit", readAt(now, "dcgm", missing("2"), crit), "", canonical.HealthCrit, 3},
		{"an exporter", "DCGM_FI_DEV_GPU_TEMP 40\n", "no series of kpulse-proxy in the answer", canonical.HealthUnknown, 0},
	} {
		n := client.Fetch(t.Context(), answering(test.body))
		shown := make([]int, len(n.GPUs))
		for i := range shown {
			shown[i] = i
		}
		report := HealthOf(n, nil, func(n *client.Node) client.Selection { return client.Selection{Shown: shown} }, now)
		if report.Worst != test.state || report.State != test.state.String() || len(report.GPUs) != test.lines {
			t.Errorf("%s: %s with %d lines, want %s with %d", test.name, report.Worst, len(report.GPUs), test.state, test.lines)
		}
		if !strings.Contains(report.Problem, test.problem) || (test.problem == "") != (report.Problem == "") {
			t.Errorf("%s: %q, want %q", test.name, report.Problem, test.problem)
		}
	}
}

// TestHealthOfAnInstanceIsItsBoards: for a job on an instance, the board is reported.
func TestHealthOfAnInstanceIsItsBoards(t *testing.T) {
	n := client.Fetch(t.Context(), answering(readAt(time.Now(), "dcgm",
		`kpulse_gpu_info{hostname="n",gpu="1",uuid="u1"} 1`,
		`kpulse_gpu_health{hostname="n",gpu="1",uuid="u1",state="warn"} 1`,
		`kpulse_gpu_recommended_action{hostname="n",gpu="1",uuid="u1",action="reset_gpu"} 1`,
		`kpulse_gpu_info{hostname="n",gpu="1",uuid="u1",mig_instance="9",mig_profile="1g.10gb"} 1`)))
	if len(n.GPUs) != 3 {
		t.Fatalf("%d devices", len(n.GPUs))
	}
	report := NewHealthReport(boardsOf(n, nil, []int{2}), "")
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil || text.String() != "WARNING - reset_gpu GPU 1\nwarn  GPU 1  u1  reset_gpu  -  -\n" {
		t.Errorf("%q, %v", &text, err)
	}
}

// TestHealthOfSwitches: each switch with fatal SXIDs has a line before the boards, if its condition is raised.
func TestHealthOfSwitches(t *testing.T) {
	const raised = `kpulse_gpu_health{hostname="n",gpu="1",uuid="u1",state="crit"} 1
kpulse_gpu_present{hostname="n",gpu="1",uuid="u1"} 1
kpulse_gpu_health_condition{hostname="n",gpu="1",uuid="u1",condition="nvswitch",state="crit"} 1
kpulse_gpu_recommended_action{hostname="n",gpu="1",uuid="u1",action="reboot_node"} 1`
	const faults = `kpulse_nvswitch_fatal_sxid{hostname="n",pci_bus_id="0000:03:00",sxid="20034"} 1
kpulse_nvswitch_fatal_sxid{hostname="n",pci_bus_id="0000:03:00",sxid="20009"} 1
kpulse_nvswitch_fatal_sxid{hostname="n",pci_bus_id="0000:84:00",sxid="12028"} 1`
	const both = "fatal SXID 20034, 20009"
	for _, c := range []struct{ body, want string }{
		{raised + "\n" + faults, "CRITICAL - reboot_node NVSwitch 0000:03:00: " + both + "; reboot_node NVSwitch 0000:84:00: fatal SXID 12028\n" +
			"crit  NVSwitch 0000:03:00  -   reboot_node  nvswitch=crit  " + both + "\n" +
			"crit  NVSwitch 0000:84:00  -   reboot_node  nvswitch=crit  fatal SXID 12028\n" +
			"crit  GPU 1                u1  reboot_node  nvswitch=crit  " + both + " of NVSwitch 0000:03:00\n" +
			"ok    GPU 0                u0  none         -              -\n"},
		{faults, "OK - 1 GPU\nok  GPU 0  u0  none  -  -\n"}, // the condition is off
		{raised, "CRITICAL - reboot_node GPU 1: NVSwitch failed\ncrit  GPU 1  u1  reboot_node  nvswitch=crit  NVSwitch failed\nok    GPU 0  u0  none         -              -\n"},
	} {
		n := client.Fetch(t.Context(), answering(readAt(time.Now(), "dcgm", c.body)))
		report := HealthOf(n, nil, func(n *client.Node) client.Selection { return client.Selection{Shown: []int{0, 1}[:len(n.GPUs)]} }, time.Now())
		var text bytes.Buffer
		if err := report.WriteText(&text); err != nil || text.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, &text, c.want)
		}
	}
}

// TestHealthInOneLine: whatever the labels contain, node-problem-detector gets one line, with what
// to do, that it does not have to cut.
func TestHealthInOneLine(t *testing.T) {
	long := strings.Repeat("länglich\n", 40)
	for _, test := range []struct {
		gpus []gpuReport
		why  string
		want string
	}{
		{[]gpuReport{{state: canonical.HealthOK}}, "", "1 GPU ok"},
		{[]gpuReport{{state: canonical.HealthOK}, {state: canonical.HealthWarn, label: "GPU 1", Reason: "power brake", Action: "none"}}, "", "warn: GPU 1 power brake"},
		{[]gpuReport{{state: canonical.HealthCrit, label: "GPU 1", Reason: long, Action: "restart_application"}, {state: canonical.HealthCrit}}, "", "... (restart_application), 1 more"},
		{nil, long, "unknown: länglich länglich"},
		{nil, "", "unknown: no GPU is chosen; --show-all looks at all"},
	} {
		line := NewHealthReport(test.gpus, test.why).Line()
		if len(line) > lineLimit || strings.Contains(line, "\n") || !strings.Contains(line, test.want) || line != strings.ToValidUTF8(line, "?") {
			t.Errorf("%d bytes: %q, want %q", len(line), line, test.want)
		}
	}
}

// TestHealthOfAbsentAndFailedBoards: the worst come first, the first line says what to do and why, and a
// reason names the code, the mnemonic and what the driver said of it.
func TestHealthOfAbsentAndFailedBoards(t *testing.T) {
	event := func(uuid string, code uint32, severity canonical.Severity, text string) client.ServedEvent {
		return client.ServedEvent{Event: canonical.Event{Kind: canonical.EventXID, UUID: uuid, Code: code, Severity: severity, Text: text}}
	}
	events := []client.ServedEvent{
		event("u2", 48, canonical.SeverityFatal, "an older one"),
		event("u2", 149, canonical.SeverityFatal, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004485c6 0x00000000)"),
		event("u2", 31, canonical.SeverityApplication, "a later fault of a program"),
		event("u3", 79, canonical.SeverityFatal, "GPU has fallen off the bus."),
	}
	n := client.Fetch(t.Context(), answering(readAt(time.Now(), "dcgm",
		`kpulse_gpu_info{hostname="n",gpu="2",uuid="u2"} 1`,
		`kpulse_gpu_health{hostname="n",gpu="2",uuid="u2",state="crit"} 1`,
		`kpulse_gpu_health{hostname="n",gpu="3",uuid="u3",state="crit"} 1`,
		`kpulse_gpu_health{hostname="n",gpu="1",uuid="u1",state="unknown"} 1`,
		`kpulse_gpu_health_condition{hostname="n",gpu="2",uuid="u2",condition="xid_fatal",state="crit"} 1`,
		`kpulse_gpu_health_condition{hostname="n",gpu="2",uuid="u2",condition="power_brake",state="warn"} 1`,
		`kpulse_gpu_recommended_action{hostname="n",gpu="2",uuid="u2",action="reset_gpu"} 1`,
		`kpulse_gpu_recommended_action{hostname="n",gpu="3",uuid="u3",action="reboot_node"} 1`,
		`kpulse_gpu_present{hostname="n",gpu="0",uuid="u0"} 1`,
		`kpulse_gpu_present{hostname="n",gpu="1",uuid="u1"} 0`,
		`kpulse_gpu_present{hostname="n",gpu="2",uuid="u2"} 1`,
		`kpulse_gpu_present{hostname="n",gpu="3",uuid="u3"} 0`,
		`kpulse_allocation_seconds_total{hostname="n",gpu="3",uuid="u3",workload_namespace="",workload_pod="",workload_container="",workload_kind="",workload_name="",hpc_job="4711"} 9`,
	)))
	const netir = "fatal XID 149 NVLINK_NETIR_ERROR (NETIR_LINK_EVT Fatal XC0 i0 Link 08)"
	const fallen = "fatal XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS (GPU has fallen off the bus.)"
	want := "CRITICAL - reset_gpu GPU 2: " + netir + ", power brake; reboot_node GPU 3: no longer seen, " + fallen + ", held by job 4711\n" +
		"crit     GPU 2  u2  reset_gpu    xid_fatal=crit,power_brake=warn  " + netir + ", power brake\n" +
		"crit     GPU 3  u3  reboot_node  -                                no longer seen, " + fallen + ", held by job 4711\n" +
		"unknown  GPU 1  u1  -            -                                it is missing from the latest reading; it is gone if that lasts\n" +
		"ok       GPU 0  u0  none         -                                -\n"
	all := func(n *client.Node) (s client.Selection) {
		for i := range n.GPUs {
			s.Shown = append(s.Shown, i)
		}
		return s
	}
	var text bytes.Buffer
	if err := HealthOf(n, events, all, time.Now()).WriteText(&text); err != nil || text.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, &text, want)
	}
	first := NewHealthReport(nil, "nothing\nanswers").Summary()
	if first != "UNKNOWN - nothing answers" {
		t.Errorf("without GPUs: %q", first)
	}
	if got := NewHealthReport([]gpuReport{{state: canonical.HealthOK}, {state: canonical.HealthOK}}, "").Summary(); got != "OK - 2 GPUs" {
		t.Errorf("if all is well: %q", got)
	}
}
