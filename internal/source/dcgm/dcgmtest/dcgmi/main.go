// Command dcgmi is the fake dcgmi that dcgmtest builds for tests.
package main

import (
	"os"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgm/dcgmtest/fake"
)

func main() { os.Exit(fake.Run(os.Args[1:], os.Stdout, os.Stderr)) }
