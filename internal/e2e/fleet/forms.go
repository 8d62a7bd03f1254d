package main

import (
	"os"
	"regexp"
	"strings"
)

// form is one way of scraping a fleet.
type form struct {
	name string
	// flags of the proxies; nil means no proxies, only the exporters.
	flags []string
	// rules makes Prometheus also evaluate rules, once the rest is measured; without proxies, those
	// for exporters.
	rules bool
	// edge is a file of rules that the proxies evaluate, with their flags in its header.
	edge string
}

// forms are the ways to scrape a fleet. rules/README.md names the exclusions.
var forms = []form{
	{name: "exporter", rules: true},
	{name: "lean", flags: []string{"--series=lean"}, rules: true},
	{name: "lean, without seconds by class and state", flags: []string{"--series=lean", withoutSeconds}},
	{name: "lean, without the exporter's readings", flags: []string{"--series=lean", withoutReadings}},
	{name: "lean, without either", flags: []string{"--series=lean", withoutSeconds, withoutReadings}},
	{name: "full", flags: []string{"--series=full"}, rules: true},
	{name: "edge", edge: "deploy/edge.rules.yml"},
}

// What can be excluded: the largest families, whose series hardly change for a long time, and
// readings that the exporter's own lines contain and that neither rules nor alerts use.
const (
	withoutSeconds  = "--series.exclude=kpulse_gpu_(workload_class|health)_seconds_total"
	withoutReadings = "--series.exclude=kpulse_gpu_((sm|fp16|fp32|fp64|int|graphics|memory_copy|encoder|decoder)_.+|tensor_[a-z]+a_active_ratio|.+_(celsius|hertz|watts|per_second)|framebuffer_((free|reserved|total)_bytes|used_ratio)|row_remap_.+|xid_(last|changes).*|real_utilization_coverage_ratio|health_conditions_read)|kpulse_allocation_(nvml_utilization_ratio|framebuffer_used_bytes)"
)

// read adds the flags in the edge file to the form.
func (f form) read() (form, error) {
	if f.edge == "" {
		return f, nil
	}
	text, err := os.ReadFile(f.edge)
	if err != nil {
		return f, err
	}
	head, _, _ := strings.Cut(string(text), "\ngroups:")
	for _, flag := range regexp.MustCompile(`--(?:series|passthrough)[a-z.]*=('[^']+'|\S+)`).FindAllString(head, -1) {
		f.flags = append(f.flags, strings.ReplaceAll(flag, "'", ""))
	}
	f.flags = append(f.flags, "--rules.file="+f.edge)
	return f, nil
}
