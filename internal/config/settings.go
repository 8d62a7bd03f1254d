package config

import (
	"slices"

	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// setting is one key of what becomes a T, and what reads it.
type setting[T any] struct {
	key  string
	read func(*document, entry, *T)
}

// topLevel are the keys of a file.
var topLevel = []setting[Config]{
	{"preset", readPreset},
	{"weights", readWeights},
	{"missing_inputs", readMissingInputs},
	{"min_coverage", readMinCoverage},
	{"thresholds", readThresholds},
	{"temperatures", readTemperatures},
	{"health", readHealth},
	{"dialect", readDialect},
	{"limits", readLimits},
	{"sources", readSources},
	{"rules", readRules},
}

// Parse reads the content of a file, which errors call file. Its error is
// diag.Problems; it names everything that is wrong, not just the first.
func Parse(file string, body []byte) (Config, error) {
	c, d := Default(), &document{file: file, seen: map[string]int{}}
	if root, ok := d.open(body); ok {
		readKeys(d, root, topLevel, &c, "write settings such as preset: ai")
	}
	if len(d.problems) == 0 {
		d.confirm(&c)
	}
	if err := d.failure(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// readKeys reads the keys of a mapping, each by the setting of its name.
func readKeys[T any](d *document, of entry, known []setting[T], into *T, want string) {
	for _, e := range d.entries(of, want) {
		i := slices.IndexFunc(known, func(s setting[T]) bool { return s.key == e.key })
		if i < 0 {
			d.unknown(e, keysOf(known))
			continue
		}
		known[i].read(d, e, into)
	}
}

func keysOf[T any](known []setting[T]) []string {
	keys := make([]string, len(known))
	for i := range known {
		keys[i] = known[i].key
	}
	return keys
}

// judge changes how to judge. What is right is known to compute alone, so the
// change is first made to the defaults: an error is then that of e.
func (d *document) judge(e entry, c *Config, change func(*compute.Options)) {
	alone := compute.DefaultOptions()
	change(&alone)
	if _, err := compute.New(alone); err != nil {
		d.reject(e, "%v", err)
		return
	}
	change(&c.Judge)
}

// confirm asks those who will get c for settings that are wrong only together.
func (d *document) confirm(c *Config) {
	if _, err := compute.New(c.Judge); err != nil {
		d.reject(entry{}, "%v", err)
	}
	if _, err := translate.New(translate.Options{Rows: c.Rows}); err != nil {
		d.reject(entry{}, "%v", err)
	}
}
