// Command fleet measures what a fleet costs a real Prometheus: with the exporters alone, and with
// kpulse-proxy in front of each. It plays the exporters of N nodes of 8 GPUs, runs the proxies and
// the Prometheus in the PATH, and writes a row of the tables in rules/README.md for each. `make
// fleet` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	nodes := flag.String("nodes", "10,100,1000", "sizes of the fleets, in nodes of 8 GPUs")
	chosen := flag.String("forms", "", "forms to measure, separated by semicolons; all if empty")
	lasts := flag.Duration("for", 0, "how long to scrape each fleet before its memory is read; 0 means until chunks are full, at most 4m")
	proxy := flag.String("proxy", "./kpulse-proxy", "the kpulse-proxy to run")
	alone := flag.String("exporter", "", "the rule file for exporters without proxies; the arguments are those for proxies")
	page := flag.String("write", "", "the page whose tables to update, such as rules/README.md; by default they are printed")
	sizing := flag.String("sizes", "", "the page for the computed needs of other fleet sizes, from the table in the page of -write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, plan{sizes: *nodes, forms: *chosen, page: *page, trial: trial{lasts: *lasts, proxy: *proxy, rules: flag.Args(), alone: *alone}})
	stop()
	if err == nil && *sizing != "" {
		err = writeSizes(*sizing, *page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// plan is what to measure, and where to write it.
type plan struct {
	sizes, forms, page string
	trial              trial
}

// run measures each fleet in each form.
func run(ctx context.Context, p plan) error {
	groups, err := groupsOf(append(slices.Clone(p.trial.rules), p.trial.alone))
	if err != nil {
		return err
	}
	evaluations.head = append(evaluations.head[:2], groups...)
	if p.page != "" { // rewrite rows of other versions in this version's format
		if err := errors.Join(costs.merge(p.page), evaluations.merge(p.page)); err != nil {
			return err
		}
	}
	for size := range strings.SplitSeq(p.sizes, ",") {
		if size == "" {
			continue // compute only the sizes
		}
		nodes, err := strconv.Atoi(size)
		if err != nil || nodes < 1 {
			return fmt.Errorf("%q is not a number of nodes", size)
		}
		for _, f := range forms {
			if p.forms != "" && !slices.Contains(strings.Split(p.forms, ";"), f.name) {
				continue
			}
			if p.trial.form, err = f.read(); err != nil {
				return err
			}
			p.trial.nodes = nodes
			c, err := measure(ctx, p.trial)
			if err != nil {
				return fmt.Errorf("%d nodes, %s: %w", nodes, f.name, err)
			}
			if err := p.note(c, groups); err != nil {
				return err
			}
		}
	}
	return nil
}

// note writes a trial's costs into the tables of the page, or prints them.
func (p *plan) note(c cost, groups []string) error {
	measured, took := costs, evaluations
	measured.set(c.row(p.trial.nodes, p.trial.form.name))
	if c.ruled != nil {
		measured.set(c.ruled.row(p.trial.nodes, p.trial.form.name+withRules))
		var cells []string
		for _, g := range groups {
			cells = append(cells, shown(c.groups[g], "%.2f"))
		}
		took.set(row{p.trial.nodes, p.trial.form.name, cells})
	}
	if p.page == "" {
		_, err := fmt.Println(measured.String() + took.String())
		return err
	}
	if err := measured.merge(p.page); err != nil {
		return err
	}
	return took.merge(p.page)
}

// groupsOf returns the names of the rule groups in files, in order.
func groupsOf(files []string) (groups []string, err error) {
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "- name: "); ok {
				groups = append(groups, strings.TrimSpace(name))
			}
		}
	}
	return groups, nil
}
