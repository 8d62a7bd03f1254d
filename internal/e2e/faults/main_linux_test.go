// Package faults is the fault suite: what the program does when its surroundings or its input
// break. Each row of its tables is a fault that befalls a running program or one that starts.
// `make faults` runs them.
package faults

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
)

func TestMain(m *testing.M) { e2etest.Main(m, nil) }
