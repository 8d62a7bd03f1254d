package main

import (
	"fmt"
	"io"

	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// checkRules says what is wrong in files that Prometheus is to evaluate, or this
// program.
func checkRules(files []string, stderr io.Writer) (string, error) {
	set, problems := rules.Load(rules.Options{Window: rules.DefaultWindow, Served: servedFamilies(), ForPrometheus: true}, files...)
	if problems.Refuse() {
		return "", problems
	}
	if len(problems) > 0 {
		fmt.Fprintln(stderr, problems)
	}
	return fmt.Sprintf("%s, %s, %s: ok", plural(len(set.Files), "file"), plural(len(set.Groups), "group"),
		plural(set.Rules()+set.Alerts, "rule")), nil
}

// servedFamilies returns the names of our own families on /metrics.
func servedFamilies() []string {
	table := expose.SeriesTable()
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
