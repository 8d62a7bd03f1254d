package faults

import (
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/e2etest"
)

func TestMain(m *testing.M) { e2etest.Main(m, nil) }
