package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// compatVersions are the values of --compat.
var compatVersions = []string{"1", "2", "4.8", "4.9", "jobstats"}

// TestCompatPages serves each capture of an exporter in the names of one version or of all:
// Prometheus accepts each page, no series, HELP or TYPE appears twice, the exporter's lines come
// first, unchanged, and reading the page gives the readings of the capture.
func TestCompatPages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/captures/*.prom")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for i, file := range files {
		if i%slow.Rounds(3, 1) != 0 {
			continue // the rest at night: each takes three starts of the program
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body = unescapedJob.ReplaceAll(body, []byte("}")) // such lines are read, but not passed on
		versions := compatVersions[i%5 : i%5+1]
		if i%4 == 0 {
			versions = compatVersions
		}
		t.Run(filepath.Base(file)+" "+strings.Join(versions, " "), func(t *testing.T) {
			t.Parallel()
			plain := servedOf(t, body)
			var flags []string
			for _, v := range versions {
				flags = append(flags, "--compat="+v)
			}
			whole := servedOf(t, body, flags...)
			checkCompatPage(t, plain, whole)
			upstream, _, _ := bytes.Cut(whole, []byte("# HELP kpulse_"))
			again := readingsIn(servedOf(t, upstream))
			before := readingsIn(plain)
			for line := range before {
				if !again[line] {
					t.Errorf("the page read again lacks %s", line)
				}
			}
			if len(again) != len(before) {
				t.Errorf("the page read again has %d readings, want %d", len(again), len(before))
			}
		})
	}
}

// servedOf returns what a proxy in front of body serves.
func servedOf(t *testing.T, body []byte, flags ...string) []byte {
	t.Helper()
	up := startUpstream(func() ([]byte, error) { return body, nil })
	defer up.stop()
	proxy := startProxy(t, itself(t), append(flags, "--source="+up.url+"/metrics", "--node-name=n")...)
	defer proxy.Stop()
	status, text := page(t, proxy, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	return []byte(text)
}

// checkCompatPage compares a page with what is served without --compat.
func checkCompatPage(t *testing.T, plain, whole []byte) {
	t.Helper()
	upstreams, _, _ := bytes.Cut(plain, []byte("# HELP kpulse_"))
	added, ok := bytes.CutPrefix(whole, upstreams)
	if !ok {
		t.Fatal("the page does not begin with what the exporter said")
	}
	added, _, _ = bytes.Cut(added, []byte("# HELP kpulse_"))
	if _, err := parseExposition(added); err != nil {
		t.Error(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(bytes.NewReader(added)); err != nil {
		t.Errorf("a second HELP or TYPE line: %v", err)
	}
	own := families(upstreams)
	for name := range families(added) {
		if own[name] {
			t.Errorf("%s is served by the exporter itself", name)
		}
	}
}

// families returns the names of the families in text.
func families(text []byte) map[string]bool {
	names := map[string]bool{}
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		switch {
		case len(words) > 2 && words[0][0] == '#':
			names[string(words[2])] = true
		case len(words) > 1 && words[0][0] != '#':
			name, _, _ := bytes.Cut(words[0], []byte("{"))
			names[string(name)] = true
		}
	}
	return names
}

// readingsIn returns the series of devices and workloads in a page, except those about time or the
// source.
func readingsIn(page []byte) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		of := strings.HasPrefix(line, "kpulse_gpu_") || strings.HasPrefix(line, "kpulse_allocation_info")
		if of && !strings.Contains(line, "_seconds_total{") && !strings.Contains(line, "kpulse_gpu_info{") {
			lines[line] = true
		}
	}
	return lines
}
