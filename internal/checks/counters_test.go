package checks

import (
	"bytes"
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/source/dcgm"
)

// wants are two readings; the second has two alternatives.
var wants = []CounterWant{
	{AnyOf: []canonical.Field{canonical.SMActive}, For: "utilization"},
	{AnyOf: []canonical.Field{canonical.NVLinkCRCFlitErrors, canonical.NVLinkReplayErrors}, For: "health"},
}

// files are counters files, with the messages for each line.
var files = []struct {
	name, text string
	fields     int
	want       string
}{
	{"all that is wanted", "# a comment\n\nDCGM_FI_PROF_SM_ACTIVE, gauge, SM\nDCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,counter,\"errors, flow\"\n", 2, ""},
	{"the other kind, other names", "DCGM_FI_PROF_SM_UTIL_RATIO,gauge,SM\ndcgm_nvlink_replay_error_count_total , counter , errors", 2, ""},
	{"nothing that is wanted", "DCGM_FI_DEV_GPU_TEMP,gauge,C\n", 1, `f: warning: gives no kpulse_gpu_sm_active_ratio, for utilization; add the line
    DCGM_FI_PROF_SM_ACTIVE,gauge,"Share of time, 0 to 1, a streaming multiprocessor had work, averaged over all of them."
f: warning: gives no kpulse_gpu_nvlink_errors_total, for health; add the line
    DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,counter,CRC errors in the flow control of all NVLinks.`},
	{"empty", "", 0, "f: names no field, so the exporter would serve nothing; write lines of NAME, type, help"},
	{"comments", "# DCGM_FI_PROF_SM_ACTIVE, gauge, SM\n", 0, "f: names no field, so the exporter would serve nothing; write lines of NAME, type, help"},
	{"too few columns", "DCGM_FI_DEV_GPU_TEMP; gauge; C\n", 0, "f:1: must have 3 columns and has 1; write NAME, type, help"},
	{"too many columns", "\nDCGM_FI_DEV_GPU_TEMP, gauge, temperature, in C\n", 0, `f:2: must have 3 columns and has 4; put a help with commas between quotes, as in DCGM_FI_DEV_GPU_TEMP,gauge,"temperature, in C"`},
	{"a quote behind a blank", `DCGM_FI_DEV_GPU_TEMP, gauge, "temperature, in C"`, 0, `f:1: is not CSV: bare " in non-quoted-field; write a quote right after its comma, as in NAME,type,"help, more help"`},
	{"an open quote", "DCGM_FI_DEV_GPU_TEMP,gauge,\"C\n", 0, `f:1: is not CSV: extraneous or missing " in quoted-field; write a quote right after its comma, as in NAME,type,"help, more help"`},
	{"a type that is none", "DCGM_FI_DEV_GPU_TEMP,gouge,C\n", 1, `f:1: DCGM_FI_DEV_GPU_TEMP has the type "gouge"; write gauge or counter`},
	{"a type that no field has", "DCGM_FI_DEV_GPU_TEMP,summary,C\n", 1, `f:1: DCGM_FI_DEV_GPU_TEMP has the type "summary"; write gauge or counter`},
	{"a field that is none", "GPU_TEMP,gauge,C\n", 1, `f:1: "GPU_TEMP" is not a field of DCGM; their names begin with DCGM_FI_`},
	{"a family of ours", "nvlink_limit_bytes_per_second,gauge,B\n", 1, `f:1: "nvlink_limit_bytes_per_second" is not a field of DCGM; their names begin with DCGM_FI_`},
	{"a tab", "\tDCGM_FI_DEV_GPU_TEMP,gauge,C\n", 1, `f:1: "\tDCGM_FI_DEV_GPU_TEMP" is not a field of DCGM; did you mean DCGM_FI_DEV_GPU_TEMP?`},
	{"a field twice", "DCGM_FI_DEV_GPU_TEMP,gauge,C\n#\nDCGM_FI_DEV_GPU_TEMP,gauge,C\n", 1, "f:3: DCGM_FI_DEV_GPU_TEMP is in line 1 already and would be served twice; remove one of them"},
	{"a help that is not UTF-8", "DCGM_FI_DEV_GPU_TEMP,gauge,\xb0C\n", 1, "f:1: DCGM_FI_DEV_GPU_TEMP has a help that is not UTF-8, and Prometheus refuses a page with it; write it in UTF-8"},
	{"what only warns", `DCGM_FI_PROF_SM_ACTIVE,gauge,
DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,counter,errors
DCGM_FI_DEV_VGPU_LICENSE_STATUS,gauge,a field that we do not read
DCGM_EXP_XID_ERRORS_COUNT,gauge,of the exporter
DCGM_EXP_XID_ERRORS_TOTAL,counter,of a newer exporter
DCGM_FI_DEV_MEMORY_UTIL_RATIO,gauge,of a still newer one (ratio)
DCGM_FI_DRIVER_VERSION,label,version
`, 7, `f:5: warning: DCGM_EXP_XID_ERRORS_TOTAL is new in dcgm-exporter 4.8.3, and an older one does not start with it; check against yours with --exporter=VERSION
f:6: warning: DCGM_FI_DEV_MEMORY_UTIL_RATIO is new in dcgm-exporter 4.9.0, and an older one does not start with it; check against yours with --exporter=VERSION`},
	{"fields of no DCGM", `DCGM_FI_DEV_GPU_TEMPS,gauge,near to a field that we read
DCGM_FI_DEV_FAN_SPED,gauge,near to a field that we do not read
DCGM_FI_DEV_WARP_DRIVE_LOAD,gauge,near to no field
`, 3, `f:1: DCGM_FI_DEV_GPU_TEMPS is a field of no known version of DCGM; did you mean DCGM_FI_DEV_GPU_TEMP? dcgm-exporter does not start with it
f:2: DCGM_FI_DEV_FAN_SPED is a field of no known version of DCGM; did you mean DCGM_FI_DEV_FAN_SPEED? dcgm-exporter does not start with it
f:3: DCGM_FI_DEV_WARP_DRIVE_LOAD is a field of no known version of DCGM; dcgm-exporter does not start with it`},
	{"a ConfigMap", "apiVersion: v1\nkind: ConfigMap\ndata:\n  metrics: |\n    DCGM_FI_DEV_GPU_TEMP, gauge, C\n", 0,
		`f: is a Kubernetes ConfigMap, and the exporter reads only the content of its key; write that to a file: kubectl get configmap NAME -o jsonpath='{.data.metrics}'`},
	{"a unit that nothing tells", "DCGM_FI_PROF_SM_ACTIVE,gauge,SM\nDCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,counter,x\nDCGM_FI_DEV_GPU_UTIL_RATIO,gauge,x\n", 3,
		`f:3: warning: DCGM_FI_DEV_GPU_UTIL_RATIO is percent in some versions and a ratio in others, and nothing in the file shows which; state it in its help: (in %) or (ratio)`},
	{"a unit that HELP tells", "DCGM_FI_PROF_SM_ACTIVE,gauge,SM\nDCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,counter,x\nDCGM_FI_DEV_GPU_UTIL_RATIO,gauge,x (ratio)\n", 3, ""},
	{"a label is not a series", "DCGM_FI_PROF_SM_ACTIVE,label,x\nDCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,counter,x\n", 2, `f: warning: gives no kpulse_gpu_sm_active_ratio, for utilization; add the line
    DCGM_FI_PROF_SM_ACTIVE,gauge,"Share of time, 0 to 1, a streaming multiprocessor had work, averaged over all of them."`},
}

func TestCheckCounters(t *testing.T) {
	for _, test := range files {
		lines, problems := CheckCounters("f", []byte(test.text), &ForExporter{Wants: wants})
		if got := problems.Error(); len(lines) != test.fields || got != test.want {
			t.Errorf("%s: %d fields, want %d; got\n%s\nwant\n%s", test.name, len(lines), test.fields, got, test.want)
		}
		if refused := len(problems) > strings.Count(test.want, "warning: "); problems.Refuse() != refused {
			t.Errorf("%s: refused %v", test.name, !refused)
		}
	}
}

// TestCountersOfAVersion: dcgm-exporter 4.8.2 does not start with names that came after it. What we
// serve ourselves may have names that we do not know.
func TestCountersOfAVersion(t *testing.T) {
	const text = "DCGM_EXP_XID_ERRORS_TOTAL,counter,x\nDCGM_FI_DEV_GPU_UTIL,gauge,x\nDCGM_FI_DEV_FB_USED_BYTES,gauge,x\n"
	total, bytes := "f:1: DCGM_EXP_XID_ERRORS_TOTAL is new in dcgm-exporter 4.8.3, ", "f:3: DCGM_FI_DEV_FB_USED_BYTES is new in dcgm-exporter 4.9.0, "
	for version, want := range map[string][]string{
		"4.8.2": {total + "and 4.8.2 does not", bytes + "and 4.8.2 does not"}, "4.8.3": {bytes + "and 4.8.3 does not"}, "4.9.0": nil, "4.10": nil,
		"3.3.9": {total, bytes, "f: warning: is checked against the names of dcgm-exporter 4.8.2"},
	} {
		_, problems := CheckCounters("f", []byte(text), &ForExporter{Version: version})
		said := problems.Error()
		if len(problems) != len(want) || problems.Refuse() != (len(want) > 0) {
			t.Errorf("%s: %s", version, said)
		}
		for _, part := range want {
			if !strings.Contains(said, part) {
				t.Errorf("%s: no %q in\n%s", version, part, said)
			}
		}
	}
	if lines, problems := CheckCounters("f", []byte("DCGM_FI_DEV_WARP_DRIVE_LOAD,gauge,x\n"), nil); problems.Refuse() || len(problems) != 1 || len(lines) != 1 {
		t.Errorf("for us: %v", problems)
	}
}

// TestTheLinesToAddAreRight: a file with all suggested lines lacks nothing.
func TestTheLinesToAddAreRight(t *testing.T) {
	var every []CounterWant
	for f := range canonical.NumFields {
		if line, _ := lineFor(f); line != "" {
			every = append(every, CounterWant{AnyOf: []canonical.Field{f}, For: "all"})
		}
	}
	if len(every) < 40 {
		t.Fatalf("lines for %d readings only", len(every))
	}
	text := "DCGM_FI_DEV_VGPU_LICENSE_STATUS,gauge,licence\n"
	_, problems := CheckCounters("f", []byte(text), &ForExporter{Wants: every})
	if len(problems) != len(every) {
		t.Fatalf("%d of %d readings are reported as missing", len(problems), len(every))
	}
	for _, p := range problems {
		text += p.Below + "\n"
	}
	if _, problems = CheckCounters("f", []byte(text), &ForExporter{Wants: every}); len(problems) > 0 {
		t.Error(problems)
	}
}

// FuzzCheck: no file crashes Check, and the exporter's loader, rewritten here after its
// source, accepts each file that Check accepts.
func FuzzCheckCounters(f *testing.F) {
	for _, test := range files {
		f.Add([]byte(test.text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fields, problems := CheckCounters("f", body, &ForExporter{Wants: wants})
		lines := bytes.Count(body, []byte("\n")) + 1
		for _, p := range problems {
			if p.Text == "" || p.Line < 0 || p.Line > lines || p.String() == "" {
				t.Fatalf("%d lines have the problem %+v", lines, p)
			}
		}
		if problems.Refuse() {
			return
		}
		reader := csv.NewReader(bytes.NewReader(body))
		reader.Comment = '#'
		records, err := reader.ReadAll()
		if err != nil || len(records) != len(fields) {
			t.Fatalf("the exporter reads %d lines, we %d fields: %v", len(records), len(fields), err)
		}
		for _, record := range records {
			if len(record) != 3 || !slices.Contains([]string{"gauge", "counter", "label"}, strings.Trim(record[1], " ")) {
				t.Fatalf("the exporter refuses %q", record)
			}
		}
	})
}

// TestImageCounters: the image's file has the lines of the table of fields, for what dcgm-exporter 4.8 serves by default;
// only the licence status of vGPUs is missing, which we do not read.
func TestImageCounters(t *testing.T) {
	const file = "../../deploy/image/counters.csv"
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counters, problems := CheckCounters(file, body, nil)
	if len(problems) > 0 || len(counters) != 25 {
		t.Fatalf("%d lines, %v", len(counters), problems)
	}
	var names []string
	for _, c := range counters {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(c.Name, "DCGM_FI_DEV_"), "DCGM_FI_"))
		if c.Type != dcgm.LabelType && (c.Help != dcgm.Fields[c.Field].Help || c.Type != dcgm.Fields[c.Field].Type) {
			t.Errorf("%s is %s, %q, in the table %+v", c.Name, c.Type, c.Help, dcgm.Fields[c.Field])
		}
	}
	if got := strings.Join(names, " "); got != "SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER GPU_UTIL "+
		"MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS FB_FREE FB_USED FB_RESERVED UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE "+
		"NVLINK_BANDWIDTH_TOTAL PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES DRIVER_VERSION" {
		t.Error(got)
	}
}
