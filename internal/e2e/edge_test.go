package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

const edgeRules = "../../deploy/edge.rules.yml"

// edgeFlags returns the flags in the header of deploy/edge.rules.yml.
func edgeFlags(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(edgeRules)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\ngroups:")
	var flags []string
	for _, flag := range regexp.MustCompile(`--[a-z.]+=('[^']+'|\S+)`).FindAllString(head, -1) {
		flag = strings.ReplaceAll(flag, "'", "")
		flags = append(flags, strings.Replace(flag, "/etc/kpulse-proxy/edge.rules.yml", edgeRules, 1))
	}
	if len(flags) < 3 || !slices.Contains(flags, "--rules.file="+edgeRules) {
		t.Fatalf("the flags at the top of %s are %q", edgeRules, flags)
	}
	return flags
}

// Maximum series of a GPU and of an instance at the edge. On average they include those of the
// node.
const mostAtTheEdge, mostOfInstance = 12, 6

// TestEdge plays the demo, and a capture of the exporter's default counters, as a node at the edge,
// and counts the series that Prometheus would get: of a GPU, of an instance, and of the whole node.
func TestEdge(t *testing.T) {
	t.Parallel()
	for _, node := range []struct {
		name              string
		flags             []string
		boards, instances int
	}{
		{"demo", []string{"--backend=replay"}, 8, 3},
		{"default counters", defaultCounters, 1, 0},
	} {
		t.Run(node.name, func(t *testing.T) {
			t.Parallel()
			countAtTheEdge(t, node.flags, node.boards, node.instances)
		})
	}
}

func countAtTheEdge(t *testing.T, flags []string, wantBoards, wantInstances int) {
	c := startProxy(t, itself(t), append(edgeFlags(t), flags...)...)
	text := awaitPage(t, c, "/metrics", 200, `(?m)^device:kpulse_gpu_workload_class:index`)
	boards, instances := map[string][]string{}, map[string][]string{}
	series := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series++
		name, _, _ := strings.Cut(line, "{")
		gpu := regexp.MustCompile(`[{,]gpu="(\d+)"`).FindStringSubmatch(line)
		switch instance := regexp.MustCompile(`mig_instance="(\d+)"`).FindStringSubmatch(line); {
		case gpu == nil:
		case instance != nil:
			instances[instance[1]] = append(instances[instance[1]], name)
		default:
			boards[gpu[1]] = append(boards[gpu[1]], name)
		}
	}
	if len(boards) != wantBoards || len(instances) != wantInstances {
		t.Fatalf("series of %d boards and %d instances, want %d and %d:\n%s", len(boards), len(instances), wantBoards, wantInstances, text)
	}
	for gpu, names := range boards {
		if t.Logf("GPU %s: %d series: %s", gpu, len(names), strings.Join(names, " ")); len(names) > mostAtTheEdge {
			t.Errorf("GPU %s has %d series, want at most %d", gpu, len(names), mostAtTheEdge)
		}
		if cut := gpu == "7"; !cut && len(names) < 11 {
			t.Errorf("GPU %s has only %d series", gpu, len(names))
		}
	}
	for instance, names := range instances {
		if len(names) > mostOfInstance {
			t.Errorf("instance %s has %d series, want at most %d: %v", instance, len(names), mostOfInstance, names)
		}
	}
	if most := len(boards)*mostAtTheEdge + len(instances)*mostOfInstance; len(boards) == 8 && series > most {
		t.Errorf("%d series of the node, want at most %d", series, most)
	}
}

// TestEdgeOfASickGPU: the reasons to drain a node are still there, for check health on the node and
// for readers elsewhere.
func TestEdgeOfASickGPU(t *testing.T) {
	t.Parallel()
	up, set := changingUpstream(t, oneGPU)
	set(oneGPU + "DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu=\"0\",UUID=\"GPU-1\"} 1\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\"} 250\n")
	c := startProxy(t, itself(t), append(edgeFlags(t), "--source="+up.url+"/metrics", "--source.min-interval=0s", "--node-name=n")...)
	text := awaitPage(t, c, "/metrics", 200, `(?m)^device:kpulse_gpu_temperature:max1m`)
	const gpu, recorded = `hostname="n",gpu="0",uuid="GPU-1"`, `gpu="0",hostname="n",uuid="GPU-1"`
	wants(t, text, "kpulse_gpu_present{"+gpu+"} 1", "kpulse_gpu_health{"+gpu+`,state="crit"} 1`,
		"kpulse_gpu_health_condition{"+gpu+`,condition="row_remap_failure",state="crit"} 1`,
		"kpulse_gpu_recommended_action{"+gpu+`,action="replace"} 1`,
		"device:kpulse_gpu_temperature:max1m{"+recorded+"} 40", "device:kpulse_gpu_power:avg1m{"+recorded+"} 250",
		fmt.Sprintf("device:kpulse_gpu_workload_class:index{%s} %d", recorded, canonical.ClassUnknown))
	if n := strings.Count(text, `uuid="GPU-1"`); n > mostAtTheEdge {
		t.Errorf("%d series, want at most %d:\n%s", n, mostAtTheEdge, text)
	}
	out, err := exec.Command(itself(t), "check", "health", "--url="+c.URL).CombinedOutput()
	if code := exitCode(err); code != 2 || !strings.Contains(string(out), "row_remap_failure") {
		t.Errorf("check health: exit %d, want 2 and the condition:\n%s", code, out)
	}
}

// exitCode returns the exit code of a program, -1 if it did not run.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as exec returns it
		return failed.ExitCode()
	}
	return -1
}

// TestEdgeRules: our check and Prometheus' own accept the rules, which have every class by its
// number and a row each in the rules' README.md.
func TestEdgeRules(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command(itself(t), "check", "rules", edgeRules).CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("check rules: %v\n%s", err, out)
	}
	if binary, err := exec.LookPath("promtool"); err == nil {
		if out, err := exec.Command(binary, "check", "rules", edgeRules).CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	} else if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
		t.Error(err)
	}
	page, err := os.ReadFile("../../rules/README.md")
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rules.Load(rules.Options{}, edgeRules)
	if problems.Refuse() || len(set.Groups) != 1 {
		t.Fatal(problems)
	}
	for _, r := range set.Groups[0].Rules {
		if !strings.Contains(string(page), "\n| `"+r.Record+"` |") {
			t.Errorf("README.md of the rules has no row for %s", r.Record)
		}
		if r.Record != "device:kpulse_gpu_workload_class:index" {
			continue
		}
		for class, info := range canonical.Classes {
			if want := fmt.Sprintf(`%d * (kpulse_gpu_workload_class{class=%q} == 1)`, class, info.Name); !strings.Contains(" "+r.Text, " "+want) {
				t.Errorf("%s has no %s", r.Record, want)
			}
		}
	}
}
