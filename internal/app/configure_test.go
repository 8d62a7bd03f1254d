package app

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

// configured returns the settings that arguments, environment and the content of a
// config file make together.
func configured(t *testing.T, file string, environment map[string]string, args ...string) *options {
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
	opts, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// layered is every setting that can come from file, environment and command line.
type layered struct {
	preset      string
	weights     canonical.Weights
	missing     compute.Missing
	minCoverage float64
	series      int
	maxBody     int64
	maxRequests int
	ruleWindow  time.Duration
	ruleSamples int
}

func layeredOf(o *options) layered {
	return layered{o.judge.Preset, o.judge.Weights, o.judge.Missing, o.judge.MinCoverage, o.seriesLimit, o.maxBody, o.maxRequests, o.ruleWindow, o.ruleSamples}
}

// TestPrecedence: the command line wins over the environment, that over the file,
// and that over the defaults, for each setting by itself.
func TestPrecedence(t *testing.T) {
	const file = "preset: hpc\nmissing_inputs: zero\nmin_coverage: 0.1\nlimits: {series_limit: 11, max_body: 11B, max_requests: 11}\nrules: {window: 11m, max_samples: 11}\n"
	environment := map[string]string{"KPULSE_PRESET": "mem", "KPULSE_MISSING_INPUTS": "renormalize", "KPULSE_MIN_COVERAGE": "0.2",
		"KPULSE_SERIES_LIMIT": "22", "KPULSE_SOURCE_MAX_BODY": "22B", "KPULSE_WEB_MAX_REQUESTS": "22",
		"KPULSE_RULES_WINDOW": "22m", "KPULSE_RULES_MAX_SAMPLES": "22"}
	// Said explicitly, a default wins too.
	args := []string{"--preset=ai", "--missing-inputs=zero", "--min-coverage=0.5", "--series-limit=250000", "--source.max-body", "64MiB", "--web.max-requests=40",
		"--rules.window=5m", "--rules.max-samples=2000000"}

	none := canonical.Weights{}
	standard := layered{"ai", none, compute.Renormalize, 0.5, 250000, 64 << 20, 40, 5 * time.Minute, 2_000_000}
	ofFile := layered{"hpc", none, compute.Zero, 0.1, 11, 11, 11, 11 * time.Minute, 11}
	ofEnvironment := layered{"mem", none, compute.Renormalize, 0.2, 22, 22, 22, 22 * time.Minute, 22}
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

// TestWeightsAndPreset: the two exclude each other, and the nearer one counts;
// weights do where both come from the same place.
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
			judge := configured(t, test.file, test.environment, test.args...).judge
			if judge.Preset != test.preset || judge.Weights != test.weights {
				t.Errorf("got %s %+v, want %s %+v", judge.Preset, judge.Weights, test.preset, test.weights)
			}
			if _, err := compute.New(judge); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOnlyTheFile: what no flag can say comes from the file, and what no file can
// say stays.
func TestOnlyTheFile(t *testing.T) {
	opts := configured(t, "thresholds: {rise_hold: 3m}\nhealth: {pcie_replay: off}\ndialect:\n- {names: [A], field: gpu_power_watts, unit: watts}\n",
		nil, "--expected-gpus=8", "--poll=7s")
	if got := opts.judge.Thresholds.RiseHold; got != 3*time.Minute {
		t.Errorf("a rise holds for %v", got)
	}
	if got := opts.judge.States[canonical.CondPCIeReplay]; got != canonical.HealthOK {
		t.Errorf("PCIe replays raise %v", got)
	}
	if len(opts.rows) != 1 || !reflect.DeepEqual(opts.rows[0].Names, []string{"A"}) {
		t.Errorf("the dialect's rows are %+v", opts.rows)
	}
	if opts.expectedGPUs != 8 || opts.poll != 7*time.Second {
		t.Errorf("%d GPUs are expected, read every %v", opts.expectedGPUs, opts.poll)
	}
}

// TestFlagsOfTheFileAreFlags: origin is asked for flags by name, which must exist.
func TestFlagsOfTheFileAreFlags(t *testing.T) {
	opts := configured(t, "", map[string]string{"KPULSE_EXPECTED_GPUS": "4"})
	if got := opts.origin("expected-gpus"); got != fromEnvironment || opts.expectedGPUs != 4 {
		t.Errorf("%d GPUs are expected, from %d", opts.expectedGPUs, got)
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); err == nil {
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
