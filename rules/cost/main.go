// Command cost prints what the rules cost a Prometheus: it fills a TSDB with the
// series of generated fleets, evaluates the rule groups as the server would, and
// writes a row of the table in rules/README.md for each group.
//
// It is a module of its own, so that the storage of Prometheus stays out of the
// program's graph.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	nodes := flag.String("nodes", "10,100,1000", "sizes of the fleets, in nodes of 8 GPUs")
	flag.Parse()
	if err := run(*nodes, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run measures each fleet with the rules in files. It fails if a group is not done
// before it is due again.
func run(sizes string, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no rule files given; run make rules-cost")
	}
	fmt.Println("| nodes | group | rules | series recorded | samples read | most samples at once | heap, MB | CPU, s |")
	fmt.Println("|--:|---|--:|--:|--:|--:|--:|--:|")
	var slow []error
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of nodes", size)
		}
		costs, err := measure(n, files)
		if err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
		for _, c := range costs {
			fmt.Printf("| %d | %s | %d | %d | %d | %d | %.0f | %.2f |\n", n, c.group, c.rules, c.recorded, c.samples, c.peak, c.heap/1e6, c.cpu.Seconds())
			if c.cpu > evalInterval {
				slow = append(slow, fmt.Errorf("%d nodes: group %s takes longer than the %v between its evaluations", n, c.group, evalInterval))
			}
		}
	}
	return errors.Join(slow...)
}
