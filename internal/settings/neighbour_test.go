package settings

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// neighbourVariables are those of gpu-container-exporter.
var neighbourVariables = []string{"DCGM_HOST", "DCGM_PORT", "DCGM_METRICS_ENDPOINT", "DCGM_LABELS", "HTTP_LISTEN_PORT"}

// withEnvironment parses arguments in an environment with only these variables, "NAME=value", of
// the neighbour's and ours.
func withEnvironment(t *testing.T, variables, args string) (*Options, error) {
	t.Helper()
	for _, name := range append(neighbourVariables, "KPULSE_SOURCE", "KPULSE_BACKEND", "KPULSE_WEB_LISTEN_ADDRESS") {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, variable := range strings.Fields(variables) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return Read(strings.Fields(args), io.Discard)
}

// TestNeighbour: the environment of gpu-container-exporter sets source and address if it is
// certainly that and our own settings do not.
func TestNeighbour(t *testing.T) {
	const standard = defaultUpstream + " " + DefaultListen
	for _, c := range []struct{ env, args, want string }{
		{"", "", standard},
		{"DCGM_HOST=h DCGM_PORT=1234 DCGM_METRICS_ENDPOINT=/m HTTP_LISTEN_PORT=6061", "", "http://h:1234/m :6061"},
		{"DCGM_HOST=h HTTP_LISTEN_PORT=6061", "", "http://h:9400/metrics :6061"},
		{"DCGM_HOST=h DCGM_PORT=1234", "", "http://h:1234/metrics :9401"},
		{"DCGM_HOST=h DCGM_METRICS_ENDPOINT=m?x=1", "", "http://h:9400/m?x=1 :9401"},
		{"DCGM_HOST=::1 DCGM_PORT=1", "", "http://[::1]:1/metrics :9401"},
		{"DCGM_HOST=[::1] DCGM_PORT=1", "", "http://[::1]:1/metrics :9401"},
		{"DCGM_HOST=h DCGM_PORT=5555 HTTP_LISTEN_PORT=0", "", "http://h:5555/metrics :0"},
		// Of another program: a single variable, the host engine's, Kubernetes'.
		{"DCGM_HOST=h", "", standard},
		{"DCGM_HOST=h NODE_NAME=n", "", standard},
		{"DCGM_HOST=h DCGM_PORT=5555", "", standard},
		{"DCGM_HOST=h DCGM_PORT=tcp://10.0.0.1:9400", "", standard},
		{"DCGM_HOST=h HTTP_LISTEN_PORT=tcp://10.0.0.1:80", "", standard},
		{"HTTP_LISTEN_PORT=6061", "", standard},
		{"DCGM_PORT=1 DCGM_METRICS_ENDPOINT=/m HTTP_LISTEN_PORT=6061", "", standard},
		// Our flags and variables win, and the neighbour's values are not even parsed.
		{"DCGM_HOST=h HTTP_LISTEN_PORT=6061", "--source=http://x:1/metrics", "http://x:1/metrics :6061"},
		{"DCGM_HOST=h DCGM_PORT=x HTTP_LISTEN_PORT=6061", "--backend=dcgm", " :6061"},
		{"DCGM_HOST=h HTTP_LISTEN_PORT=6061", "--replay=x.prom", "x.prom :6061"},
		{"DCGM_HOST=h HTTP_LISTEN_PORT=x", "--web.listen-address=:7", "http://h:9400/metrics :7"},
		{"DCGM_HOST=h HTTP_LISTEN_PORT=1 KPULSE_WEB_LISTEN_ADDRESS=:7 KPULSE_SOURCE=http://x:1/metrics", "", "http://x:1/metrics :7"},
	} {
		o, err := withEnvironment(t, c.env, c.args)
		if err != nil {
			t.Errorf("%s %s: %v", c.env, c.args, err)
			continue
		}
		if got := o.Upstreams[0].Source.Source + " " + strings.Join(o.Listen, ","); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.env, c.args, got, c.want)
		}
	}
}

// TestNeighbourDiscovers: labels without a host select pods, which are read with port and path.
func TestNeighbourDiscovers(t *testing.T) {
	const standard = holders.DefaultSelector
	for _, c := range []struct {
		env, args            string
		selector             string
		port, path, upstream string
	}{
		{"DCGM_HOST= DCGM_LABELS=app=dcgm,tier=gpu HTTP_LISTEN_PORT=6061", "", "app=dcgm,tier=gpu", "", "/metrics", ""},
		{"DCGM_LABELS=app=dcgm DCGM_PORT=9500 DCGM_METRICS_ENDPOINT=m", "", "app=dcgm", "9500", "/m", ""},
		{"DCGM_LABELS=app=dcgm DCGM_HOST=h", "", "", "", "/metrics", "http://h:9400/metrics"},
		{"DCGM_LABELS=app=dcgm", "", "", "", "/metrics", defaultUpstream},
		{"DCGM_LABELS=app=dcgm DCGM_PORT=1", "--source=http://x:1/metrics", "", "", "/metrics", "http://x:1/metrics"},
		{"DCGM_LABELS=app=dcgm DCGM_PORT=1", "--kube.discover=true", standard, "", "/metrics", ""},
		{"DCGM_HOST=h DCGM_PORT=1", "--kube.discover=true", standard, "", "/metrics", ""},
	} {
		o, err := withEnvironment(t, c.env, c.args)
		if err != nil {
			t.Errorf("%s %s: %v", c.env, c.args, err)
			continue
		}
		upstream := ""
		if len(o.Upstreams) > 0 {
			upstream = o.Upstreams[0].Source.Source
		}
		if d := &o.Kube.Discover; d.Selector != c.selector || d.Port != c.port || d.Path != c.path || upstream != c.upstream {
			t.Errorf("%s %s: discovers %+v, reads %q", c.env, c.args, *d, upstream)
		}
	}
	if _, err := withEnvironment(t, "DCGM_LABELS=a===b HTTP_LISTEN_PORT=1", ""); err == nil || !strings.HasPrefix(err.Error(), "$DCGM_LABELS: ") {
		t.Errorf("no selector: %v", err)
	}
}

// TestNeighbourIsRefused: errors name the variable and show no password.
func TestNeighbourIsRefused(t *testing.T) {
	for env, want := range map[string]string{
		"DCGM_HOST=http://u:secret@h DCGM_PORT=1": "$DCGM_HOST is not a host; ",
		"DCGM_HOST=h:9400 DCGM_LABELS=a=b":        "$DCGM_HOST is not a host; ",
		"DCGM_HOST=h DCGM_PORT=94O0":              `$DCGM_PORT="94O0" is not a port; write a number from 1 to 65535`,
		"DCGM_HOST=h DCGM_PORT=0":                 `$DCGM_PORT="0" is not a port; `,
		"DCGM_HOST=h HTTP_LISTEN_PORT=66000":      `$HTTP_LISTEN_PORT="66000" is not a port; write a number from 0 to 65535`,
	} {
		if _, err := withEnvironment(t, env, ""); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", env, err, want)
		}
	}
}

// TestNeighbourAndFile: sources of the config file win over the neighbour's environment, even if
// flags complete them, and a dashboard still attaches to the proxy beside it.
func TestNeighbourAndFile(t *testing.T) {
	const env = "DCGM_HOST=h HTTP_LISTEN_PORT=6061"
	if _, err := withEnvironment(t, env, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, args, want string }{
		{"sources: [{source: 'http://x:1/metrics'}]\n", "--poll=5s", "http://x:1/metrics "},
		{"kube: {discover: {selector: a=b}}\n", "--preset=hpc", ""},
		{"sources: [{backend: dcgm}]\n", "--poll=5s", " "},
		{"sources: [{source: 'http://x:1/metrics'}, {source: 'http://y:1/metrics'}]\n", "--tui", "http://x:1/metrics http://y:1/metrics "},
		{"preset: hpc\n", "--tui", "http://h:9400/metrics "},
	} {
		o := configured(t, c.file, nil, c.args)
		got := ""
		for _, s := range o.Upstreams {
			got += s.Source.Source + " "
		}
		if got != c.want || o.Listen[0] != ":6061" {
			t.Errorf("%s: reads %q, listens on %s, want %q", c.file, got, o.Listen, c.want)
		}
		if o.Sources == nil && o.Kube.Discover.Selector == "" && o.ReadsItself(FromEnvironment) {
			t.Errorf("%s: a dashboard would not attach", c.file)
		}
	}
}
