package app

import (
	"fmt"

	"github.com/kpulse/kpulse-proxy/internal/diag"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/rules"
)

// checkRules says what is wrong in files that Prometheus is to evaluate, or this
// program.
func checkRules(files []string) (string, diag.Problems, error) {
	set, problems := rules.Load(rules.Options{Window: rules.DefaultWindow, Served: servedFamilies(), ForPrometheus: true}, files...)
	return fmt.Sprintf("%s, %s, %s: ok", plural(len(set.Files), "file"), plural(len(set.Groups), "group"),
		plural(set.Rules()+set.Alerts, "rule")), problems, nil
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
