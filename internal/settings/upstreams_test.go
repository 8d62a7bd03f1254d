package settings

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSourcesOfFlagsAndFile: whether flags, environment or file decide what is read.
func TestSourcesOfFlagsAndFile(t *testing.T) {
	const one = "sources: [{source: http://n:1/metrics, poll: 7s, node_name: n7, expected_gpus: 3}]"
	const dcgm = "sources: [{backend: dcgm, dcgm_host: h1}]"
	const two = "sources: [{source: http://n:1/metrics, poll: 7s, node_name: n7}, {backend: nvml}]"
	type want struct {
		source, node string
		poll         time.Duration
		gpus         int
	}
	for _, test := range []struct {
		name, file  string
		environment map[string]string
		args        []string
		want        []want
	}{
		{"no sources", "sources: []", nil, nil, []want{{"http://localhost:9400/metrics", "", 15 * time.Second, 0}}},
		{"one", one, nil, nil, []want{{"http://n:1/metrics", "n7", 7 * time.Second, 3}}},
		{"one and flags", one, nil, []string{"--poll=9", "--node-name=x", "--expected-gpus=5"}, []want{{"http://n:1/metrics", "x", 9 * time.Second, 5}}},
		{"one and the environment", one, map[string]string{"KPULSE_POLL": "8s", "NODE_NAME": "y"}, nil, []want{{"http://n:1/metrics", "n7", 8 * time.Second, 3}}},
		{"set aside by a flag", one, nil, []string{"--source=http://o:2"}, []want{{"http://o:2", "", 15 * time.Second, 0}}},
		{"set aside by the environment", two, map[string]string{"KPULSE_BACKEND": "replay"}, nil, []want{{"", "", 0, 0}}},
		{"poll of another backend", dcgm, nil, []string{"--poll=0.1"}, []want{{"", "", 100 * time.Millisecond, 0}}},
		{"two", two, map[string]string{"NODE_NAME": "y"}, []string{"--gpus=0"}, []want{{"http://n:1/metrics", "n7", 7 * time.Second, 0}, {"", "", time.Second, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := configured(t, test.file, test.environment, test.args...)
			if len(o.Upstreams) != len(test.want) {
				t.Fatalf("%d sources", len(o.Upstreams))
			}
			if got, limit := o.SeriesPerSource(), int(Default().Limits.Series)/len(test.want); got != limit {
				t.Errorf("each source may have %d series, want %d", got, limit)
			}
			for i, s := range o.Upstreams {
				if got := (want{s.Source.Source, s.NodeName, s.Period, int(s.ExpectedGPUs)}); got != test.want[i] {
					t.Errorf("source %d: got %+v, want %+v", i, got, test.want[i])
				}
			}
		})
	}
}

// TestPollOfEachMode: a scraped dcgm samples once a second, to spare the host engine; modes that
// show or record readings sample ten times.
func TestPollOfEachMode(t *testing.T) {
	for args, want := range map[string]time.Duration{
		"--backend=dcgm":                           time.Second,
		"--backend=dcgm --poll=0.2":                200 * time.Millisecond,
		"--backend=dcgm --record=f":                100 * time.Millisecond,
		"--backend=dcgm --record=f --poll=2s":      2 * time.Second,
		"--backend=dcgm --tui":                     100 * time.Millisecond,
		"--backend=dcgm --once":                    100 * time.Millisecond,
		"--backend=dcgm --export=all":              100 * time.Millisecond,
		"--backend=nvml":                           time.Second,
		"--backend=nvml --export=all":              time.Second,
		"--backend=prometheus --export=all":        15 * time.Second,
		"--backend=replay --source=f --export=all": 0,
	} {
		if got := configured(t, "", nil, strings.Fields(args)...).Upstreams[0].Period; got != want {
			t.Errorf("%s: reads every %v, want %v", args, got, want)
		}
	}
	const file = "sources: [{backend: dcgm, dcgm_host: a}, {backend: dcgm, dcgm_host: b, poll: 3s}]"
	served := configured(t, file, nil)
	if a, b := served.Upstreams[0].Period, served.Upstreams[1].Period; a != time.Second || b != 3*time.Second {
		t.Errorf("the file's two sources are read every %v and %v", a, b)
	}
}

// TestFlagsThatDoNotFitSources: they are refused, with a remedy.
func TestFlagsThatDoNotFitSources(t *testing.T) {
	const two = "sources: [{source: http://n:1/metrics}, {backend: dcgm, dcgm_host: far}]"
	for _, test := range []struct{ file, flag, says string }{
		{two, "--poll=3s", "--poll is for one source, and the config file names 2; give each of them its poll there"},
		{two, "--node-name=x", "--node-name is for one source"},
		{two, "--expected-gpus=8", "--expected-gpus is for one source"},
		{two, "--dcgm.host=h", "--dcgm.host is for one source"},
		{two, "--record=f", "--record is for one source, and the config file names 2; choose one with --backend or --source"},
		{two, "--once", "--once is for one source"},
		{two, "--export", "--export is for one source"},
		{two, "--collector.processes", "--dcgm.host=far are another machine's"},
		{"sources: [{source: http://n:1}, {backend: replay}]", "--collector.processes", "--collector.processes is not for the prometheus or replay backend: it lists"},
		{"sources: [{backend: dcgm}]", "--poll=25h", "--poll: 25h is out of range; the dcgm backend takes 100ms to 24h"},
		{"sources: [{backend: dcgm}]", "--dcgm.fields=155,fast", `--dcgm.fields: "fast" is not an id of a field; write all, core, or ids such as 150,155,1002`},
		{"sources: [{backend: dcgm}]", "--dcgm.fields=397", "--dcgm.fields: 397 is not a field that kpulse-proxy reads; choose from 100 101 112 140 "},
		{"sources: [{backend: nvml}]", "--dcgm.fields=core", "--dcgm.fields is not for the nvml backend: it is for --backend=dcgm"},
		{two, "--dcgm.fields=core", "--dcgm.fields is for one source"},
		{"sources: [{source: http://n:1, poll: 0}]", "--export=all", "--poll=0 reads only when scraped"},
	} {
		file := filepath.Join(t.TempDir(), "config.yml")
		writeFile(t, file, test.file)
		_, err := Read([]string{"--config.file=" + file, test.flag}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.flag, err)
		}
	}
}

// TestBadSources: invalid sources are reported with their lines.
func TestBadSources(t *testing.T) {
	const twice = "has the name of one above, http://a:1/metrics: names leave user, password and query out; remove one of the two"
	for _, test := range []struct{ source, says string }{
		{"{backend: dcgmm}", `bad.yml:3: sources[2].backend: "dcgmm" is not a backend; use prometheus, replay, dcgm, nvml`},
		{"{backend: nvml, source: http://n:1}", "bad.yml:3: sources[2].source: is not for the nvml backend; remove it, or name another backend"},
		{"{dcgm_host: n}", "bad.yml:3: sources[2].dcgm_host: is not for the prometheus backend; remove it, or name another backend"},
		{"{backend: dcgm, http_config: {follow_redirects: false}}", "bad.yml:3: sources[2].http_config: is not for the dcgm backend; remove it, or name another backend"},
		{"{poll: 1ms}", "bad.yml:3: sources[2].poll: 1ms is out of range; the prometheus backend takes 1s to 24h"},
		{"{backend: dcgm, dcgm_fields: slow}", `bad.yml:3: sources[2].dcgm_fields: "slow" is not an id of a field; write all, core, or ids such as 150,155,1002`},
		{"{backend: nvml, dcgm_fields: core}", "bad.yml:3: sources[2].dcgm_fields: is not for the nvml backend; remove it, or name another backend"},
		{"{counters: counters.csv}", "bad.yml:3: sources[2].counters: is not for the prometheus backend; remove it, or name another backend"},
		{"{poll: soon}", `bad.yml:3: sources[2].poll: "soon" is not a duration; write 15s, 500ms or bare seconds such as 2`},
		{"{expected_gpus: 5000}", `bad.yml:3: sources[2].expected_gpus: "5000" is out of range; give how many GPUs the node has, at most 1024, or 0`},
		{"{source: node7:9400}", `bad.yml:3: sources[2].source: source "node7:9400" has no scheme; write source: http://node7:9400, or ./node7:9400 for a file of that name`},
		{"{source: f.prom, http_config: {follow_redirects: false}}", `bad.yml:3: sources[2].source: source "f.prom" is a file, and credentials and TLS are for URLs; remove the http_config, or name a URL`},
		{"{source: 'https://u:hunter2@n', http_config: {authorization: {credentials: t}}}", "bad.yml:3: sources[2].http_config: has credentials in addition to those in the URL; keep one of the two"},
		{"{source: https://n, http_config: {tls_config: {ca_file: none.pem}}}", "bad.yml:3: sources[2].http_config: unable to read CA cert: unable to read file none.pem: open none.pem: no such file or directory"},
		{"{source: http://a:1/metrics}", "bad.yml:3: sources[2].source: " + twice},
		{"{source: 'http://u:hunter2@a:1?key=hunter3'}", "bad.yml:3: sources[2].source: " + twice},
	} {
		file, err := Parse("bad.yml", []byte("sources:\n- source: http://a:1/metrics\n- "+test.source+"\n"))
		if err != nil {
			if err.Error() != test.says {
				t.Errorf("got  %v\nwant %s", err, test.says)
			}
			continue
		}
		if _, problems := SourcesOf(file, false); problems.Error() != test.says {
			t.Errorf("got  %v\nwant %s", problems, test.says)
		}
	}
}

func TestProcessFlags(t *testing.T) {
	for _, tt := range []struct{ flags, says string }{
		{"--collector.processes", "--backend=dcgm and nvml"},
		{"--collector.processes --backend=replay", "not for the replay backend"},
		{"--web.expose-processes --backend=nvml", "is for --collector.processes; give that too"},
		{"--collector.processes.cmdline --backend=nvml", "is for --collector.processes; give that too"},
		{"--collector.processes --collector.processes.cmdline --backend=nvml", ""},
		{"--collector.processes --backend=dcgm --dcgm.host=node7", "run kpulse-proxy there"},
		{"--collector.processes --backend=dcgm --dcgm.host=unix:///run/x.sock", ""},
		{"--collector.processes --web.expose-processes --backend=nvml", ""},
	} {
		_, err := Read(strings.Fields(tt.flags), io.Discard)
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.flags, err)
		}
	}
}
