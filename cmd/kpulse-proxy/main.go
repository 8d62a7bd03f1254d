// Command kpulse-proxy is a scrape target in the place of dcgm-exporter: it
// passes the exporter's series through and adds real utilization, workload class
// and health for every GPU.
package main

import (
	"os"

	"github.com/kpulse/kpulse-proxy/internal/app"
)

func main() {
	os.Exit(app.Run(os.Args[1:], os.Stdout, os.Stderr))
}
