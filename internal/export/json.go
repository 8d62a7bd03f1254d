package export

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// schema is the version of document. It rises when a key is removed or changes its meaning,
// not when one is added.
const schema = 1

// document is a reading as JSON. Keys and units are those of our series, without their
// prefix. A reading that was not read is absent, never 0.
type document struct {
	Schema  int                `json:"schema"`
	At      time.Time          `json:"at"`
	Source  sourceDocument     `json:"source"`
	Host    map[string]float64 `json:"host,omitempty"`
	Job     map[string]string  `json:"job,omitempty"`
	Devices []map[string]any   `json:"devices"`
	// Missed are boards that the source names or that are expected, and that were never seen.
	Missed []map[string]any `json:"missed,omitempty"`
}

type sourceDocument struct {
	Name        string   `json:"name"`
	Backend     string   `json:"backend"`
	Aggregation string   `json:"aggregation,omitempty"`
	Period      float64  `json:"period_seconds,omitempty"`
	Missing     []string `json:"field_missing,omitempty"`
}

// JSON writes a reading as one JSON document, indented. It returns the error of out.
func JSON(out io.Writer, v *View) error {
	s := &v.Source
	doc := document{
		Schema:  schema,
		At:      v.Frame.At,
		Source:  sourceDocument{s.Name, s.Backend, s.Aggregation, s.Period.Seconds(), keysOf(s.Missing)},
		Devices: []map[string]any{},
	}
	if v.Host != nil {
		doc.Host = hostView(v.Host)
	}
	if len(v.Job) > 0 {
		doc.Job = map[string]string{}
		for _, variable := range v.Job {
			doc.Job[variable.Name] = variable.Value
		}
	}
	for _, i := range v.shown(nil) {
		doc.Devices = append(doc.Devices, deviceView(v, i))
	}
	if s.Roster != nil {
		for i := range s.Roster.Missed {
			m := map[string]any{}
			putTexts(m, &s.Roster.Missed[i])
			doc.Missed = append(doc.Missed, m)
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := out.Write(diag.AppendJSON(nil, text.Bytes()))
	return err
}

func keysOf(fields []canonical.Field) []string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, Key(f))
	}
	return keys
}

func hostView(h *canonical.Host) map[string]float64 {
	view := map[string]float64{}
	for _, reading := range []struct {
		key   string
		value float64
	}{
		{"host_cpus", h.CPUs}, {"host_cpu_utilization_ratio", h.CPUUtilization},
		{"host_memory_total_bytes", h.MemoryTotal}, {"host_memory_available_bytes", h.MemoryAvailable},
	} {
		if finite(reading.value) {
			view[reading.key] = reading.value
		}
	}
	return view
}

// finite reports whether v was read and can be a JSON number.
func finite(v float64) bool { return canonical.Given(v) && !math.IsInf(v, 0) }

// deviceView returns a device: its labels, readings, verdict and allocations.
func deviceView(v *View, i int) map[string]any {
	d, verdict, values := &v.Frame.Topology.Devices[i], &v.Verdicts[i], v.Frame.Row(i)
	m := map[string]any{}
	putTexts(m, d)
	for f := range canonical.NumFields {
		switch value := values[f]; {
		case !finite(value):
		case canonical.Fields[f].Unit == canonical.Bitmask:
			m[Key(f)] = reasonsOf(value)
		default:
			m[Key(f)] = value
		}
	}
	if !d.Implied {
		if finite(verdict.RealUtilization) {
			m["gpu_real_utilization_ratio"] = verdict.RealUtilization
		}
		if finite(verdict.Coverage) {
			m["gpu_real_utilization_coverage_ratio"] = verdict.Coverage
		}
		m["gpu_workload_class"] = canonical.Classes[verdict.Class].Name
		m["bottleneck"] = canonical.Classes[verdict.Class].Bottleneck
		m["advice"] = canonical.Classes[verdict.Class].Advice
	}
	if !d.IsInstance() {
		m["gpu_health"] = verdict.Health.String()
		m["gpu_health_condition"] = raised(verdict)
	}
	if allocations := allocationsOf(v.Snapshot, i); len(allocations) > 0 {
		m["allocations"] = allocationViews(allocations)
	}
	return m
}

// putTexts adds the labels of a device that are not empty.
func putTexts(m map[string]any, d *canonical.Device) {
	for _, label := range deviceLabels {
		if value := label.of(d); value != "" {
			m[label.name] = value
		}
	}
}

// raised returns the raised conditions, never nil.
func raised(v *canonical.Verdict) []string {
	names := []string{}
	for c := range v.Findings.Raised.All() {
		names = append(names, c.String())
	}
	return names
}

// reasonsOf returns the reasons for reduced clocks, never nil.
func reasonsOf(bits float64) []string {
	names := []string{}
	for _, e := range canonical.ClockEventReasons {
		if uint64(bits)&e.Bit != 0 {
			names = append(names, e.Reason)
		}
	}
	return names
}

func allocationViews(allocations []canonical.Allocation) []map[string]string {
	var views []map[string]string
	for i := range allocations {
		a, m := &allocations[i], map[string]string{}
		for _, label := range []struct{ key, value string }{
			{"workload_namespace", a.Namespace}, {"workload_pod", a.Pod}, {"workload_container", a.Container},
			{"workload_kind", a.Kind}, {"workload_name", a.Name}, {"hpc_job", a.Job},
			{"hpc_user", a.User}, {"hpc_account", a.Account}, {"hpc_partition", a.Partition},
		} {
			if label.value != "" {
				m[label.key] = label.value
			}
		}
		views = append(views, m)
	}
	return views
}
