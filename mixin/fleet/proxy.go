package fleet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/holders"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// text is the source of a proxy: the page of a host's exporter.
type text struct {
	host    *host
	began   time.Time // of the fleet; a stream begins earlier
	dict    *raw.Dict
	scanner raw.Scanner
}

func (s *text) Name() string { return "http://localhost:9400/metrics" }

func (s *text) Caps() source.Caps {
	return source.Caps{Backend: "prometheus", Kind: source.Scraped, Aggregation: source.Window, Host: s.host.name, Local: true}
}

func (s *text) Read(_ context.Context, b *raw.Batch) error {
	b.Reset()
	b.Dict, b.At = s.dict, time.Now()
	b.Body = s.host.page(b.Body[:0], time.Since(s.began))
	s.scanner.Scan(b)
	if b.Skipped > 0 {
		return &source.Error{Failure: source.NotMetrics, Cause: fmt.Sprintf("%d lines of the page are not metrics", b.Skipped)}
	}
	return nil
}

func (s *text) Close() error { return nil }

// stream is the source of a proxy that reads the host engine, with a tick each period.
type stream struct{ text }

const period = 10 * time.Second

func (s *stream) Name() string { return "dcgmi dmon" }

func (s *stream) Caps() source.Caps {
	return source.Caps{Backend: "dcgm", Kind: source.Streamed, Aggregation: source.Point, Period: period, Host: s.host.name, Local: true}
}

func (s *stream) Read(ctx context.Context, b *raw.Batch) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(time.Now().Truncate(period).Add(period))):
	}
	return s.text.Read(ctx, b)
}

// Streams implements source.Streams: from host.evicts on, a tick per minute is lost, and the
// stream restarts every ten minutes.
func (s *stream) Streams(dst []source.StreamTotals) []source.StreamTotals {
	totals := source.StreamTotals{Stream: "device", Ticks: uint64(max(0, time.Since(s.began)/period))}
	if lost := time.Since(s.began) - s.host.evicts; s.host.evicts > 0 && lost > 0 {
		totals.Evicted, totals.Missed, totals.Restarts = uint64(lost/time.Minute), uint64(lost/time.Minute), uint64(lost/(10*time.Minute))
		totals.MissedAt = time.Now().Truncate(time.Minute)
	}
	return append(dst, totals)
}

// proxy is a kpulse-proxy in this process, with its targets.
type proxy struct {
	host    *host
	handler http.Handler
	targets []*target
}

// startProxy runs the proxy of a host until ctx ends; jobs describes the Slurm jobs.
func startProxy(ctx context.Context, h *host, began time.Time, jobs *holders.Jobs) (*proxy, error) {
	translator, err := translate.New(translate.Options{FallbackHost: h.name})
	if err != nil {
		return nil, err
	}
	judge, err := compute.New(compute.DefaultOptions())
	if err != nil {
		return nil, err
	}
	h.last = time.Since(began)
	exporter := text{host: h, began: began, dict: raw.NewDict()}
	opts := pipeline.Options{
		Source: &exporter, Translator: translator, Judge: judge,
		Host: func() canonical.Host {
			return canonical.Host{CPUs: 192, CPUUtilization: h.busy, MemoryTotal: 2e12, MemoryAvailable: 1.2e12}
		},
		Logger: slog.New(slog.DiscardHandler), MinInterval: time.Second, Timeout: 10 * time.Second, Attribute: jobs.Feed().Complete,
	}
	if h.streams {
		opts.Source = &stream{exporter}
	}
	p := pipeline.New(opts)
	go func() { _ = p.Run(ctx) }()
	handler, err := expose.New(expose.Options{
		Sources: expose.NewSet(p), Passthrough: expose.PassOff, MaxRequests: 40, Timeout: 10 * time.Second,
		FailureKinds: pipeline.FailureKinds(), Logger: slog.New(slog.DiscardHandler),
		Machine: expose.Machine{Switches: func(dst []canonical.SXIDCount) []canonical.SXIDCount {
			if failed := time.Since(began) - h.switchFails; h.switchFails > 0 && failed >= 0 {
				dst = append(dst, canonical.SXIDCount{Hostname: h.name, PCIBusID: "0000:05:00.0", Code: 12028, Count: uint64(failed / time.Minute)})
			}
			return dst
		}},
	})
	if err != nil {
		return nil, err
	}
	return &proxy{host: h, handler: handler, targets: []*target{{path: "/metrics", job: "kpulse-proxy"}, {path: "/-/metrics", job: "kpulse-proxy-telemetry"}}}, nil
}

// target is an exposition that Prometheus scrapes.
type target struct {
	path, job string
	known     map[string]*scraped // by the text of the series
	present   []*scraped          // in the order of the previous scrape
	up        *series
}

// scraped is a series of a target; series is nil if it is not queried.
type scraped struct {
	text   string
	series *series
	seen   int64 // time of the last scrape that had it
}

// scrape scrapes the targets of a proxy into s, as Prometheus does, except for series whose
// name is not in asked.
func (p *proxy) scrape(s *store, asked map[string]bool, since time.Duration, at int64) error {
	for _, t := range p.targets {
		if t.up == nil {
			t.known = map[string]*scraped{}
			t.up = s.series(p.labels(t, labels.FromStrings(model.MetricNameLabel, "up")))
		}
		page := httptest.NewRecorder()
		if p.host.down == 0 || since < p.host.down {
			p.handler.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "http://"+p.host.instance()+t.path, http.NoBody))
			if page.Code != http.StatusOK {
				return fmt.Errorf("%s%s answers %d: %s", p.host.instance(), t.path, page.Code, page.Body)
			}
		}
		if up := min(page.Body.Len(), 1); up > 0 || !p.host.unlisted {
			t.up.append(at, float64(up))
		} else {
			t.up.end(at)
		}
		if err := t.take(page.Body.Bytes(), at, func(l labels.Labels) *series {
			if !asked[l.Get(model.MetricNameLabel)] {
				return nil
			}
			return s.series(p.labels(t, l))
		}); err != nil {
			return fmt.Errorf("%s%s: %w", p.host.instance(), t.path, err)
		}
	}
	return nil
}

// labels adds the labels that Prometheus adds to a target's series.
func (p *proxy) labels(t *target, l labels.Labels) labels.Labels {
	return labels.NewBuilder(l).Set("cluster", p.host.cluster).Set("job", t.job).Set("instance", p.host.instance()).Labels()
}

// take appends the samples of an exposition, and ends the series that it lacks.
func (t *target) take(page []byte, at int64, of func(labels.Labels) *series) error {
	before := t.present
	t.present = make([]*scraped, 0, len(before))
	for len(page) > 0 {
		line, rest, _ := bytes.Cut(page, []byte("\n"))
		page = rest
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		cut := bytes.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(string(line[cut+1:]), 64)
		if cut < 0 || err != nil {
			return fmt.Errorf("%s is not a sample", line)
		}
		var m *scraped
		if n := len(t.present); n < len(before) && before[n].text == string(line[:cut]) {
			m = before[n]
		} else if m = t.known[string(line[:cut])]; m == nil {
			l, err := metrics.ParseMetric(string(line[:cut]))
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			m = &scraped{text: string(line[:cut]), series: of(l)}
			t.known[m.text] = m
		}
		t.present = append(t.present, m)
		if m.seen = at; m.series != nil {
			m.series.append(at, v)
		}
	}
	for _, m := range before {
		if m.seen != at && m.series != nil {
			m.series.end(at)
		}
	}
	return nil
}

var metrics = parser.NewParser(parser.Options{})
