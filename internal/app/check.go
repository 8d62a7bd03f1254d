package app

import (
	"fmt"
	"io"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// checks are what can be checked: the word after check, whether it takes more than
// one file, and what says of the files what is wrong. Its summary is of files in which
// nothing is, but for warnings.
var checks = []struct {
	word    string
	several bool
	run     func(files []string) (summary string, problems diag.Problems, err error)
}{
	{"config", false, checkConfig},
	{"rules", true, checkRules},
	{"counters", false, checkCounters},
}

const checkUsage = `usage: kpulse-proxy check config FILE
       kpulse-proxy check rules FILE…
       kpulse-proxy check counters FILE

Says what is wrong in a config file, in Prometheus rule files (which may be globs),
or in the counters file of dcgm-exporter, and in which line; nothing is started.
Exits with 0 if all is well but for warnings, else with 1.
`

// check is the mode `check WORD FILE…`: it returns the exit code. It is no command
// of kingpin's, because beside a default command kingpin passes over a flag whose
// value is missing.
func check(args []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprint(stdout, checkUsage)
		return exitDone
	}
	for _, c := range checks {
		if len(args) < 2 || args[0] != c.word || len(args) > 2 && !c.several {
			continue
		}
		summary, problems, err := c.run(args[1:])
		if problems.Refuse() {
			err = problems
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return exitFailed
		}
		if len(problems) > 0 {
			fmt.Fprintln(stderr, problems)
		}
		fmt.Fprintln(stdout, summary)
		return exitDone
	}
	fmt.Fprint(stderr, "kpulse-proxy: check takes what to check and its file\n", checkUsage)
	return exitUsage
}

func checkConfig(files []string) (string, diag.Problems, error) {
	file, err := config.Load(files[0])
	if err != nil {
		return "", nil, err
	}
	_, problems := feedsOf(file)
	return files[0] + ": ok", problems, nil
}
