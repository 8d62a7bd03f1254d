package config

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// The readers of single values: each rejects what it cannot read, saying that it
// wants want, and is then not ok.

// word reads a plain value as it is written, whatever YAML takes it for: off is
// not false here.
func (d *document) word(e entry, want string) (string, bool) {
	if e.value.Kind != yaml.ScalarNode || e.value.Tag == nullTag {
		d.reject(e, "%s where one value is wanted; %s", diag.YAMLKind(e.value), want)
		return "", false
	}
	return e.value.Value, true
}

// number reads an integer or a float. NaN and the infinities are left to those who
// know what the number is for.
func (d *document) number(e entry, want string) (v float64, ok bool) {
	if e.value.Tag == intTag || e.value.Tag == floatTag {
		ok = e.value.Decode(&v) == nil
	}
	if !ok {
		d.reject(e, "%s is no number; %s", diag.YAMLKind(e.value), want)
	}
	return v, ok
}

// count reads an integer of at least 1.
func (d *document) count(e entry, want string) (n int, ok bool) {
	if e.value.Tag == intTag {
		ok = e.value.Decode(&n) == nil && n >= 1
	}
	if !ok {
		d.reject(e, "%s is no whole number of at least 1; %s", diag.YAMLKind(e.value), want)
	}
	return n, ok
}

func (d *document) duration(e entry, want string) (time.Duration, bool) {
	s, ok := d.word(e, want)
	if !ok {
		return 0, false
	}
	v, err := ParseDuration(s)
	if err != nil {
		d.reject(e, "%v", err)
	}
	return v, err == nil
}
