// Package config reads the file that tells how to judge and how much to take: what
// flags can say, and the tables that are too long for a flag. The program lays
// flags and environment over it.
package config

import (
	"time"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// Config is what a file says, over the defaults where it says nothing. What Load
// and Parse return is accepted by compute.New and translate.New.
type Config struct {
	// Judge has Weights only where the file gives them; Preset is then
	// compute.Custom.
	Judge compute.Options
	// Rows are the user's additions to the dialect, in the order of the file.
	Rows []translate.Row
	// Sources are what to read, in the order of the file; none leaves that to the
	// flags.
	Sources []Source
	Limits  Limits
	Rules   Rules
}

// Limits bound what one process takes and gives. All are at least 1.
type Limits struct {
	// Series is the most series of our own in one exposition.
	Series int
	// MaxBody is the largest body in bytes that is taken from the upstream, also
	// after gunzip.
	MaxBody int64
	// MaxRequests is the most scrapes served at a time.
	MaxRequests int
}

// Default returns what an empty file means.
func Default() Config {
	return Config{
		Judge: compute.DefaultOptions(),
		Limits: Limits{
			Series:      250_000,
			MaxBody:     64 << 20,
			MaxRequests: 40,
		},
		Rules: Rules{
			Window: 5 * time.Minute,
			// 32 MB, or 5 minutes of 6,600 series that are read every second.
			MaxSamples: 2_000_000,
		},
	}
}
