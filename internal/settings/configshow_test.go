package settings

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"testing"
)

// samples are values for flags without a default.
var samples = map[string]string{
	"source": "http://node/metrics", "poll": "3s", "node-name": "n", "dcgm.host": "h", "dcgm.fields": "core", "gpus": "0", "counters": "c", "record": "r",
	"export": "all", "tui.url": "node", "tui.http-config": "f", "tui.focus": "3", "weights": "1,2,3,4", "expected-gpus": "8", "rules.file": "r",
	"kernel-log": "/k", "kube.discover": "a=b", "kube.discover-namespace": "n", "kube.pod-resources": "/s", "kube.workload-label": "l", "kube.config": "k", "web.hosts": "h",
	"hpc-job-mapping-dir": "d", "hpc-job-info-dir": "d", "compat": "4.8", "series.exclude": "a", "web.config.file": "w",
}

// assignment returns a flag with a value.
func assignment(s *setting) string {
	value := cmp.Or(samples[s.Flag], s.defaultText(NewOptions()))
	if f := (&givenFlag{Setting: s}); f.IsBoolFlag() {
		value = "true"
	}
	return "--" + s.Flag + "=" + value
}

// TestConfigShowHasEverySetting: --config.show has each flag that is given and has no key.
func TestConfigShowHasEverySetting(t *testing.T) {
	for i := range table {
		s := &table[i]
		if s.Flag == "" || s.Modes&^(modeHealth|modeReport) == 0 || slices.Contains(shownAs, s.Flag) {
			continue
		}
		args := []string{assignment(s)}
		if s.needs != "" {
			args = append(args, assignment(rowOf(strings.Fields(s.needs)[0])))
		}
		if !rowOf(strings.Fields(s.needs + " " + s.Flag)[0]).isFor(&Backends[0]) {
			args = append(args, "--backend=dcgm")
		}
		opts, err := Read(args, io.Discard)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		var b strings.Builder
		if err := opts.ShowConfig(&b); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if s.Key == "" && !strings.Contains(b.String(), "# "+ShellWord(args[0])+"\n") {
			t.Errorf("%q is not shown: %s", args, &b)
		}
	}
}
