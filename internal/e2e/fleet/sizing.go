package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Assumptions of the table of sizes in deploy/fleet/README.md.
const (
	serverMemory = 16e9 // bytes of a Prometheus or a receiver
	headroom     = .5   // its share for queries, compaction and series churn
	copies       = 2    // of each series, on at least minReceivers
	minReceivers = 3
	retention    = 15 * 24 * 3600 // seconds that a Prometheus keeps
	scrapeEvery  = 15             // seconds
	recordEvery  = 60             // seconds
)

// The fleets and forms whose sizes are listed.
var (
	sizedNodes = []int{10, 1_000, 10_000}
	sizedForms = []string{forms[0].name, "lean", "lean" + withRules, "full", "edge"}
)

// sizes is the table of sizes.
var sizes = table{name: "sizes", head: []string{
	"nodes", "scraped", "proxies", "series, million", "samples a second", "Prometheus servers", "receivers of Thanos", "disk for 15 days, GB",
}}

// size computes the table from measured costs: the costs per node of the largest measured fleet.
func size(measured *table) (*table, error) {
	t := &table{name: sizes.name, head: sizes.head}
	for _, nodes := range sizedNodes {
		for _, form := range sizedForms {
			r, err := sizeOf(measured, nodes, form)
			if err != nil {
				return nil, err
			}
			t.set(r)
		}
	}
	return t, nil
}

// sizeOf returns a row of the table.
func sizeOf(measured *table, nodes int, form string) (row, error) {
	var series, scraped, memory, bytes float64 // per node, and per sample
	for _, r := range measured.rows {          // the largest fleet is last
		if r.form == form {
			series, memory = measured.number(r, "head series")/float64(r.nodes), measured.number(r, "peak resident, MB")*1e6/float64(r.nodes)
		}
		if r.form != strings.TrimSuffix(form, withRules) {
			continue
		}
		scraped = measured.number(r, "head series") / float64(r.nodes)
		if b := measured.number(r, "bytes per sample"); b > 0 {
			bytes = b
		}
	}
	if series == 0 || memory == 0 || bytes == 0 {
		return row{}, fmt.Errorf("%s was not measured; run make fleet", form)
	}
	n := float64(nodes)
	servers := math.Ceil(n * memory / (serverMemory * (1 - headroom)))
	receivers := max(minReceivers, math.Ceil(copies*n*memory/(serverMemory*(1-headroom))))
	proxies := nodes
	if form == forms[0].name {
		proxies = 0
	}
	perSecond := n * (scraped/scrapeEvery + (series-scraped)/recordEvery)
	return row{nodes, form, []string{
		strconv.Itoa(proxies), fmt.Sprintf("%.3g", n*series/1e6), fmt.Sprintf("%.0f", perSecond), fmt.Sprintf("%.0f", servers), fmt.Sprintf("%.0f", receivers),
		fmt.Sprintf("%.0f", math.Ceil(perSecond*retention*bytes/1e9)),
	}}, nil
}

// number returns the number of a row in a column, 0 if there is none.
func (t *table) number(r row, column string) float64 {
	for i, head := range t.head[2:] {
		if head == column {
			v, _ := strconv.ParseFloat(r.cells[i], 64)
			return v
		}
	}
	return 0
}

// writeSizes recomputes the table in a page from the costs in another.
func writeSizes(page, measuredIn string) error {
	text, err := os.ReadFile(measuredIn)
	if err != nil {
		return err
	}
	measured := &table{name: costs.name, head: costs.head}
	if err := measured.read(string(text)); err != nil {
		return err
	}
	t, err := size(measured)
	if err != nil {
		return err
	}
	return t.merge(page)
}
