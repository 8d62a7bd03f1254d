package client

import (
	"bufio"
	"bytes"
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
	"unicode"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// fetchTimeout bounds a fetch: a proxy may itself wait for its exporter.
	fetchTimeout = 10 * time.Second
	// maxBody bounds an answer, for what is no proxy at all: a proxy takes 64 MiB of
	// an exporter, and adds less than that.
	maxBody = 128 << 20
	// maxPart is how much of a line is held at once.
	maxPart = 64 << 10
	// scrapedPeriod is how often we fetch from a proxy that reads its source when
	// it is scraped: each fetch costs its exporter a scrape.
	scrapedPeriod = 2 * time.Second
	// shortestPeriod is that of the fastest sources.
	shortestPeriod = 100 * time.Millisecond
	// longestApart bounds what distance of readings is taken for their period.
	longestApart = time.Minute
	// firstPause and longestPause are those before a fetch that follows a failed
	// one: a node that is back is seen soon.
	firstPause, longestPause = 500 * time.Millisecond, 5 * time.Second
)

// fetcher fetches the expositions of one node. It is for one goroutine.
type Fetcher struct {
	target   Target
	parser   *parser
	lines    *bufio.Reader
	chooser  chooser
	body     bytes.Buffer // of the last answer the series of ours
	Node     *Node        // the last, also after a failure
	failures int          // in a row
	asked    time.Time    // when the last fetch began
	// period is how often we may ask, apart how far apart the last two readings were.
	period, apart time.Duration
}

func NewFetcher(t Target) *Fetcher {
	f := &Fetcher{target: t, parser: newParser(), lines: bufio.NewReaderSize(nil, maxPart), chooser: chooser{choose: t.Choose}, Node: &Node{URL: t.shown()}}
	f.Node.Name = f.Node.URL
	if u, err := url.Parse(t.URL); err == nil && u.Host != "" {
		f.Node.Name = u.Host
	}
	if t.URL == InProcess {
		f.Node.Name = "this machine"
	}
	return f
}

// follow fetches until ctx ends, never faster than there are new readings, and
// gives publish what came of each fetch.
func (f *Fetcher) Follow(ctx context.Context, publish func(*Node)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if f.nothingPlayed() {
			timer.Reset(PlaybackPoll)
			continue
		}
		f.asked = time.Now()
		was := f.Node
		f.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		// What is paused says the same again.
		if f.target.Playback == nil || !f.Node.At.Equal(was.At) || f.Node.Err != was.Err {
			publish(f.Node)
		}
		timer.Reset(f.pause() - time.Since(f.asked))
	}
}

// pause is how long after the beginning of the last fetch the next one begins.
func (f *Fetcher) pause() time.Duration {
	if f.target.Playback != nil {
		return PlaybackPoll
	}
	if f.failures > 0 {
		pause := min(firstPause<<min(f.failures-1, 8), longestPause)
		return time.Duration((0.75 + 0.5*rand.Float64()) * float64(pause))
	}
	return max(f.period, shortestPeriod)
}

// fetch replaces the node by what it says now, or after a failure by what it said
// last, with the reason.
func (f *Fetcher) fetch(ctx context.Context) {
	n, err := f.try(ctx)
	if err != nil {
		f.failures++
		failed := *f.Node
		failed.Up, failed.Err = false, OneLine(err.Error())
		f.Node = &failed
		return
	}
	f.failures = 0
	f.chooser.apply(n)
	n.FetchedAt = time.Now()
	last := f.Node
	if n.Name == "" {
		n.Name = last.Name
	}
	f.period = n.Period
	if n.Period == 0 {
		// It may share one reading among many who ask.
		n.Period, f.period = max(scrapedPeriod, f.apart), scrapedPeriod
	}
	switch {
	case n.At.IsZero():
	case n.At.Equal(last.At):
		n.FetchedAt = last.FetchedAt // the reading that we have
	case n.At.After(last.At) && last.Up:
		f.apart = min(n.At.Sub(last.At), longestApart)
	}
	f.Node = n
}

func (f *Fetcher) try(ctx context.Context) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	status, err := get(ctx, f.target.client(), f.target.URL, &f.body, f.keepOurs)
	if err != nil {
		return nil, err
	}
	switch {
	case status == http.StatusOK:
	case f.target.URL == InProcess:
		return nil, errors.New(firstLine(f.body.Bytes()))
	default:
		return nil, refusal(status, f.body.Bytes())
	}
	return f.parser.parse(f.Node.URL, f.body.Bytes())
}

// keepOurs reads an exposition into body, as far as it is series of ours: what is
// passed through is not, nor is what somebody else says without end.
func (f *Fetcher) keepOurs(body *bytes.Buffer, from io.Reader) (read int64, err error) {
	f.lines.Reset(from)
	ours, begins := false, true
	for {
		part, err := f.lines.ReadSlice('\n')
		read += int64(len(part))
		if begins {
			ours = bytes.HasPrefix(part, []byte(canonical.Prefix))
		}
		if ours {
			body.Write(part)
		}
		switch begins = err == nil; {
		case errors.Is(err, io.EOF):
			return read, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull): // which is a long line
			return read, err
		}
	}
}

// keepAll reads all into body.
func keepAll(body *bytes.Buffer, from io.Reader) (int64, error) { return body.ReadFrom(from) }

// get has keep read into body what a URL answers, and returns its status. What is no
// answer to our question, but says why there is none, is kept as it is.
func get(ctx context.Context, client *http.Client, address string, body *bytes.Buffer, keep func(*bytes.Buffer, io.Reader) (int64, error)) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, errors.New("this is no URL; give one such as http://NODE:9401/metrics")
	}
	r.Header.Set("User-Agent", "kpulse-proxy-tui")
	r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(fetchTimeout.Seconds(), 'f', -1, 64))
	if host := r.URL.Hostname(); host == "localhost" || net.ParseIP(host).IsLoopback() {
		// To pack for a way that costs nothing would take both of us more than all else.
		r.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, unreachable(err)
	}
	defer resp.Body.Close()
	body.Reset()
	most := int64(maxBody + 1)
	if resp.StatusCode != http.StatusOK {
		keep, most = keepAll, maxPart
	}
	n, err := keep(body, io.LimitReader(resp.Body, most))
	switch {
	case err != nil:
		return 0, fmt.Errorf("the answer broke off: %w", unreachable(err))
	case n > maxBody:
		return 0, fmt.Errorf("the answer is longer than %d MiB; is this a kpulse-proxy?", maxBody>>20)
	}
	return resp.StatusCode, nil
}

// unreachable leaves out of a client's error the URL, which may hold credentials
// and is on the screen already.
func unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return fmt.Errorf("no answer within %s; is the node overloaded, or a firewall between?", fetchTimeout)
		}
		err = wrapped.Err
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w; does kpulse-proxy run there, at that port?", dial.Err)
	}
	return err
}

// refusal is the error of an answer that is not 200.
func refusal(status int, body []byte) error {
	remedy := map[int]string{
		http.StatusUnauthorized: "; give the credentials in --tui.http-config",
		http.StatusForbidden:    "; give the credentials in --tui.http-config",
		http.StatusNotFound:     "; give the whole address, such as http://NODE:9401/metrics",
	}[status]
	first := firstLine(body)
	if strings.HasPrefix(first, "<") || remedy != "" {
		first = ""
	}
	if first != "" {
		first = ": " + first
	}
	return fmt.Errorf("HTTP %d %s%s%s", status, http.StatusText(status), first, remedy)
}

// firstLine returns the beginning of an answer that is an error.
func firstLine(body []byte) string {
	first, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 400)])), "\n")
	return first
}

// oneLine makes a text from elsewhere safe to show on one line.
func OneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, s)
	const longest = 300
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return s
}

// playbackPoll is how often we look whether a Playback has gone on.
const PlaybackPoll = 50 * time.Millisecond

// nothingPlayed tells whether a Playback has not moved since the last fetch. That is
// looked at more often than there are ticks, for a step is to be seen at once. Now and
// then it is asked all the same, to learn that something is wrong.
func (f *Fetcher) nothingPlayed() bool {
	if f.target.Playback == nil || f.Node.At.IsZero() || time.Since(f.asked) > scrapedPeriod {
		return false
	}
	// The instant that we are told has been written with fewer digits.
	away := f.target.Playback.State().At.Sub(f.Node.At)
	return max(away, -away) < time.Millisecond
}
