// Command dcgmi is the fake dcgmi that dcgmitest builds for tests.
package main

import (
	"os"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest/fake"
)

func main() { os.Exit(fake.Run(os.Args[1:], os.Stdout, os.Stderr)) }
