package settings

import (
	"fmt"
	"strings"
	"testing"
)

// refusedLines are files that are refused because of one line, for every kind of
// refusal; yaml.v3 and Prometheus report no line for most of these.
var refusedLines = []struct {
	text string
	line int
}{
	// Invalid YAML.
	{"\n\n@\n", 3},
	{"preset: |\n x\n\ty\n", 3},
	{"preset: ai\n...\nx\n", 3},
	{"preset: ai\n---\npreset: ai\n", 2},
	// Aliases and merges.
	{"preset: &x ai\nmissing_inputs: *x\n", 2},
	{"preset: &a [*a]\n", 1},
	{"sources:\n- source: http://a\n  http_config:\n    tls_config: &t {ca_file: a}\n    oauth2: {tls_config: *t}\n", 5},
	{"preset: ai\n<<: 5\n", 2},
	{"limits:\n  <<: [1]\n", 2},
	// Tags.
	{"\npreset: !!int foo\n", 2},
	{"preset: ai\nmin_coverage: !!float x\n", 2},
	{"\n\npreset: !!binary '###'\n", 3},
	{"\npreset: !!timestamp x\n", 2},
	{"rules:\n  files:\n  - a.yml\n  - !!float x\n", 4},
	{"temperatures:\n  A100: 90\n  H100: !!float x\n", 3},
	{"dialect:\n- names:\n  - A\n  - !!binary '#'\n  field: gpu_power_watts\n  unit: watts\n", 4},
	// Types, durations, sizes and counts.
	{"\n? {a: b}\n: c\n", 2},
	{"- a\n", 1},
	{"thresholds:\n  rise_hold: soon\n", 2},
	{"thresholds:\n  rise_hold: -1\n", 2},
	{"rules:\n  files: [a]\n  window: 1\n", 3},
	{"rules:\n  window: 9999999999999h\n", 2},
	{"rules:\n  max_samples: 0\n", 2},
	{"limits:\n  max_body: -1\n", 2},
	{"sources:\n- source: http://a\n  poll: often\n", 3},
	{"sources:\n- source: http://a\n  expected_gpus: -8\n", 3},
	{"sources:\n-\n", 2},
	// Values.
	{"min_coverage: 1\npreset: gaming\n", 2},
	{"\nmin_coverage: .inf\n", 2},
	{"\nweights: {sm: .nan, tensor: 1, dram: 1, engine: 1}\n", 2},
	{"preset: ai\nmissing_inputs: guess\n", 2},
	{"thresholds:\n  idle_engine: 5\n", 2},
	{"temperatures:\n  H100: 0\n", 2},
	{"health:\n  pcie_replay: ok\n", 2},
	{"dialect:\n- {names: [A], field: gpu_power_watts, unit: watts}\n- {names: [A], field: gpu_power_watts, unit: watts}\n", 3},
	// http_config, which Prometheus refuses as a whole.
	{"sources:\n- source: http://a\n  http_config:\n    proxy_url: 'http://[x'\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    tls_config: {min_version: TLS99}\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    basic_auth: {username: u, username_file: f}\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    oauth2: {client_id: a}\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    http_headers: {Authorization: {values: [a]}}\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    basic_auth:\n      password: !!binary '###'\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    <<: 3\n", 3},
	{"sources:\n- source: http://a\n  http_config:\n    basic_atuh: {}\n", 3},
	{"sources:\n- source: http://a\n  http_config: 5\n", 3},
}

// TestEveryRefusalNamesItsLine: the first problem is in the expected line, and each
// problem names a line.
func TestEveryRefusalNamesItsLine(t *testing.T) {
	for _, test := range refusedLines {
		_, err := Parse("bad.yml", []byte(test.text))
		if err == nil {
			t.Errorf("%q is accepted", test.text)
			continue
		}
		if want := fmt.Sprintf("bad.yml:%d: ", test.line); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want it to begin with %s", test.text, err, want)
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "bad.yml:") || strings.HasPrefix(line, "bad.yml: ") {
				t.Errorf("%q: no line in %s", test.text, line)
			}
		}
	}
}
