// Command generate writes Prometheus rules that derive from the series of dcgm-exporter what this
// program would, from the weights, thresholds and tables of compute and the names and units of
// translate. Its argument is the file to write.
package main

//go:generate go run . ../twin/dcgm-exporter.rules.yml

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: generate FILE")
		return 2
	}
	text, err := exporterRules().render()
	if err == nil {
		err = os.WriteFile(args[0], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
