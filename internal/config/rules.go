package config

import (
	"path/filepath"
	"time"
)

// Rules are the recording rules that the proxy evaluates itself.
type Rules struct {
	// Files are names or globs. Relative ones are so to the directory of the config
	// file.
	Files []string
	// Window is how far back rules may see, MinWindow to MaxWindow.
	Window time.Duration
	// MaxSamples is how many samples are kept for rules at the most, of 16 bytes each
	// and up to as much again, and how many one evaluation may load; at least 1.
	MaxSamples int
}

// Bounds of Rules.Window. The memory that rules take grows with what they use of
// it; what needs longer is for Prometheus.
const (
	MinWindow = time.Minute
	MaxWindow = 24 * time.Hour
)

const wantRules = "write files: [/etc/kpulse-proxy/rules/*.yml]"

var ruleSettings = []setting[Config]{
	{"files", func(d *document, e entry, c *Config) {
		for _, item := range d.items(e, wantRules) {
			name, ok := d.word(item, wantRules)
			if !ok {
				continue
			}
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(d.file), name)
			}
			c.Rules.Files = append(c.Rules.Files, name)
		}
	}},
	{"window", func(d *document, e entry, c *Config) {
		window, ok := d.duration(e, "write a duration such as 5m")
		if ok && (window < MinWindow || window > MaxWindow) {
			d.reject(e, "%s is out of range; write %s to %s", window, MinWindow, MaxWindow)
			return
		}
		c.Rules.Window = window
	}},
	{"max_samples", func(d *document, e entry, c *Config) {
		if n, ok := d.count(e, "write a number of samples such as 2000000"); ok {
			c.Rules.MaxSamples = n
		}
	}},
}

func readRules(d *document, e entry, c *Config) {
	readKeys(d, e, ruleSettings, c, wantRules)
}
