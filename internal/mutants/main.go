// Command mutants breaks the program on purpose, in one place at a time, and runs the tests
// of that place's package. A mutant survives if all tests still pass: it needs a test, or an
// explanation in survivors.csv why no test can tell it from the program. `make mutants` runs
// it.
//
// All mutants of a package are compiled at once, each behind a switch, and a test run switches
// one of them on: see switches.go.txt. Nothing is written to the tree, except the page of
// -write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `usage: mutants [flags] [PACKAGE...]

PACKAGE is a directory of the table of targets, such as internal/compute; the default is all of them.

`

// run is main: it returns 0 if all mutants were killed or are explained, 1 if not, and 2 for wrong
// usage.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	chosen := flags.String("run", "", "try only mutants whose name matches this regular expression")
	list := flags.Bool("list", false, "list the mutants and try none")
	verbose := flags.Bool("v", false, "print the compiler's output for mutants that it refuses")
	own := flags.Bool("own", false, "run only the tests of the mutated package, and of these only tests quicker than -most: others may still kill the survivors")
	most := flags.Duration("most", 2*time.Minute, "leave out tests that take more than about this CPU time")
	jobs := flags.Int("jobs", 2, "number of mutants to try in parallel")
	results := flags.String("results", "", "a file of verdicts: mutants killed before are not tried again")
	page := flags.String("write", "", "the page to write, such as testdata/MUTANTS.md; sections of packages that were not tried are kept")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	which, err := regexp.Compile(*chosen)
	if err != nil {
		fmt.Fprintf(stderr, "mutants: -run: %v\n", err)
		return 2
	}
	chosenTargets, err := choose(flags.Args())
	if err != nil {
		fmt.Fprintf(stderr, "mutants: %v\n", err)
		return 2
	}
	if *page != "" && (*list || *chosen != "") {
		fmt.Fprintln(stderr, "mutants: -write needs all mutants of a package: leave out -list and -run")
		return 2
	}
	c := campaign{root: ".", which: which, jobs: *jobs, remembered: *results, list: *list, verbose: *verbose, own: *own, most: *most / more, stdout: stdout, stderr: stderr}
	if *page != "" { // before an hour of work, which would be lost
		_, err = c.page(*page, targets)
	}
	if err == nil {
		err = c.run(ctx, chosenTargets)
	}
	if err == nil && *page != "" {
		err = c.writePage(*page, targets)
	}
	if err == nil {
		err = c.verdict()
	}
	if err != nil {
		fmt.Fprintf(stderr, "mutants: %v\n", err)
		return 1
	}
	return 0
}

// choose returns the targets of these directories, or all if there are none.
func choose(dirs []string) (chosen []target, err error) {
	if len(dirs) == 0 {
		return targets, nil
	}
	for _, dir := range dirs {
		i := slices.IndexFunc(targets, func(t target) bool { return t.dir == dir })
		if i < 0 {
			err = errors.Join(err, fmt.Errorf("%s is not in the table of targets (targets.go)", dir))
			continue
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, err
}
