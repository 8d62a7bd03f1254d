package settings

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
)

// configured returns the settings of arguments, environment and the content of a config file.
func configured(t *testing.T, file string, environment map[string]string, args ...string) *Options {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config.file="+path)
	}
	opts, err := Read(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// layered is settings that can come from file, environment and command line.
type layered struct {
	preset      string
	weights     canonical.Weights
	missing     compute.Missing
	minCoverage float64
	series      Count
	maxBody     Size
	maxRequests Count
	ruleWindow  Duration
	ruleSamples Count
}

func layeredOf(o *Options) layered {
	return layered{o.Judge.Preset, o.Judge.Weights, o.Judge.Missing, o.Judge.MinCoverage, o.Limits.Series, o.Limits.MaxBody, o.Limits.MaxRequests, o.Rules.Window, o.Rules.MaxSamples}
}

// TestPrecedence: for each setting, the command line wins over the environment, the environment
// over the file, and the file over the default.
func TestPrecedence(t *testing.T) {
	const file = "preset: hpc\nmissing_inputs: zero\nmin_coverage: 0.1\nlimits: {series_limit: 11, max_body: 11B, max_requests: 11}\nrules: {window: 11m, max_samples: 11}\n"
	environment := map[string]string{"KPULSE_PRESET": "mem", "KPULSE_MISSING_INPUTS": "renormalize", "KPULSE_MIN_COVERAGE": "0.2",
		"KPULSE_SERIES_LIMIT": "22", "KPULSE_SOURCE_MAX_BODY": "22B", "KPULSE_WEB_MAX_REQUESTS": "22",
		"KPULSE_RULES_WINDOW": "22m", "KPULSE_RULES_MAX_SAMPLES": "22"}
	// A default that is given explicitly also wins.
	args := []string{"--preset=ai", "--missing-inputs=zero", "--min-coverage=0.5", "--series-limit=250000", "--source.max-body", "64MiB", "--web.max-requests=40",
		"--rules.window=5m", "--rules.max-samples=2000000"}

	none := canonical.Weights{}
	standard := layered{"ai", none, compute.Renormalize, 0.5, 250000, 64 << 20, 40, Duration(5 * time.Minute), 2_000_000}
	ofFile := layered{"hpc", none, compute.Zero, 0.1, 11, 11, 11, Duration(11 * time.Minute), 11}
	ofEnvironment := layered{"mem", none, compute.Renormalize, 0.2, 22, 22, 22, Duration(22 * time.Minute), 22}
	ofArgs := standard
	ofArgs.missing = compute.Zero

	for _, test := range []struct {
		name        string
		file        string
		environment map[string]string
		args        []string
		want        layered
	}{
		{"nothing", "", nil, nil, standard},
		{"an empty file", "# nothing\n", nil, nil, standard},
		{"a file", file, nil, nil, ofFile},
		{"a file and the environment", file, environment, nil, ofEnvironment},
		{"the environment", "", environment, nil, ofEnvironment},
		{"all", file, environment, args, ofArgs},
		{"a file and the command line", file, nil, args, ofArgs},
		{"an empty variable is none", file, map[string]string{"KPULSE_PRESET": ""}, nil, ofFile},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := layeredOf(configured(t, test.file, test.environment, test.args...)); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestWeightsAndPreset: the two exclude each other, and the one of higher precedence applies;
// weights if both have the same origin.
func TestWeightsAndPreset(t *testing.T) {
	const fileWeights = "weights: {sm: 1, tensor: 0, dram: 0, engine: 0}\n"
	sm, tensor := canonical.Weights{SM: 1}, canonical.Weights{Tensor: 1}
	for _, test := range []struct {
		name, file  string
		environment map[string]string
		args        []string
		preset      string
		weights     canonical.Weights
	}{
		{"a file's weights", fileWeights, nil, nil, compute.Custom, sm},
		{"a file's weights, another preset", fileWeights, nil, []string{"--preset=mem"}, "mem", canonical.Weights{}},
		{"a file's weights, the default preset said", fileWeights, map[string]string{"KPULSE_PRESET": "ai"}, nil, "ai", canonical.Weights{}},
		{"a file's weights, other weights", fileWeights, nil, []string{"--weights=0,2,0,0"}, compute.Custom, tensor},
		{"a file's preset, weights", "preset: hpc\n", map[string]string{"KPULSE_WEIGHTS": "0,2,0,0"}, nil, compute.Custom, tensor},
		{"both as flags", "", nil, []string{"--weights=0,2,0,0", "--preset=hpc"}, compute.Custom, tensor},
		{"both as variables", "", map[string]string{"KPULSE_PRESET": "hpc", "KPULSE_WEIGHTS": "0,2,0,0"}, nil, compute.Custom, tensor},
		{"variable and flag", fileWeights, map[string]string{"KPULSE_WEIGHTS": "0,2,0,0"}, []string{"--preset=hpc"}, "hpc", canonical.Weights{}},
		{"flag and variable", fileWeights, map[string]string{"KPULSE_PRESET": "hpc"}, []string{"--weights=0,2,0,0"}, compute.Custom, tensor},
	} {
		t.Run(test.name, func(t *testing.T) {
			judge := configured(t, test.file, test.environment, test.args...).Judge
			if judge.Preset != test.preset || judge.Weights != test.weights {
				t.Errorf("got %s %+v, want %s %+v", judge.Preset, judge.Weights, test.preset, test.weights)
			}
			if _, err := compute.New(judge); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOnlyTheFile: settings without a flag come from the file, and flags still apply.
func TestOnlyTheFile(t *testing.T) {
	opts := configured(t, "thresholds: {rise_hold: 3m}\nhealth: {pcie_replay: off}\ndialect:\n- {names: [A], field: gpu_power_watts, unit: watts}\n",
		nil, "--expected-gpus=8", "--poll=7s")
	if got := opts.Judge.Thresholds.RiseHold; got != 3*time.Minute {
		t.Errorf("a rise holds for %v", got)
	}
	if got := opts.Judge.States[canonical.CondPCIeReplay]; got != 0 {
		t.Errorf("PCIe replays raise %v", got)
	}
	if len(opts.Rows) != 1 || !reflect.DeepEqual(opts.Rows[0].Names, []string{"A"}) {
		t.Errorf("the dialect's rows are %+v", opts.Rows)
	}
	if opts.Upstreams[0].ExpectedGPUs != 8 || opts.Upstreams[0].Period != 7*time.Second {
		t.Errorf("%d GPUs are expected, read every %v", opts.Upstreams[0].ExpectedGPUs, opts.Upstreams[0].Period)
	}
}

// TestFlagsOfTheFileAreFlags: origin knows the flag of a key, and the help has the flags of the file.
func TestFlagsOfTheFileAreFlags(t *testing.T) {
	opts := configured(t, "", map[string]string{"KPULSE_EXPECTED_GPUS": "4"})
	if got := opts.Origin("expected-gpus"); got != FromEnvironment || opts.Upstreams[0].ExpectedGPUs != 4 {
		t.Errorf("%d GPUs are expected, from %d", opts.Upstreams[0].ExpectedGPUs, got)
	}
	var help strings.Builder
	if _, err := Read([]string{"--help-all"}, &help); err == nil {
		t.Fatal("no help")
	}
	computing, _, _ := strings.Cut(help.String(), "Serving:")
	_, computing, _ = strings.Cut(computing, "Computing:")
	for _, flag := range []string{"--config.file=FILE", "--expected-gpus=N", "--preset="} {
		if !strings.Contains(computing, flag) {
			t.Errorf("the help under Computing lacks %s:\n%s", flag, computing)
		}
	}
}

// TestRefusedValuesAreNamed: by their origin, in the order of the table.
func TestRefusedValuesAreNamed(t *testing.T) {
	for _, test := range []struct {
		environment map[string]string
		args        []string
		want        string
	}{
		{nil, []string{"--poll=soon"}, `--poll: "soon" is not a duration; write 15s, 500ms or bare seconds such as 2`},
		{map[string]string{"KPULSE_POLL": "soon"}, nil, `$KPULSE_POLL: "soon" is not a duration; write 15s, 500ms or bare seconds such as 2`},
		{map[string]string{"KPULSE_POLL": "soon"}, []string{"--poll=1ms"}, "--poll: 1ms is out of range; the prometheus backend takes 1s to 24h"},
		{map[string]string{"KPULSE_POLL": "1ms"}, nil, "$KPULSE_POLL: 1ms is out of range; the prometheus backend takes 1s to 24h"},
		{map[string]string{"KPULSE_WEB_MAX_REQUESTS": "0", "KPULSE_PRESET": "x"}, nil, `$KPULSE_PRESET: preset "x" is unknown: use one of ai, hpc, mem, or give weights`},
		{map[string]string{"KPULSE_JSON": "true"}, nil, "$KPULSE_JSON is for --once; give that too"},
		{map[string]string{"KPULSE_DCGM_HOST": "h"}, nil, "$KPULSE_DCGM_HOST is not for the prometheus backend: it is for --backend=dcgm"},
		{map[string]string{"KPULSE_RULES_FILE": "a\nb"}, []string{"--rules.window=1s"}, "--rules.window: 1s is out of range; write 1m to 24h"},
		{nil, []string{"--maxrequests=1"}, "unknown long flag '--maxrequests'; did you mean --web.max-requests?"},
		{nil, []string{"--record"}, "expected argument for flag '--record'"},
		{nil, []string{"--record=a", "--record=b"}, "flag 'record' cannot be repeated"},
	} {
		t.Run(test.want, func(t *testing.T) {
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			if _, err := Read(test.args, io.Discard); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
