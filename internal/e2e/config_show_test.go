package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown returns what --config.show prints beside other flags.
func shown(t *testing.T, environment []string, flags ...string) []byte {
	t.Helper()
	cmd := exec.Command(itself(t), append(flags, "--config.show")...)
	return shownBy(t, cmd, environment)
}

// shownBy returns the output of a command, which must succeed and print nothing else.
func shownBy(t *testing.T, cmd *exec.Cmd, environment []string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%q: %v: %s", cmd.Args, err, &stderr)
	}
	return out
}

// offered writes the example config file with all options enabled, and the files that it names, and
// returns the flag. It has no secret.
func offered(t *testing.T) string {
	t.Helper()
	example, err := os.ReadFile("../../deploy/config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^( *)#(\S)`).ReplaceAllString(string(example), "$1$2")
	dir, flag := fed(t, strings.NewReplacer("\npreset: ai\n", "\n", "username: kpulse,", "username_file: ca.pem,",
		"selector: false", "selector: true", "workloads: false", "workloads: true").Replace(text))
	for _, name := range []string{"ca.pem", "node7.password"} {
		writeCertificate(t, filepath.Join(dir, name))
	}
	writeFile(t, filepath.Join(dir, "counters.csv"), "DCGM_FI_DEV_GPU_UTIL, gauge, utilization\n")
	return flag
}

// comment matches the origin of a value, or a line about what no file can set.
var comment = regexp.MustCompile(`(?m)( # .*|^#.*\n)`)

// notThere matches the output of check config when all it reports are missing files.
var notThere = regexp.MustCompile(`\A([^\n]*(no such file or directory; check the name of the \w+ file|: names no file; check it with ls [^\n]*)\n)+\z`)

// TestShownConfigIsThatConfig: the config shown, saved and given back without flags, is the config
// in force; check config only reports missing files.
func TestShownConfigIsThatConfig(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ environment, flags []string }{
		"nothing":      {},
		"the example":  {flags: []string{"--config.file=../../deploy/config.example.yml"}},
		"all its keys": {flags: []string{offered(t)}},
		"flags": {flags: []string{"--backend=dcgm", "--dcgm.host=node:5555", "--poll=0.5", "--weights=1,2,3,0.25", "--counters=c.csv", "--kernel-log", "--kube.pod-resources", "--kube.workloads",
			"--kube.workload-label=app=Job", "--rules.file=a", "--rules.window=90s", "--series=full", "--series.birth=2m", "--series.exclude=a.+", "--compat=4.8", "--compat=2", "--expected-gpus=4"}},
		"variables":  {environment: []string{"KPULSE_SOURCE=./a #b: c", "KPULSE_NODE_NAME=[x", "KPULSE_SERIES_EXCLUDE=a\nb", "KPULSE_SOURCE_MAX_BODY=1000", "KPULSE_HPC_JOB_INFO_DIR=a\nb: c"}},
		"on demand":  {flags: []string{"--poll=0"}},
		"a file":     {flags: []string{"--replay=recording"}},
		"the demo":   {flags: []string{"--backend=replay"}},
		"discovered": {flags: []string{"--kube.discover=a in (b,c) or d", "--kube.discover-namespace=gpu"}},
	}
	for name, text := range hostileTexts {
		file := filepath.Join(t.TempDir(), strings.ReplaceAll(text, "/", "")+".yml")
		writeFile(t, file, "preset: hpc\n")
		tests["hostile "+name] = struct{ environment, flags []string }{
			[]string{"KPULSE_NODE_NAME=n" + text, "KPULSE_HPC_JOB_INFO_DIR=" + text, "KPULSE_RULES_FILE=/" + text, "KPULSE_DCGM_HOST=" + text, "KPULSE_BACKEND=dcgm"}, []string{"--config.file=" + file},
		}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := shown(t, test.environment, test.flags...)
			checkShown(t, "--config.show", string(before))
			saved := filepath.Join(t.TempDir(), "saved.yml")
			writeFile(t, saved, string(before))
			after := shown(t, nil, "--config.file="+saved)
			if b, a := comment.ReplaceAll(before, nil), comment.ReplaceAll(after, nil); !bytes.Equal(a, b) || len(a) < 1000 {
				t.Errorf("given back it is\n%s\nwant\n%s", a, b)
			}
			if out, err := exec.Command(itself(t), "check", "config", saved).CombinedOutput(); err != nil && !notThere.Match(out) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
