// Package client fetches the expositions of proxies and reads them into nodes and GPUs. It also
// has the metrics, totals and words that all views use for them.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	// fetchTimeout bounds a fetch: a proxy may itself wait for its exporter.
	fetchTimeout = 10 * time.Second
	// maxBody bounds an answer: a proxy takes 64 MiB from an exporter and adds less.
	maxBody = 128 << 20
	// maxPart bounds the part of an exposition, or of another's line, in memory at once.
	maxPart = 64 << 10
	// scrapedPeriod is the time between fetches from a proxy that scrapes its source only when
	// it is scraped itself: each fetch costs the exporter a scrape.
	scrapedPeriod = 2 * time.Second
	// minPeriod is the period of the fastest sources.
	minPeriod = 100 * time.Millisecond
	// maxMeasured bounds the period that is measured between two readings.
	maxMeasured = time.Minute
	// minBackoff and maxBackoff bound the pauses after failed fetches. They are short, so that
	// a node that is back is soon seen.
	minBackoff, maxBackoff = 500 * time.Millisecond, 5 * time.Second
)

// Fetcher fetches the expositions of one node. It is for one goroutine.
type Fetcher struct {
	Node *Node // the latest, even after a failure

	target   Target
	parser   parser
	selector selector
	lines    *bufio.Reader
	part     bytes.Buffer // of a response
	failures int          // in a row
	// period is the time between fetches, measured that between the last two readings.
	period, measured time.Duration
}

// NewFetcher returns a Fetcher whose Node has not answered yet.
func NewFetcher(t Target) *Fetcher {
	n := &Node{URL: t.publicURL(), Name: t.publicURL()}
	if u, err := url.Parse(t.URL); err == nil && u.Host != "" {
		n.Name = u.Host
	}
	if t.URL == InProcess {
		n.Name = "this machine"
	}
	return &Fetcher{Node: n, target: t, parser: families(), selector: selector{choose: t.Choose}, lines: bufio.NewReaderSize(nil, maxPart)}
}

// Follow fetches until ctx ends, never faster than there are new readings, and
// publishes the node after each fetch.
func (f *Fetcher) Follow(ctx context.Context, publish func(*Node)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		begun := time.Now()
		f.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		publish(f.Node)
		timer.Reset(f.pause() - time.Since(begun))
	}
}

// leadFine is the number of ticks at the end of a lead that are all fetched: a minute, which
// charts show in detail. Of those before, every second one is fetched.
const leadFine = 60

// leadPatience bounds how long a lead waits for a tick.
const leadPatience = 5 * time.Second

// Lead publishes the nodes of the Lead of the Target, with the times of their readings, and lets
// the source keep its pace from there. It gives up if a tick does not come.
func (f *Fetcher) Lead(ctx context.Context, publish func(*Node)) {
	if f.target.Ticks == nil {
		return
	}
	defer close(f.target.Ticks)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for tick := 1; tick <= f.target.Lead; tick++ {
		patience := time.AfterFunc(leadPatience, cancel)
		select {
		case f.target.Ticks <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if tick%2 == f.target.Lead%2 || f.target.Lead-tick < leadFine {
			if !f.fetchNext(ctx) {
				return
			}
			past := *f.Node
			past.FetchedAt = past.At
			publish(&past)
		}
		patience.Stop()
	}
}

// fetchNext fetches until there is a new reading, and returns false if that fails.
func (f *Fetcher) fetchNext(ctx context.Context) bool {
	const look = 50 * time.Microsecond
	for last := f.Node.At; ctx.Err() == nil; time.Sleep(look) {
		if f.fetch(ctx); f.Node.Err == "" && f.Node.At.After(last) {
			return true
		}
	}
	return false
}

// pause returns the time from the beginning of the last fetch to that of the next.
func (f *Fetcher) pause() time.Duration {
	if f.failures > 0 {
		pause := min(minBackoff<<min(f.failures-1, 8), maxBackoff)
		return time.Duration((0.75 + 0.5*rand.Float64()) * float64(pause))
	}
	return max(f.period, minPeriod)
}

// Fetch fetches the exposition of a target once, until ctx ends. Err of the Node says why a
// fetch failed.
func Fetch(ctx context.Context, t Target) *Node {
	f := NewFetcher(t)
	f.fetchUntil(ctx)
	return f.Node
}

// fetch replaces the node; after a failure, by the previous one with the error.
func (f *Fetcher) fetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f.fetchUntil(ctx)
}

// fetchUntil is fetch with the deadline of ctx.
func (f *Fetcher) fetchUntil(ctx context.Context) {
	previous := f.Node
	n, err := f.try(ctx)
	if err != nil {
		f.failures++
		failed := *previous
		failed.Up, failed.Err = false, OneLine(err.Error())
		if previous.Up {
			failed.GPUs = make([]*GPU, len(previous.GPUs))
			for i, g := range previous.GPUs {
				failed.GPUs[i] = g.Silent()
			}
		}
		f.Node = &failed
		return
	}
	f.failures = 0
	f.selector.apply(n)
	n.FetchedAt = time.Now()
	n.Name = cmp.Or(n.Name, previous.Name)
	f.period = n.Period
	if n.Period == 0 {
		// The proxy may share one reading among several clients.
		n.Period, f.period = max(scrapedPeriod, f.measured), scrapedPeriod
	}
	switch {
	case n.At.IsZero():
	case n.At.Equal(previous.At): // the same reading again
		n.FetchedAt = previous.FetchedAt
	case n.At.After(previous.At) && previous.Up:
		f.measured = min(n.At.Sub(previous.At), maxMeasured)
	}
	f.Node = n
}

func (f *Fetcher) try(ctx context.Context) (*Node, error) {
	r := f.parser.begin(f.Node.URL)
	status, refusal, err := get(ctx, f.target.httpClient(), f.target.URL, func(from io.Reader) (int64, error) { return f.readOurs(r, from) })
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusOK:
		return r.end()
	case f.target.URL == InProcess:
		return nil, errors.New(refusal)
	}
	remedy := remedies[status]
	if remedy == "" && refusal != "" && !strings.HasPrefix(refusal, "<") {
		remedy = ": " + refusal
	}
	return nil, fmt.Errorf("HTTP %d %s%s", status, http.StatusText(status), remedy)
}

// remedies are what to do about a status.
var remedies = map[int]string{
	http.StatusUnauthorized: "; give the credentials in --tui.http-config",
	http.StatusForbidden:    "; give the credentials in --tui.http-config",
	http.StatusNotFound:     "; give the whole address, such as http://NODE:9401/metrics",
}

// readOurs lets r read our series of an exposition, part by part. All else takes no memory:
// neither series that are passed through nor an endless response.
func (f *Fetcher) readOurs(r *reader, from io.Reader) (read int64, err error) {
	f.lines.Reset(from)
	f.part.Reset()
	ours, lineStart := false, true
	for {
		piece, err := f.lines.ReadSlice('\n')
		read += int64(len(piece))
		if lineStart {
			ours = bytes.HasPrefix(piece, []byte(canonical.Prefix))
		}
		if ours {
			f.part.Write(piece)
		}
		ended := errors.Is(err, io.EOF)
		if lineStart = err == nil; ended || lineStart && f.part.Len() > maxPart {
			r.read(f.part.Bytes())
			f.part.Reset()
		}
		switch {
		case ended:
			return read, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull): // ErrBufferFull is a long line
			return read, err
		}
	}
}

// get requests address and lets keep read a response of status 200. Of another, it returns the
// first line as refusal.
func get(ctx context.Context, client *http.Client, address string, keep func(io.Reader) (int64, error)) (status int, refusal string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", errors.New("this is not a URL; give one such as http://NODE:9401/metrics")
	}
	patience := fetchTimeout
	if end, bounded := ctx.Deadline(); bounded {
		patience = time.Until(end).Round(time.Millisecond)
	}
	r.Header.Set("User-Agent", "kpulse-proxy-tui")
	r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(patience.Seconds(), 'f', -1, 64))
	if host := r.URL.Hostname(); host == "localhost" || net.ParseIP(host).IsLoopback() {
		// Within a machine compression costs more than all else.
		r.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", unreachable(err, patience)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		const most = 400
		text, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // the status says enough
		refusal, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
		return resp.StatusCode, refusal, nil
	}
	n, err := keep(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return 0, "", fmt.Errorf("the response is incomplete: %w", unreachable(err, patience))
	case n > maxBody:
		return 0, "", fmt.Errorf("the answer is longer than %d MiB; is this a kpulse-proxy?", maxBody>>20)
	}
	return resp.StatusCode, "", nil
}

// unreachable returns an error of an http.Client without the URL, which may hold
// credentials and is on the screen anyway.
func unreachable(err error, patience time.Duration) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return fmt.Errorf("no answer within %s; is the node overloaded, or a firewall between?", patience)
		}
		err = wrapped.Err
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w; does kpulse-proxy run there, at that port?", dial.Err)
	}
	return err
}

// OneLine returns a foreign text in a form that is safe to show on one line.
func OneLine(s string) string { return diag.Short(diag.Text(s), 300) }
