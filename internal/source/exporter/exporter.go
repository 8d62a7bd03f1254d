// Package exporter reads a Prometheus exposition: from a dcgm-exporter (or
// anything that speaks its text format) over HTTP, or from a file that holds a
// saved one. It knows the transport and its failures, not what the families mean.
package exporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// defaultMaxBody is the largest body that is read, in bytes after gunzip. An
	// exposition of 112 MIG instances × 60 fields takes 1.4 MB, one of 1024
	// instances 14 MB.
	defaultMaxBody = 64 << 20
	// defaultTimeout bounds one Read. It is Prometheus' default scrape_timeout.
	defaultTimeout = 10 * time.Second
	// defaultUserAgent is the name that upstreams see in their log.
	defaultUserAgent = "kpulse-proxy"
)

// Options tune a Source. The zero value is ready to use.
type Options struct {
	MaxBody   int64         // of a body in bytes, on the wire and after gunzip; 0 or less means defaultMaxBody
	Timeout   time.Duration // of a Read whose context has no earlier deadline; 0 or less means defaultTimeout
	Memory    *source.Memory
	UserAgent string // of the request; "" means defaultUserAgent
	// Client carries TLS and authentication. It is copied; the copy keeps no
	// cookies, follows no redirect to another scheme, host or port, and its
	// CheckRedirect, if any, is called after our own. Close closes the idle
	// connections of its transport. nil means a client of our own, which uses
	// no proxy: a node's exporter is not reached through one.
	Client *http.Client
	Name   string // of the source in messages; "" means its URL or path
	// Look names, for remedies, what else to check if the exporter cannot be read. Such remedies
	// suggest no other source, because this one was discovered.
	Look string
}

// Source is one upstream that answers with an exposition. It implements
// source.Source.
type Source struct {
	timeout  time.Duration
	caps     source.Caps
	upstream upstream
	look     string
	called   string
	dict     *raw.Dict
	scanner  raw.Scanner
	memory   *source.Memory

	// open lasts until Close calls end.
	open context.Context
	end  context.CancelFunc
}

// upstream is where bodies come from.
type upstream interface {
	// name identifies the upstream, free of credentials.
	name() string
	// fetch sets the Body of b, in its memory if that suffices, and the fields that
	// describe Body. Body has capacity for at least one more byte. Errors are
	// *source.Error and leave b unchanged. Several goroutines may call fetch at a
	// time.
	fetch(ctx context.Context, b *raw.Batch) error
	// notMetrics explains a Body that is no exposition.
	notMetrics(b *raw.Batch) *source.Error
	close()
}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Fetcher = (*Source)(nil)
)

// New returns the Source of target: an http:// or https:// URL, or the path of a file, which each Read reads again. A URL
// whose path is empty or "/" gets the path "/metrics". User and password in the URL are sent as basic authentication. New
// does not connect: a target that it refuses (with a *source.Error of Failure Unsupported) can never work.
func New(target string, opts Options) (*Source, error) {
	u, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	s := &Source{
		timeout: opts.Timeout, look: opts.Look, called: opts.Name, dict: raw.NewDict(), memory: opts.Memory,
		caps: source.Caps{Backend: "prometheus", Kind: source.Scraped, Aggregation: source.Window},
	}
	if s.timeout <= 0 {
		s.timeout = defaultTimeout
	}
	s.open, s.end = context.WithCancel(context.Background())
	maxBody := min(opts.MaxBody, math.MaxInt64-2)
	if maxBody <= 0 {
		maxBody = defaultMaxBody
	}
	switch {
	case u != nil:
		s.caps.Host, s.upstream = u.Hostname(), newWeb(u, opts, maxBody)
	case opts.Client != nil:
		return nil, refuse(fmt.Sprintf("source %q is a file, and credentials and TLS are for URLs", target), "remove the http_config, or name a URL")
	default:
		s.upstream = &file{target, maxBody, opts.Memory}
	}
	return s, nil
}

// Name returns Options.Name, else the URL without its user, password, query and fragment, any of
// which may hold a secret, or the path of the file.
func (s *Source) Name() string { return cmp.Or(s.called, s.upstream.name()) }

// Caps returns the static properties. Host is the URL's host without its port,
// "" for a file. Local is never set: an exporter on localhost may be a
// port-forward, and a file may come from anywhere.
func (s *Source) Caps() source.Caps { return s.caps }

// Read asks the upstream once. An empty body is a good reading without samples.
// All errors are *source.Error; one after Close wraps os.ErrClosed, one after
// ctx was cancelled wraps context.Canceled. A read of a file on a file system
// that hangs cannot be cancelled.
func (s *Source) Read(ctx context.Context, b *raw.Batch) error {
	if err := s.Fetch(ctx, b); err != nil {
		return err
	}
	return s.Scan(b)
}

// withSetting adds to the remedy of an error what else to check.
func (s *Source) withSetting(err error) error {
	e, ok := errors.AsType[*source.Error](err)
	if ok && s.look != "" {
		e.Remedy = strings.TrimSuffix(e.Remedy, nameAnother) + "; and look at " + s.look
	}
	return err
}

// Fetch implements source.Fetcher.
func (s *Source) Fetch(ctx context.Context, b *raw.Batch) error {
	b.Reset()
	b.Dict = s.dict
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	if s.open.Err() != nil {
		return s.errClosed()
	}
	at := time.Now()
	err := s.upstream.fetch(ctx, b)
	took := time.Since(at)
	if s.open.Err() != nil {
		// This connection may have become idle after Close looked for idle ones.
		s.upstream.close()
		b.Reset()
		return s.errClosed()
	}
	if err != nil {
		return s.withSetting(err)
	}
	b.At, b.Took = at, took
	return nil
}

// Scan implements source.Fetcher.
func (s *Source) Scan(b *raw.Batch) error {
	if len(b.Body) > collectFrom && s.memory != nil {
		if lines := bytes.Count(b.Body, []byte("\n")) + 1; lines > cap(b.Samples) {
			drop := func() { *b = raw.Batch{} }
			if b.Samples = source.Make[raw.Sample](s.memory, len(b.Body), min(lines, raw.MaxSamples), drop); b.Samples == nil {
				return s.noRoom(b)
			}
		}
	}
	s.scanner.Fits = s.memory.Fits
	if s.scanner.Scan(b); s.scanner.Full {
		return s.noRoom(b)
	}
	if b.Unfinished {
		b.Skipped++
	}
	if b.Excess {
		b.Reset()
		return failed(source.TooLarge, nil, s.Name()+": the body contains more families, label sets or samples than an exporter serves",
			"point the source at a single exporter's /metrics")
	}
	if b.Skipped > 0 && b.Meaningful == 0 {
		err := s.upstream.notMetrics(b)
		b.Reset()
		return s.withSetting(err)
	}
	return nil
}

// noRoom empties b and forgets what was read for it.
func (s *Source) noRoom(b *raw.Batch) error {
	*b = raw.Batch{}
	s.dict, s.scanner = raw.NewDict(), raw.Scanner{}
	return noMemory(s.Name(), s.memory)
}

// Close makes a Read in progress and all later ones fail, and closes idle
// connections. It may be called from any goroutine, more than once.
func (s *Source) Close() error {
	s.end()
	s.upstream.close()
	return nil
}

func (s *Source) errClosed() *source.Error {
	return failed(source.Unsupported, os.ErrClosed, s.Name()+": the source is closed", "open it again")
}
