// Package compose checks the files of this folder with the tools that read them.
package compose

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// load reads compose.yaml as docker compose does, and so validates it against the schema
// of the compose specification.
func load(t *testing.T, more ...cli.ProjectOptionsFn) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, append(more, cli.WithDotEnv, cli.WithDefaultProfiles())...)
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestDemo: by default the proxy plays the demo.
func TestDemo(t *testing.T) {
	project := load(t)
	if got, want := project.ServiceNames(), []string{"alertmanager", "grafana", "kpulse-proxy", "prometheus"}; !slices.Equal(got, want) {
		t.Errorf("%q run, want %q", got, want)
	}
	if backend := project.Services["kpulse-proxy"].Environment["KPULSE_BACKEND"]; backend == nil || *backend != "replay" {
		t.Errorf("the backend is %v", backend)
	}
	checkMounts(t, project)
}

// TestGPUs: with gpu.env the exporter runs too, and the proxy reads it.
func TestGPUs(t *testing.T) {
	project := load(t, cli.WithEnvFiles("gpu.env"))
	exporter, runs := project.Services["dcgm-exporter"]
	if !runs || len(exporter.Deploy.Resources.Reservations.Devices) == 0 {
		t.Fatalf("no exporter with GPUs among %q", project.ServiceNames())
	}
	environment := project.Services["kpulse-proxy"].Environment
	if source := environment["KPULSE_SOURCE"]; source == nil || *source != "http://dcgm-exporter:9400/metrics" || *environment["KPULSE_BACKEND"] != "prometheus" {
		t.Errorf("the proxy reads %v", environment)
	}
	checkMounts(t, project)
}

// checkMounts checks that bind mounts exist and are read-only, and that no port is open to
// other machines.
func checkMounts(t *testing.T, project *types.Project) {
	t.Helper()
	for _, service := range project.Services {
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: %s: read-only is %v, %v", service.Name, v.Source, v.ReadOnly, err)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to others", service.Name, port.Published)
			}
		}
	}
}

// TestPrometheusTakesItsFiles copies the files of the container side by side into a
// temporary folder, and runs promtool on them.
func TestPrometheusTakesItsFiles(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("KPULSE_REQUIRE_PROMETHEUS") != "" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	root := t.TempDir()
	for _, v := range load(t).Services["prometheus"].Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		text, err := os.ReadFile(v.Source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, filepath.Base(v.Target)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(root, "prometheus.yml")).CombinedOutput()
	if err != nil || bytes.Count(out, []byte("SUCCESS: ")) != 4 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestTargetsAreServices: each address in the files names a service, and the jobs are those
// that the mixin looks for.
func TestTargetsAreServices(t *testing.T) {
	services := load(t).ServiceNames()
	var config struct {
		Scrapes []struct {
			Job     string `yaml:"job_name"`
			Configs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus.yml", &config)
	var jobs []string
	for _, scrape := range config.Scrapes {
		jobs = append(jobs, scrape.Job)
		for _, target := range scrape.Configs[0].Targets {
			if host, _, _ := strings.Cut(target, ":"); !slices.Contains(services, host) {
				t.Errorf("%s is not a service", target)
			}
		}
	}
	if want := []string{"kpulse-proxy", "kpulse-proxy-telemetry"}; !slices.Equal(jobs, want) {
		t.Errorf("the jobs are %q, want %q", jobs, want)
	}
}

// TestGrafanaFindsWhatIsMounted: Grafana reads dashboards from the mounted folder, and its
// data source is the Prometheus of the same file.
func TestGrafanaFindsWhatIsMounted(t *testing.T) {
	var dashboards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	read(t, "grafana/dashboards.yaml", &dashboards)
	var sources struct {
		Datasources []struct {
			Type, Access, URL string
			IsDefault         bool `yaml:"isDefault"`
		}
	}
	read(t, "grafana/datasources.yaml", &sources)
	grafana := load(t).Services["grafana"]
	mounted := map[string]string{}
	for _, v := range grafana.Volumes {
		mounted[v.Target] = v.Source
	}
	folder := mounted[dashboards.Providers[0].Options.Path]
	home := *grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if _, err := os.Stat(filepath.Join(folder, filepath.Base(home))); err != nil || filepath.Dir(home) != dashboards.Providers[0].Options.Path {
		t.Errorf("%s is not a dashboard: %v", home, err)
	}
	for _, kind := range []string{"datasources", "dashboards"} {
		if mounted["/etc/grafana/provisioning/"+kind+"/kpulse.yaml"] == "" {
			t.Errorf("nothing provisions %s: %v", kind, mounted)
		}
	}
	if s := sources.Datasources[0]; s.Type != "prometheus" || s.Access != "proxy" || s.URL != "http://prometheus:9090" || !s.IsDefault {
		t.Errorf("the data source is %+v", s)
	}
}

// read decodes a YAML file.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
