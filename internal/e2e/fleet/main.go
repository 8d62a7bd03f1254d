// Command fleet measures what a fleet costs a real Prometheus: with the exporters alone,
// and with kpulse-proxy in front of each. It plays the exporters of N nodes of 8 GPUs, runs
// the proxies and the Prometheus that it finds in the PATH, and prints a row of the table in
// rules/README.md for each. `make fleet` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// forms are what Prometheus scrapes: the exporters themselves, or proxies with --series.
var forms = []string{"exporter", "lean", "full"}

func main() {
	sizes := flag.String("nodes", "10,100,1000", "sizes of the fleets, in nodes of 8 GPUs")
	lasts := flag.Duration("for", 2*time.Minute, "how long each is scraped")
	proxy := flag.String("proxy", "./kpulse-proxy", "the program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *sizes, *lasts, *proxy, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run measures each fleet in each form, with the rules of files.
func run(ctx context.Context, sizes string, lasts time.Duration, proxy string, files []string) error {
	fmt.Println("| nodes | scraped | head series | of it ours, each GPU | Prometheus' memory, MB | of the exporters' alone | Prometheus' CPU, cores | bytes a sample | proxies' CPU each node, ms a scrape | slowest rule group, s |")
	fmt.Println("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for size := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil || nodes < 1 {
			return fmt.Errorf("%q is no number of nodes", size)
		}
		var alone cost
		for _, form := range forms {
			c, err := measure(ctx, trial{nodes: nodes, form: form, lasts: lasts, proxy: proxy, rules: files})
			if err != nil {
				return fmt.Errorf("%d nodes, %s: %w", nodes, form, err)
			}
			if form == forms[0] {
				alone = c
			}
			fmt.Printf("| %d | %s | %.0f | %.0f | %.0f | %.2f × | %.2f | %.2f | %.1f | %s |\n", nodes, form, c.series, c.ours/float64(nodes*gpusPerNode),
				c.memory/1e6, c.memory/alone.memory, c.cpu, c.bytes, 1e3*c.proxies, c.slowest)
		}
	}
	return nil
}
