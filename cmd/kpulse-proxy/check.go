package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/config"
)

// checks are what can be checked: the word after check, and what tells what is
// wrong with a file.
var checks = []struct {
	word string
	run  func(file string) error
}{
	{"config", func(file string) error { _, err := config.Load(file); return err }},
}

const checkUsage = `usage: kpulse-proxy check config FILE

Says what is wrong in a config file, and in which line; nothing is started.
Exits with 0 if all is well, else with 1.
`

// check is the mode `check WORD FILE`: it returns the exit code. It is no command
// of kingpin's, because beside a default command kingpin passes over a flag whose
// value is missing.
func check(args []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Fprint(stdout, checkUsage)
		return exitDone
	}
	for _, c := range checks {
		if len(args) != 2 || args[0] != c.word {
			continue
		}
		if err := c.run(args[1]); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFailed
		}
		fmt.Fprintf(stdout, "%s: ok\n", args[1])
		return exitDone
	}
	fmt.Fprint(stderr, "kpulse-proxy: check takes what to check and one file\n", checkUsage)
	return exitUsage
}
