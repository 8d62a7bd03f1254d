package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/config"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/source/recording"
	"github.com/kpulse/kpulse-proxy/internal/source/replay"
)

// longestPoll is where an interval is taken for a mistake.
const longestPoll = 24 * time.Hour

// backend is a way to get readings.
type backend struct {
	name, alias string
	// least is the shortest --poll. Below it, clamped backends go on with it and
	// others refuse.
	least   time.Duration
	clamped bool
	// standard is --poll where it is not given; 0 leaves it to the source.
	standard time.Duration
	// onDemand backends take --poll=0 for reading only when they are scraped.
	onDemand bool
	// source is --source where it is not given.
	source string
	// open is nil in a backend that is not built yet.
	open func(o *options, userAgent string, logger *slog.Logger) (source.Source, error)
}

var backends = []backend{
	{name: "prometheus", least: time.Second, standard: 15 * time.Second, onDemand: true, source: defaultUpstream, open: openExporter},
	{name: "replay", least: 100 * time.Millisecond, open: openReplay},
	{name: "dcgm", alias: "dcgmi"},
	{name: "nvml", alias: "nvml_direct"},
}

func parseBackend(word string) (*backend, error) {
	var words []string
	for i := range backends {
		b := &backends[i]
		switch {
		case word != b.name && (b.alias == "" || word != b.alias):
			if b.open != nil {
				words = append(words, b.name)
			}
		case b.open == nil:
			return nil, fmt.Errorf("%s is not in this version yet; run dcgm-exporter and use prometheus, or look around with replay", word)
		default:
			return b, nil
		}
	}
	return nil, fmt.Errorf("%q is no backend; use %s", word, strings.Join(words, " or "))
}

// parsePoll reads a duration or bare seconds within what b allows.
func (b *backend) parsePoll(word string) (time.Duration, error) {
	if word == "" {
		return b.standard, nil
	}
	d, err := config.ParseDuration(word)
	switch {
	case err != nil:
		return 0, err
	case d == 0 && b.onDemand && !strings.ContainsAny(word, "123456789"):
		return 0, nil
	case d <= 0 || d > longestPoll || d < b.least && !b.clamped:
		return 0, fmt.Errorf("%s is out of range; the %s backend takes %s to %s", word, b.name, b.least, longestPoll)
	}
	return d, nil
}

// open opens the source that the command line names, and records it if it says
// so.
func open(o *options, userAgent string, logger *slog.Logger) (source.Source, error) {
	src, err := o.backend.open(o, userAgent, logger)
	if err != nil || o.record == "" {
		return src, err
	}
	recorder, err := recording.Record(src, o.record, recording.Options{Logger: logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--record: %w", err), src.Close())
	}
	return recorder, nil
}

func openExporter(o *options, userAgent string, _ *slog.Logger) (source.Source, error) {
	// The pipeline bounds each read by its scrapers' timeouts; this one is for when
	// none would.
	return exporter.New(o.source, exporter.Options{MaxBody: o.maxBody, UserAgent: userAgent, Timeout: writeTimeout})
}

func openReplay(o *options, _ string, logger *slog.Logger) (source.Source, error) {
	opts := replay.Options{Period: o.poll, Loop: true, Logger: logger}
	switch {
	case o.source == "":
		return replay.Demo(opts), nil
	case strings.Contains(o.source, "://"):
		return nil, errors.New("--source is a URL, and --backend=replay plays files; read a URL with --backend=prometheus")
	default:
		return replay.Open(o.source, opts)
	}
}
