package settings

import (
	"reflect"
	"testing"
	"time"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// goodFiles are files, and how they change the defaults.
var goodFiles = []struct {
	name, text string
	change     func(*Config)
}{
	{"nothing", "", nil},
	{"a comment", "# later\n", nil},
	{"null", "null\n", nil},
	{"no keys", "{}\n", nil},
	{"an end of the document", "preset: ai\n...\n", nil},
	{"empty sections", "thresholds:\ntemperatures:\nhealth:\nxids:\ndialect:\nlimits: {}\n", nil},
	{"windows line ends and a byte order mark", "\ufeffpreset: hpc\r\nmin_coverage: 0.25\r\n", func(c *Config) {
		c.Judge.Preset, c.Judge.MinCoverage = "hpc", 0.25
	}},
	{"JSON", `{"preset": "mem", "limits": {"max_requests": 3}}`, func(c *Config) {
		c.Judge.Preset, c.Limits.MaxRequests = "mem", 3
	}},
	{"weights", "weights: {sm: 1, tensor: 2.5, dram: 0, engine: 1e-1}\n", func(x *Config) {
		x.Judge.Preset, x.Judge.Weights = compute.Custom, c.Weights{SM: 1, Tensor: 2.5, Engine: 0.1}
	}},
	{"missing inputs", "missing_inputs: zero\n", func(c *Config) { c.Judge.Missing = compute.Zero }},
	{"a whole number for a fraction", "min_coverage: 1\n", func(c *Config) { c.Judge.MinCoverage = 1 }},
	{"thresholds", "thresholds:\n  io_sm: 0.31\n  transfer_pcie: 2e9\n  rise_hold: 1h30m\n  remapped_rows: 3\n  stalled_readings: 5\n  stalled_span: 0\n", func(c *Config) {
		t := &c.Judge.Thresholds
		t.StalledReadings, t.StalledSpan = 5, 0
		t.IOSM, t.TransferPCIe, t.RiseHold, t.RemappedRows = 0.31, 2e9, 90*time.Minute, 3
	}},
	{"a duration in seconds", "thresholds: {rise_hold: 90}\n", func(c *Config) { c.Judge.Thresholds.RiseHold = 90 * time.Second }},
	{"temperatures go before the built-in ones", "temperatures:\n  H100 PCIe: 85\n  H100: 96\n  B200: 90.5\n  other: 80\n", func(c *Config) {
		c.Judge.Thresholds.Temperature = 80
		c.Judge.Thresholds.Temperatures = []compute.ModelTemperature{
			{Model: "H100 PCIe", Celsius: 85}, {Model: "H100", Celsius: 96}, {Model: "B200", Celsius: 90.5},
			{Model: "A100", Celsius: 93}, {Model: "H200", Celsius: 95}, {Model: "RTX 6000", Celsius: 92}, {Model: "MI300", Celsius: 95}, {Model: "MI35", Celsius: 100},
		}
	}},
	{"a model that is a number", "temperatures: {4090: 88}\n", func(c *Config) {
		c.Judge.Thresholds.Temperatures = append([]compute.ModelTemperature{{Model: "4090", Celsius: 88}}, c.Judge.Thresholds.Temperatures...)
	}},
	{"XIDs", "xids:\n  109: warning\n  31: {severity: none, action: none}\n  45: {action: check_hardware}\n  13: {severity: fatal}\n  711: fatal\nxid_hold: 48h\n", func(x *Config) {
		x.Judge.XIDs = map[uint32]compute.XIDOverride{
			109: {Severity: c.SeverityWarning, Action: c.ActionCheckHardware},
			31:  {Severity: c.SeverityNone, Action: c.ActionNone},
			45:  {Severity: c.SeveritySympathetic, Action: c.ActionCheckHardware},
			13:  {Severity: c.SeverityFatal, Action: c.ActionResetGPU},
			711: {Severity: c.SeverityFatal, Action: c.ActionResetGPU},
		}
		x.Judge.XIDHold = 48 * time.Hour
	}},
	// YAML 1.1 reads a plain off as false.
	{"conditions", "health:\n  gpu_temperature: off\n  memory_temperature: 'off'\n  pcie_replay: Off\n  row_remap_failure: hot\n  fabric: warn\n  memory_worn: default\n  xid_recent: crit\n  profiling_stalled: warn\n", func(x *Config) {
		s := &x.Judge.States
		s[c.CondGPUTemperature], s[c.CondMemoryTemperature], s[c.CondPCIeReplay] = 0, 0, 0
		s[c.CondRowRemapFailure], s[c.CondXIDRecent], s[c.CondProfilingStalled] = c.RaisesHot, c.RaisesCrit, c.RaisesWarn
		s[c.CondFabric] = c.RaisesWarn
	}},
	{"the dialect", `
dialect:
  - names: [MY_SM, my_sm]
    field: gpu_sm_active_ratio
    unit: percent
  - {field: kpulse_gpu_temperature_celsius, unit: degrees Celsius, names: [MY_TEMP], labels: }
  - names: [MY_DBE]
    field: gpu_ecc_errors_total
    labels: {scope: volatile, severity: uncorrectable}
    unit: number
`, func(x *Config) {
		x.Rows = []translate.Row{
			{Field: c.SMActive, Unit: translate.Percent, Names: []string{"MY_SM", "my_sm"}},
			{Field: c.Temperature, Unit: translate.Celsius, Names: []string{"MY_TEMP"}},
			{Field: c.ECCDoubleBitVolatile, Unit: translate.Number, Names: []string{"MY_DBE"}},
		}
	}},
	{"limits", "limits:\n  series_limit: 5000\n  max_body: 1GiB\n  memory: 256MiB\n  max_label_value: 4KiB\n  max_requests: 1\n  min_read_rate: 1\n", func(c *Config) {
		c.Limits = Limits{Series: 5000, MaxBody: 1 << 30, Memory: 256 << 20, MaxLabelValue: 4096, MaxRequests: 1, MinReadRate: 1}
	}},
	{"kernel_log", "kernel_log: true\n", func(c *Config) { c.KernelLog = "/dev/kmsg" }},
	{"kernel_log of a file", "kernel_log: /run/kmsg\n", func(c *Config) { c.KernelLog = "/run/kmsg" }},
	{"state_file", "state_file: /srv/kpulse.json\n", func(c *Config) { c.StateFile = "/srv/kpulse.json" }},
	{"replays and rows", "thresholds: {pcie_replays: 0, remapped_rows: 1.5}\nhealth: {nvlink_down: crit, uncorrectable_remapped_rows: crit, nvswitch: off}\n", func(x *Config) {
		x.Judge.Thresholds.PCIeReplays, x.Judge.Thresholds.RemappedRows = 0, 1.5
		s := &x.Judge.States
		s[c.CondNVLinkDown], s[c.CondUncorrectableRemappedRows], s[c.CondNVSwitch] = c.RaisesCrit, c.RaisesCrit, 0
	}},
	{"compat", "compat: [4.8, '1', 2]\n", func(c *Config) { c.Compat = []string{"4.8", "1", "2"} }},
	{"kube", "kube:\n  config: /etc/kubeconfig\n  workloads: true\n  workload_labels: [app, volcano.sh/job-name=Job]\n", func(c *Config) {
		c.Kube = Kube{Config: "/etc/kubeconfig", Workloads: true, WorkloadLabels: []string{"app", "volcano.sh/job-name=Job"}, Discover: Default().Kube.Discover}
	}},
	{"discovery", "kube:\n  discover: {selector: true, namespace: gpu, port: 9500, path: /m, scheme: https, max_sources: 7}\n", func(c *Config) {
		c.Kube.Discover = Discover{Selector: "app.kubernetes.io/name=dcgm-exporter or app=nvidia-dcgm-exporter", Namespace: "gpu", Port: "9500", Path: "/m", Scheme: "https", MaxSources: 7}
	}},
	{"discovery by label", "kube: {discover: {selector: 'app in (a, b)'}}\n", func(c *Config) { c.Kube.Discover.Selector = "app in (a, b)" }},
	{"no discovery", "kube: {discover: {selector: false}}\n", nil},
	{"the kubelet's socket", "kube: {pod_resources: true}\n", func(c *Config) { c.Kube.PodResources = "/var/lib/kubelet/pod-resources/kubelet.sock" }},
	{"the kubelet's socket elsewhere", "kube: {pod_resources: /run/k.sock}\n", func(c *Config) { c.Kube.PodResources = "/run/k.sock" }},
	{"no kubelet", "kube: {pod_resources: false}\n", func(*Config) {}},
	{"kubeconfig beside the file", "kube: {config: kubeconfig, workload_labels: []}\n", func(c *Config) { c.Kube.Config = "kubeconfig" }},
	{"rules", "rules:\n  files: [/etc/a.yml, 'sub/*.yml']\n  window: 24h\n  max_samples: 1\n", func(c *Config) {
		c.Rules = Rules{Files: []string{"/etc/a.yml", "sub/*.yml"}, Window: Duration(24 * time.Hour), MaxSamples: 1}
	}},
}

func TestParseGoodFiles(t *testing.T) {
	for _, test := range goodFiles {
		t.Run(test.name, func(t *testing.T) {
			want := Default()
			if test.change != nil {
				test.change(&want)
			}
			got, err := Parse("good.yml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Config, want) {
				t.Errorf("got\n%+v, want\n%+v", got, want)
			}
		})
	}
}

const (
	syntaxRemedy = "; check quotes, and the indentation, which must be spaces"
	xidsHint     = "write severities by code, such as 109: warning"
	xidHint      = "write a severity, such as warning, or severity and action, such as {severity: none, action: none}"
	weightsHint  = "give four finite numbers of at least 0, one of them positive, in the order sm,tensor,dram,engine, such as 0.35,0.35,0.2,0.1"
	stateHint    = "write hot, warn, crit, default, or off to leave the condition out"
	rowHint      = "write rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"
	unitHint     = "use one of ratio, percent, bytes, MiB, bytes per second, MB/s of 1000 KiB, watts, joules, millijoules, degrees Celsius, hertz, megahertz, seconds, nanoseconds, number"
)

// badFiles are mistakes that operators may make, with the complete error for each.
var badFiles = []struct{ text, want string }{
	// Invalid YAML, or not our settings.
	{"preset: ai\nhealth:\n\tpcie_replay: off\n", "bad.yml:3: not YAML: found character that cannot start any token" + syntaxRemedy},
	{"preset: a: b\n", "bad.yml:1: not YAML: mapping values are not allowed in this context" + syntaxRemedy},
	{"preset: ai\nhealth: [\n\n\n", "bad.yml:4: not YAML: did not find expected node content" + syntaxRemedy},
	{"preset: ai\nhealth: {pcie_replay: off\nlimits: {}\n", "bad.yml:1: not YAML: did not find expected ',' or '}'" + syntaxRemedy},
	{"preset: 'ai\nx: y", "bad.yml:2: not YAML: found unexpected end of stream" + syntaxRemedy},
	{"preset: ai\n\x01", "bad.yml:1: not YAML: control characters are not allowed" + syntaxRemedy},
	{"preset: *mine", "bad.yml:1: not YAML: unknown anchor 'mine' referenced" + syntaxRemedy},
	{"preset: ai\n---\npreset: hpc\n", "bad.yml:2: a second document begins here; keep one and remove the ---"},
	{"preset: ai\n---\n]\n", "bad.yml:2: not YAML: did not find expected node content" + syntaxRemedy},
	{"- preset\n", "bad.yml:1: a list where keys are expected; write settings such as preset: ai"},
	{"preset\n", `bad.yml:1: a value where keys are expected; write settings such as preset: ai`},
	{"? [a]\n: b\n", "bad.yml:1: a list where a key is expected; write a word"},

	// Keys.
	{"\nmin-coverage: 1\n", "bad.yml:2: min-coverage: is not a known key; did you mean min_coverage?"},
	{"backend: replay\n", "bad.yml:1: backend: is not a known key; the known ones are sources, limits, kernel_log, state_file, preset, weights, missing_inputs, min_coverage, rules, thresholds, temperatures, health, xids, xid_hold, dialect, kube, compat, series, web_hosts"},
	{"preset: ai\n\npreset: hpc\n", "bad.yml:3: preset: is in line 1 already; remove one of them"},
	{"health:\n  pcie_replay: off\n  pcie_replay: off\n", "bad.yml:3: health.pcie_replay: is in line 2 already; remove one of them"},
	{"sources: http://u:hunter2@node:9400\n", `bad.yml:1: sources: a value where a list is expected; write sources such as {source: http://node7:9400/metrics}`},
	{"sources: [http://u:hunter2@node:9400]\n", `bad.yml:1: sources[1]: a value where keys are expected; write its keys: backend, source, poll, node_name, dcgm_host, dcgm_fields, counters, expected_gpus, http_config`},
	{"sources:\n- url: a\n", "bad.yml:2: sources[1].url: is not a known key; the known ones are backend, source, poll, node_name, dcgm_host, dcgm_fields, counters, expected_gpus, http_config"},
	{"sources:\n- backend: [dcgm]\n", "bad.yml:2: sources[1].backend: a list where one value is expected; write a word, or quote it"},
	{"sources:\n- poll: 1s\n  poll: 2s\n", "bad.yml:3: sources[1].poll: is in line 2 already; remove one of them"},
	{"sources:\n- http_config: secret.yml\n", "bad.yml:2: sources[1].http_config: a value where another form is expected; write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"},
	{"sources:\n- source: https://n\n  http_config:\n    basic_auth:\n      username: u\n      pasword: hunter2\n", "bad.yml:3: sources[1].http_config: pasword is not a known key; see the documentation of Prometheus"},
	{"sources:\n- http_config: {basic_auth: u:hunter2}\n", "bad.yml:2: sources[1].http_config: a value where another form is expected; write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"},
	{"sources:\n- http_config: {basic_auth: {username: u}, authorization: {credentials: hunter2}}\n",
		"bad.yml:2: sources[1].http_config: at most one of basic_auth, oauth2 & authorization must be configured; " + wantHTTP},
	{"sources:\n- http_config: {oauth2: {client_secret: hunter2}}\n", "bad.yml:2: sources[1].http_config: oauth2 client_id must be configured; " + wantHTTP},
	{"sources:\n- http_config: {tls_config: {insecure_skip_verify: hunter2}}\n", "bad.yml:2: sources[1].http_config: a value where another form is expected; write what Prometheus takes as http_config, such as tls_config: {ca_file: ca.pem}"},
	{"sources:\n- http_config: {proxy_url: \"http://u:hunter2@[x\"}\n", "bad.yml:2: sources[1].http_config: a value where another form is expected; " + wantHTTP},
	{"kube: true\n", `bad.yml:1: kube: a value where keys are expected; write its keys: discover, pod_resources, workloads, workload_labels, config`},
	{"kube:\n  discover: true\n", `bad.yml:2: kube.discover: a value where keys are expected; write its keys: selector, namespace, port, path, scheme, max_sources, http_config`},
	{"kube:\n  discover:\n    selector:\n    - app=foo\n", "bad.yml:3: kube.discover.selector: a list where one value is expected; write a word, or quote it"},
	{"kube: {discover: {selector: ''}}\n", "bad.yml:1: kube.discover.selector: an empty selector selects nothing; write a label of the exporter's pods, such as app=nvidia-dcgm-exporter, or true, or false"},
	{"kube:\n  discover:\n    selector: a b\n", `bad.yml:3: kube.discover.selector: "a b" is not a label selector: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt; write one such as app=nvidia-dcgm-exporter, or several with or between them`},
	{"kube:\n  discover:\n    port: '0'\n", `bad.yml:3: kube.discover.port: "0" is neither the name nor the number of a port; write one such as metrics or 9400`},
	{"kube: {pod_resources: sure}\n", `bad.yml:1: kube.pod_resources: "sure" is not a path of a socket; begin it with /, as in /var/lib/kubelet/pod-resources/kubelet.sock, or write true for that one`},
	{"kube:\n  discover:\n    path: m\n    scheme: ftp\n    namespace: A_\n    max_sources: 0\n", "bad.yml:3: kube.discover.path: \"m\" is not a path of a URL; begin it with /, as in /metrics\nbad.yml:4: kube.discover.scheme: \"ftp\" is not a scheme of an exporter; write http or https\nbad.yml:5: kube.discover.namespace: \"A_\" is not a name of a namespace; write one such as gpu-operator\nbad.yml:6: kube.discover.max_sources: \"0\" is not a whole number of at least 1; write it in digits"},
	{"kube:\n  workload_labels: [a, b/c/d]\n", `bad.yml:2: kube.workload_labels: "b/c/d" is not a key of a label; write one such as app.kubernetes.io/name`},
	{"kube: {workload_labels: ['a=b c']}\n", `bad.yml:1: kube.workload_labels: "b c" is not a kind; write one such as Job, of letters and digits, or the key of the label alone`},
	{"rules: [a.yml]\n", "bad.yml:1: rules: a list where keys are expected; write its keys: files, window, max_samples"},
	{"rules: {file: a.yml}\n", "bad.yml:1: rules.file: is not a known key; did you mean files?"},
	{"rules:\n  files: a.yml\n", `bad.yml:2: rules.files: a value where a list is expected; write one such as [NAME, NAME]`},
	{"rules:\n  files:\n  - {a: b}\n", "bad.yml:3: rules.files[1]: keys where one value is expected; write a word, or quote it"},
	{"compat: [4.8, 5]\n", `bad.yml:1: compat: "5" is not a dialect that readings can be served in; use a version of dcgm-exporter from 1 to 4.9, such as 4.8, or jobstats`},
	{"compat: 4.8\n", `bad.yml:1: compat: a value where a list is expected; write one such as [NAME, NAME]`},
	{"rules: {window: soon}\n", `bad.yml:1: rules.window: "soon" is not a duration; write 15s, 500ms or bare seconds such as 2`},
	{"rules: {window: 25h}\n", "bad.yml:1: rules.window: 25h is out of range; write 1m to 24h"},
	{"rules: {max_sample: 5}\n", "bad.yml:1: rules.max_sample: is not a known key; did you mean max_samples?"},
	{"health: &h {pcie_replay: off}\nthresholds: *h\n", "bad.yml:2: thresholds: an alias (*h) is not followed; write out what it stands for"},
	{"health: {<<: 3}\n", "bad.yml:1: health.<<: is not a known key; the known ones are row_remap_failure, uncorrectable_remapped_rows, pcie_replay, pcie_degraded, gpu_temperature, memory_temperature, recovery_action, xid_fatal, xid_recent, xid_repeated, ecc_double_bit, row_remap_pending, retired_pages_pending, memory_worn, thermal_slowdown, power_brake, nvlink_errors, nvlink_flapping, nvlink_down, fabric, nvswitch, profiling_stalled"},

	// The composite.
	{"preset: gaming\n", `bad.yml:1: preset: preset "gaming" is unknown: use one of ai, hpc, mem, or give weights`},
	{"preset:\n", "bad.yml:1: preset: is empty; write a value, or remove the key"},
	{"weights: [1, 1, 1, 1]\n", "bad.yml:1: weights: a list where keys are expected; write keys such as sm"},
	{"weights:\n", `bad.yml:1: preset "custom" is unknown: use one of ai, hpc, mem, or give weights`},
	{"weights: {sm: 1, dram: 1, engine: 1, tensors: 1}\n", "bad.yml:1: weights.tensors: is not a known key; did you mean tensor?"},
	{"weights:\n  sm: -1\n  tensor: 1\n  dram: 1\n  engine: 1\n", "bad.yml:1: weights: a weight is -1: " + weightsHint},
	{"weights: {sm: 0, tensor: 0, dram: 0, engine: 0}\n", `bad.yml:1: preset "custom" is unknown: use one of ai, hpc, mem, or give weights`},
	{"weights: {sm: .nan, tensor: 0, dram: 0, engine: 0}\n", `bad.yml:1: weights.sm: ".nan" is not a number, or is too large; write it in digits`},
	{"missing_inputs: guess\n", `bad.yml:1: missing_inputs: missing inputs cannot be treated as "guess": use one of renormalize, zero`},
	{"min_coverage: 50\n", "bad.yml:1: min_coverage: minimum coverage is 50: make it a fraction from 0 to 1, such as 0.5"},
	{"min_coverage: half\n", `bad.yml:1: min_coverage: "half" is not a number, or is too large; write it in digits`},

	// Thresholds, and several problems at a time.
	{"thresholds:\n  idle_engine: 5\n  idle_dram: 5%\n  idle_utilisation: 0.1\n", "bad.yml:2: thresholds.idle_engine: 5 is not a fraction: make idle_engine one from 0 to 1, such as 0.05 for 5 percent\nbad.yml:3: thresholds.idle_dram: \"5%\" is not a number, or is too large; write it in digits\nbad.yml:4: thresholds.idle_utilisation: is not a known key; did you mean idle_utilization?"},
	{"thresholds: {transfer_pcie: .inf}\n", `bad.yml:1: thresholds.transfer_pcie: ".inf" is not a number, or is too large; write it in digits`},
	{"thresholds: {remapped_rows: -1}\n", "bad.yml:1: thresholds.remapped_rows: -1 is out of range: make remapped_rows a finite number of at least 0"},
	{"thresholds: {pcie_replays: -0.5}\n", "bad.yml:1: thresholds.pcie_replays: -0.5 is out of range: make pcie_replays a finite number of at least 0"},
	{"state_file: [a]\n", "bad.yml:1: state_file: a list where one value is expected; write a word, or quote it"},
	{"thresholds: {rise_hold: 0}\n", "bad.yml:1: thresholds.rise_hold: 0s is too short: make rise_hold a positive duration, such as 10m"},
	{"thresholds: {stalled_span: -1s}\n", "bad.yml:1: thresholds.stalled_span: -1s is too short: make stalled_span a duration of at least 0, such as 10s"},
	{"thresholds: 5\n", "bad.yml:1: thresholds: a value where keys are expected; write keys such as idle_utilization"},

	// Temperatures.
	{"temperatures: {H100: 950}\n", "bad.yml:1: temperatures.H100: warning temperature of H100 is 950: make it above 0 and at most 200 degrees Celsius"},
	{"temperatures:\n  '': 90\n", "bad.yml:2: temperatures.: a warning temperature of 90 has no model: name a part of the model's name, such as H100"},
	{"temperatures: {other: 0}\n", "bad.yml:1: temperatures.other: warning temperature of other models is 0: make it above 0 and at most 200 degrees Celsius"},
	{"temperatures: 90\n", `bad.yml:1: temperatures: a value where keys are expected; write degrees Celsius by model, such as H100: 95`},

	// Health.
	{"health: {pcie_replay: ok}\n", `bad.yml:1: health.pcie_replay: "ok" is not a state a condition can raise; ` + stateHint},
	{"health:\n  gpu_temprature: off\n", "bad.yml:2: health.gpu_temprature: is not a known key; did you mean gpu_temperature?"},
	{"xids:\n  109: warn\n", `bad.yml:2: xids.109: "warn" is not a severity; the known ones are none, sympathetic, application, warning, fatal`},
	{"xids:\n  109:\n    severity: fatal\n    action: rest_gpu\n", `bad.yml:4: xids.109.action: "rest_gpu" is not an action; did you mean reset_gpu?`},
	{"xids: {fallen: fatal}\n", "bad.yml:1: xids.fallen: is not an XID, which is a number from 1 to 1023; " + xidsHint},
	{"xids: {0: fatal}\n", "bad.yml:1: xids.0: is not an XID, which is a number from 1 to 1023; " + xidsHint},
	{"xids: {079: fatal}\n", "bad.yml:1: xids.079: is not an XID, which is a number from 1 to 1023; " + xidsHint},
	{"xids: {79: }\n", "bad.yml:1: xids.79: is empty; write a value, or remove the key"},
	{"xids: {79: [fatal]}\n", "bad.yml:1: xids.79: a list where one value is expected; write a word, or quote it"},
	{"xids:\n  79: {severety: fatal}\n", "bad.yml:2: xids.79.severety: is not a known key; did you mean severity?"},
	{"xids: [79]\n", "bad.yml:1: xids: a list where keys are expected; " + xidsHint},
	{"xids:\n  79: fatal\n  79: none\n", "bad.yml:3: xids.79: is in line 2 already; remove one of them"},
	{"xid_hold: 0\n", "bad.yml:1: xid_hold: 0s is too short: make xid_hold a positive duration, such as 24h"},
	{"health: off\n", "bad.yml:1: health: a value where keys are expected; write keys such as row_remap_failure"},

	// The dialect.
	{"dialect: {names: [A]}\n", "bad.yml:1: dialect: keys where a list is expected; write rows such as {names: [MY_SM_ACTIVE], field: gpu_sm_active_ratio, unit: percent}"},
	{"dialect:\n  - A\n", `bad.yml:2: dialect[1]: a value where keys are expected; ` + rowHint},
	{"dialect:\n  - {names: [A], field: gpu_power_watts}\n", `bad.yml:2: dialect[1]: unit "" of gpu_power_watts is unknown; use one such as "percent" or "bytes"`},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: watts, scale: 2}\n", "bad.yml:2: dialect[1].scale: is not a known key; the known ones are names, field, unit, labels"},
	{"dialect:\n  - {names: A, field: gpu_power_watts, unit: watts}\n", `bad.yml:2: dialect[1].names: a value where a list is expected; write one such as [NAME, NAME]`},
	{"dialect:\n  - {names: [], field: gpu_power_watts, unit: watts}\n", "bad.yml:2: dialect[1]: no family is named for gpu_power_watts; name one or remove the row"},
	{"dialect:\n  - names: [A]\n    unit: watts\n    field: gpu_power_wats\n", `bad.yml:2: dialect[1]: "gpu_power_wats" is not a reading of kpulse-proxy; write one such as gpu_power_watts`},
	{"dialect:\n  - {names: [A], field: x, unit: watts}\n", `bad.yml:2: dialect[1]: "x" is not a reading of kpulse-proxy; write one such as gpu_sm_active_ratio`},
	{"dialect:\n  - {names: [A], field: gpu_temperature_warning_celsius, unit: degrees Celsius}\n", `bad.yml:2: dialect[1]: "gpu_temperature_warning_celsius" is not a reading of kpulse-proxy; write one such as gpu_temperature_margin_celsius`},
	{"dialect:\n  - {names: [A], field: gpu_remapped_rows_total, unit: number}\n", "bad.yml:2: dialect[1]: gpu_remapped_rows_total has other labels; give one of {severity: uncorrectable} or {severity: correctable}"},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: watts, labels: {severity: correctable}}\n", "bad.yml:2: dialect[1]: gpu_power_watts has other labels; give one of {}"},
	{"dialect:\n  - {names: [A], field: gpu_remapped_rows_total, unit: number, labels: none}\n", `bad.yml:2: dialect[1].labels: a value where keys are expected; write labels such as {severity: correctable}`},
	{"rules: {window: 1s, max_samples: 0}\n", "bad.yml:1: rules.max_samples: \"0\" is not a whole number of at least 1; write it in digits\nbad.yml:1: rules.window: 1s is out of range; write 1m to 24h"},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: kilowatts}\n", `bad.yml:2: dialect[1]: unit "kilowatts" of gpu_power_watts is unknown; use one such as "percent" or "bytes"`},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: }\n", "bad.yml:2: dialect[1].unit: is empty; write a value, or remove the key"},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: percent}\n", `bad.yml:2: dialect[1]: gpu_power_watts is in watts, which "percent" cannot be converted to; correct the unit or the reading`},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: watts}\n  - {names: [DCGM_FI_DEV_GPU_TEMP], field: gpu_power_watts, unit: watts}\n", `bad.yml:3: dialect[2]: family "DCGM_FI_DEV_GPU_TEMP" already has a meaning; leave it out`},
	{"dialect:\n  - {names: [A], field: gpu_power_watts, unit: watts}\n  - {names: [B, A], field: gpu_energy_joules_total, unit: joules}\n", `bad.yml:3: dialect[2]: family "A" already has a meaning; leave it out`},

	// Limits.
	{"limits: {series_limit: 0}\n", `bad.yml:1: limits.series_limit: "0" is not a whole number of at least 1; write it in digits`},
	{"limits: {max_body: 64XB}\n", `bad.yml:1: limits.max_body: "64XB" is not a size; write 64MiB, 1GiB or bytes`},
	{"limits: {max_body: []}\n", "bad.yml:1: limits.max_body: a list where one value is expected; write a word, or quote it"},
	{"limits: {poll: 3s}\n", "bad.yml:1: limits.poll: is not a known key; the known ones are max_body, memory, max_label_value, series_limit, max_requests, min_read_rate"},
}

func TestParseBadFiles(t *testing.T) {
	for _, test := range badFiles {
		t.Run(test.text, func(t *testing.T) {
			got, err := Parse("bad.yml", []byte(test.text))
			if err == nil {
				t.Fatalf("accepted as %+v", got)
			}
			if err.Error() != test.want {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
			if got != nil {
				t.Errorf("with its error it returns %+v", got)
			}
		})
	}
}

// TestDefaultsAreNotShared: the changes of one file do not affect the defaults
// of the next.
func TestDefaultsAreNotShared(t *testing.T) {
	for _, test := range goodFiles {
		if _, err := Parse("good.yml", []byte(test.text)); err != nil {
			t.Error(err)
		}
	}
	fresh := Config{Judge: compute.DefaultOptions(), Limits: Limits{Series: 250_000, MaxBody: 67_108_864, MaxLabelValue: 2048, MaxRequests: 40, MinReadRate: 16_384}, Rules: Rules{Window: Duration(5 * time.Minute), MaxSamples: 2_000_000}, Kube: Kube{Discover: Discover{Path: "/metrics", Scheme: "http", MaxSources: 500}}, Series: Series{Form: "lean"}}
	if got := Default(); !reflect.DeepEqual(got, fresh) {
		t.Errorf("the defaults became %+v", got)
	}
}

// TestRuleFilesLieBesideTheConfigFile: rule files are relative to the config file, not to the
// working directory.
func TestRuleFilesLieBesideTheConfigFile(t *testing.T) {
	got, err := Parse("/etc/kpulse/config.yml", []byte("rules: {files: [rules/*.yml, ../b.yml, /c.yml]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/etc/kpulse/rules/*.yml", "/etc/b.yml", "/c.yml"}; !reflect.DeepEqual(got.Rules.Files, want) {
		t.Errorf("got %v, want %v", got.Rules.Files, want)
	}
}
