// Package client fetches the expositions of proxies and reads them into nodes and GPUs. It also
// has the metrics, totals and words that all views use for them.
package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

const (
	fetchTimeout = 10 * time.Second // a proxy may itself wait for its exporter
	// maxBody bounds an answer, maxLine a line of it: a proxy takes 64 MiB from an exporter and adds less.
	maxBody, maxLine = 128 << 20, 1 << 20
	// scrapedPeriod is the time between fetches from a proxy that scrapes its source only when
	// it is scraped itself: each fetch costs the exporter a scrape.
	scrapedPeriod = 2 * time.Second
	minPeriod     = 100 * time.Millisecond // of the fastest sources
	retryPause    = 2 * time.Second        // after a failed fetch; a node that is back is soon seen
	// leadTime bounds the time that a lead may take. Its last leadFine ticks are all fetched, for charts
	// that show them in detail; of those before, every second one.
	leadTime, leadFine = 30 * time.Second, 60
	// leadGC is GOGC, in percent, meanwhile: with the default, garbage collection takes 40 % of the time.
	leadGC = 300
)

// Fetcher fetches the expositions of one node. It is for one goroutine.
type Fetcher struct {
	Node *Node // the latest, even after a failure

	target Target
	parser *parser
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
	return &Fetcher{Node: n, target: t, parser: newParser()}
}

// Follow fetches until ctx ends, never faster than there are new readings, and
// publishes the node after each fetch.
func (f *Fetcher) Follow(ctx context.Context, publish func(*Node)) {
	for {
		begun := time.Now()
		bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
		f.fetch(bounded)
		if cancel(); ctx.Err() != nil {
			return
		}
		publish(f.Node)
		pause := max(f.Node.Period, minPeriod)
		if f.Node.Err != "" {
			pause = retryPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause - time.Since(begun)):
		}
	}
}

// Lead publishes the nodes of the Lead of the Target, with the times of their readings, and lets
// the source keep its pace from there. It gives up after leadTime.
func (f *Fetcher) Lead(ctx context.Context, publish func(*Node)) {
	if f.target.Ticks == nil {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(leadGC))
	defer close(f.target.Ticks)
	ctx, cancel := context.WithTimeout(ctx, leadTime)
	defer cancel()
	for left := f.target.Lead - 1; left >= 0; left-- {
		select {
		case f.target.Ticks <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if left >= leadFine && left%2 == 1 {
			continue
		}
		last := f.Node.At
		f.fetch(ctx)
		for wait := 50 * time.Microsecond; !f.Node.At.After(last); wait *= 2 {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(min(wait, time.Second))
			f.fetch(ctx)
		}
		past := *f.Node
		past.FetchedAt = past.At
		publish(&past)
	}
}

// Fetch fetches the exposition of a target once, until ctx ends. Err of the Node says why a
// fetch failed.
func Fetch(ctx context.Context, t Target) *Node {
	f := NewFetcher(t)
	f.fetch(ctx)
	return f.Node
}

// fetch replaces the node; after a failure, by the previous one with the error. ctx has a deadline.
func (f *Fetcher) fetch(ctx context.Context) {
	previous := f.Node
	n, err := f.try(ctx)
	if err != nil {
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
	if f.target.Choose != nil {
		n.keep(f.target.Choose(n))
	}
	n.FetchedAt = time.Now()
	if !n.At.IsZero() && n.At.Equal(previous.At) { // the same reading again
		n.FetchedAt = previous.FetchedAt
	}
	n.Name, n.Period = cmp.Or(n.Name, previous.Name), cmp.Or(n.Period, scrapedPeriod)
	f.Node = n
}

func (f *Fetcher) try(ctx context.Context) (*Node, error) {
	r := f.parser.begin(f.Node.URL)
	status, refusal, err := get(ctx, &f.target, f.target.readURL(), r.readOurs)
	r.forget()
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
	http.StatusBadRequest:   "; does the server want https://?",
	http.StatusUnauthorized: "; check the user and password, or the token, in the file of --tui.http-config",
	http.StatusForbidden:    "; check the user and password, or the token, in the file of --tui.http-config",
	http.StatusNotFound:     "; give the whole address, such as http://NODE:9401/metrics",
}

// readOurs reads the lines of our series. All else takes no memory: neither series that are passed
// through nor an endless response.
func (r *reader) readOurs(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(canonical.Prefix)) {
			r.read(lines.Bytes())
		}
	}
	return lines.Err()
}

// get requests address, with the client of t until ctx ends, and lets keep read a response of
// status 200. Of another, it returns the first line as refusal.
func get(ctx context.Context, t *Target, address string, keep func(io.Reader) error) (status int, refusal string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", errors.New("this is not a URL; give one such as http://NODE:9401/metrics")
	}
	end, _ := ctx.Deadline()
	patience := time.Until(end).Round(time.Millisecond)
	r.Header.Set("User-Agent", "kpulse-proxy-tui")
	r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(patience.Seconds(), 'f', -1, 64))
	if host := r.URL.Hostname(); host == "localhost" || net.ParseIP(host).IsLoopback() {
		// Within a machine compression costs more than all else.
		r.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := cmp.Or(t.Client, http.DefaultClient).Do(r)
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
	body := &io.LimitedReader{R: resp.Body, N: maxBody}
	switch err := keep(body); {
	case err != nil:
		return 0, "", fmt.Errorf("the response is incomplete: %w", unreachable(err, patience))
	case body.N == 0:
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
	if unknown, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("%w; name its CA (tls_config: {ca_file: …}) in the file of --tui.http-config, and a host name that the certificate has", unknown.Err)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return fmt.Errorf("no host is called %s; check its name, and whether it needs its domain", unknown.Name)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w; does kpulse-proxy run there, at that port?", dial.Err)
	}
	return err
}

// OneLine returns a foreign text in a form that is safe to show on one line.
func OneLine(s string) string { return diag.Short(diag.Text(s), 300) }
