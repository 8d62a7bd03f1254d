// Command cost measures what the rules cost a Prometheus: it fills a TSDB with the
// series of generated fleets, evaluates the rule groups as the server would, and
// writes a row of the table in rules/README.md for each group. With -dashboards it runs the
// queries of the dashboards, and writes a row for each dashboard.
//
// It is a separate module, so that Prometheus' storage is not a dependency of the program.
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
	scraped := flag.String("forms", "exporter,lean,full", "what is scraped: the exporters, or proxies with --series=lean or full")
	alone := flag.String("exporter", "", "the rules for the exporters alone")
	folder := flag.String("dashboards", "", "measure the queries of the dashboards in this folder instead, over an hour and over a week")
	week := flag.Int("week", 100, "the largest fleet to measure over a week, in nodes")
	page := flag.String("write", "", "the page whose table to write, such as rules/README.md; if empty, the table is printed")
	flag.Parse()
	forms, err := formsOf(*scraped)
	switch {
	case err != nil:
	case *folder != "":
		err = runDashboards(*nodes, *week, forms, *folder, *page, flag.Args())
	default:
		err = run(*nodes, forms, *page, *alone, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run measures each fleet in each form with the rules in files; exporters alone with those in
// alone. It fails if a group takes longer than its interval.
func run(sizes string, forms []form, page, alone string, files []string) error {
	if len(files) == 0 || alone == "" {
		return fmt.Errorf("no rule files given; run make rules-cost")
	}
	table := output{page, "rules-cost", []string{"| nodes | scraped | group | rules | series recorded | samples read | most samples at once | heap, MB | CPU, s |", "|--:|---|---|--:|--:|--:|--:|--:|--:|"}}
	table.print()
	var slow []error
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of nodes", size)
		}
		for _, as := range forms {
			evaluated := files
			if as == exporter {
				evaluated = []string{alone}
			}
			costs, err := measure(n, as, evaluated)
			if err != nil {
				return fmt.Errorf("%d nodes, %s: %w", n, as, err)
			}
			for _, c := range costs {
				if err := table.add(3, size, string(as), c.group, fmt.Sprint(c.rules), fmt.Sprint(c.recorded), fmt.Sprint(c.samples), fmt.Sprint(c.peak), fmt.Sprintf("%.0f", c.heap/1e6), fmt.Sprintf("%.2f", c.cpu.Seconds())); err != nil {
					return err
				}
				if c.cpu > evalInterval {
					slow = append(slow, fmt.Errorf("%d nodes, %s: group %s takes longer than the %v between its evaluations", n, as, c.group, evalInterval))
				}
			}
		}
	}
	return errors.Join(slow...)
}
