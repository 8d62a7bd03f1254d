package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/app"
)

// TestCheckConfigOpensWhatItNames: check config reads rule and counters files like the program,
// and prints the path of each.
func TestCheckConfigOpensWhatItNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "sources:\n- source: http://node:9400/metrics\n"
	good, bad := write("good.yml", "groups: []\n"), write("bad.yml", "groups: [{name: g, rules: [{record: a, expr: '1 +'}]}]\n")
	fields, odd := write("counters.csv", "DCGM_FI_DEV_GPU_UTIL, gauge, utilization\n"), write("odd.csv", "DCGM_FI_DEV_GPU_UTIL, gouge, utilization\n")
	for name, test := range map[string]struct {
		config string
		code   int
		says   []string
	}{
		"all there":    {head + "rules: {files: ['go*.yml']}\n", 0, []string{": ok\n", good + ": ok\n"}},
		"no rules":     {head + "rules: {files: [nothing.yml]}\n", 1, []string{dir + "/nothing.yml"}},
		"bad rules":    {head + "rules: {files: [bad.yml]}\n", 1, []string{bad + ":1:", `rule 1 "a"`, "parse error"}},
		"counters":     {"sources: [{backend: dcgm, counters: counters.csv}]\n", 0, []string{fields + ": ok\n"}},
		"no counters":  {"sources: [{backend: dcgm, counters: nothing.csv}]\n", 1, []string{"sources[1].counters", dir + "/nothing.csv: no such file"}},
		"bad counters": {"sources: [{backend: dcgm, counters: odd.csv}]\n", 1, []string{odd + ":1:", "gouge"}},
	} {
		file := write("config.yml", test.config)
		var out bytes.Buffer
		if code := app.Run([]string{"check", "config", file}, &out, &out); code != test.code {
			t.Errorf("%s: exit %d, want %d:\n%s", name, code, test.code, &out)
		}
		for _, text := range test.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: the output lacks %q:\n%s", name, text, &out)
			}
		}
	}
}

// TestWordsThatAreNoCommand: the error for a mistyped command suggests the right one, and does not
// repeat a URL, which may contain a password.
func TestWordsThatAreNoCommand(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"chek":                                   "put a command (check, explain, report or doctor) before its flags",
		"http://user:hunter22@node:9400/metrics": "an argument belongs to no flag",
	} {
		var out bytes.Buffer
		if code := app.Run([]string{word, "x"}, &out, &out); code != 2 || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "hunter22") {
			t.Errorf("%s: exit %d, %s", word, code, &out)
		}
	}
}

// TestBlankIsNotAdvised checks that no page advises a counters line for a reading that the exporter
// serves without a usable value: here the memory temperature, which a board without the sensor
// reports as 0.
func TestBlankIsNotAdvised(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/captures/every-field.prom")
	if err != nil {
		t.Fatal(err)
	}
	blank := regexp.MustCompile(`(?m)^(DCGM_FI_DEV_MEMORY_TEMP\{.*\}) .*$`).ReplaceAll(text, []byte("$1 0"))
	file := filepath.Join(t.TempDir(), "page.prom")
	for _, c := range []struct {
		text    string
		advised bool
	}{
		{string(blank), false},
		{strings.ReplaceAll(string(blank), "DCGM_FI_PROF_SM_ACTIVE{", "DCGM_FI_PROF_NONE{"), true},
	} {
		writeFile(t, file, c.text)
		x, _ := examine(t, nil, append(nowhere(), "--source="+file)...)
		x.wants(t, "exporter", "works", "without")
		if _, found := x.state(t, "exporter"); strings.Contains(found, "start the exporter with -f") != c.advised {
			t.Errorf("doctor finds %s", found)
		}
		proxy := startProxy(t, itself(t), "--source="+file)
		page := awaitPage(t, proxy, "/", http.StatusOK, "without a usable value")
		if strings.Contains(page, "DCGM_FI_DEV_MEMORY_TEMP,") || strings.Contains(page, "DCGM_FI_PROF_SM_ACTIVE,") != c.advised {
			t.Errorf("the page advises\n%s", page)
		}
	}
}
