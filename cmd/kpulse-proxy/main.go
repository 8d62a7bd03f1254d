// Command kpulse-proxy is a scrape target that replaces dcgm-exporter: it passes the exporter's
// series through and adds real utilization, workload class and health of each GPU.
package main

import (
	"os"

	"github.com/kpulse/kpulse-proxy/internal/app"
)

func main() {
	os.Exit(app.Run(os.Args[1:], os.Stdout, os.Stderr))
}
