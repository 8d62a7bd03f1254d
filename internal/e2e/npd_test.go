package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// npdConfig is what node-problem-detector reads from a custom plugin's config.
type npdConfig struct {
	Plugin string `json:"plugin"`
	Global struct {
		Interval  string `json:"invoke_interval"`
		Timeout   string `json:"timeout"`
		MaxOutput int    `json:"max_output_length"`
	} `json:"pluginConfig"`
	Conditions []struct {
		Type string `json:"type"`
	} `json:"conditions"`
	Rules []struct {
		Type      string   `json:"type"`
		Condition string   `json:"condition"`
		Reason    string   `json:"reason"`
		Args      []string `json:"args"`
		Timeout   string   `json:"timeout"`
	} `json:"rules"`
}

// TestNodeProblemDetectorConfig runs the shipped rules as node-problem-detector does: exit code 0
// is ok, 1 is a problem, any other unknown, and output longer than max_output_length is cut.
func TestNodeProblemDetectorConfig(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/node-problem-detector/kpulse-health.json")
	if err != nil {
		t.Fatal(err)
	}
	var config npdConfig
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Rules) != 2 || len(config.Conditions) != 2 || config.Plugin != "custom" {
		t.Fatalf("%+v", config)
	}
	checkSentinel(t, config)
	var body atomic.Pointer[string]
	up := startUpstream(func() ([]byte, error) { return []byte(*body.Load()), nil })
	defer up.stop()
	set := func(text string) { body.Store(&text) }
	set(oneGPU)
	proxy := startProxy(t, itself(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--poll=0")
	for _, state := range []struct {
		name, body string
		exits      [2]int // of the rules
		says       string
	}{
		{"ok", oneGPU, [2]int{0, 0}, "1 GPU ok"},
		{"hot", strings.Replace(oneGPU, "} 40", "} 99", 1), [2]int{0, 1}, "hot: GPU 0 GPU hot 99°C"},
		{"crit", oneGPU + "DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu=\"0\",UUID=\"GPU-1\"} 1\n", [2]int{1, 1}, "crit: GPU 0 row remap failed"},
		{"unreadable", "<html>\n", [2]int{2, 2}, "unknown: http://"},
	} {
		set(state.body)
		for i, rule := range config.Rules {
			if rule.Type != "permanent" || rule.Condition != config.Conditions[i].Type || duration(t, rule.Timeout) > duration(t, config.Global.Timeout) {
				t.Errorf("node-problem-detector refuses rule %+v", rule)
			}
			var stdout bytes.Buffer
			patient := strings.ReplaceAll(strings.Join(rule.Args, " "), "--timeout=10s", "--timeout=100s")
			cmd := exec.Command(itself(t), strings.Fields(patient)...)
			cmd.Env = append(os.Environ(), "KPULSE_URL="+proxy.URL)
			cmd.Stdout = &stdout
			err := cmd.Run()
			if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code, output := cmd.ProcessState.ExitCode(), strings.TrimSpace(stdout.String())
			if code != state.exits[i] || !strings.HasPrefix(output, state.says) || len(output) > config.Global.MaxOutput {
				t.Errorf("%s, %s: exit %d with %q; want %d with %q", state.name, rule.Condition, code, output, state.exits[i], state.says)
			}
		}
	}
}

// checkSentinel checks NVSentinel's policies on the page: each asks for a condition and the reason that the detector gives it.
// Only GPUUnfit quarantines a node.
func checkSentinel(t *testing.T, config npdConfig) {
	t.Helper()
	page, err := os.ReadFile("../../deploy/node-problem-detector/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Monitor struct {
			Policies []struct {
				Name      string
				Predicate struct{ Expression string }
				Event     struct {
					Fatal bool `yaml:"isFatal"`
				} `yaml:"healthEvent"`
			}
		} `yaml:"kubernetes-object-monitor"`
	}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(block[2], "global:") {
			if err := yaml.Unmarshal([]byte(block[2]), &values); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(values.Monitor.Policies) != len(config.Rules) {
		t.Fatalf("%d policies for %d rules", len(values.Monitor.Policies), len(config.Rules))
	}
	for i, rule := range config.Rules {
		policy := values.Monitor.Policies[i]
		want := `resource.status.conditions.exists(c, c.type == "` + rule.Condition + `" && c.status == "True" && c.reason == "` + rule.Reason + `")`
		if policy.Predicate.Expression != want || policy.Name != "Kpulse"+rule.Condition || policy.Event.Fatal != (rule.Condition == "GPUUnfit") {
			t.Errorf("the policy %+v does not ask for %s", policy, want)
		}
		if row := "| `" + rule.Condition + "` |"; !strings.Contains(string(page), row) || !strings.Contains(string(page), "`"+rule.Reason+"` |\n") {
			t.Errorf("the page lacks the row %s with %s", row, rule.Reason)
		}
	}
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Error(err)
	}
	return d
}
