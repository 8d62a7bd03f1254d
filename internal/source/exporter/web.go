package exporter

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

const (
	// accept names the one format we read and pass on. Prometheus' own header
	// would let the upstream answer in OpenMetrics, which must not be passed on
	// under our Content-Type.
	accept = "text/plain;version=0.0.4"
	// readBuffer is the size of a connection's buffer. It holds several of the
	// 2 and 4 KiB chunks that net/http servers send, so that one system call and
	// one call of Read take them all.
	readBuffer = 64 << 10
	// maxHeader bounds the response's header.
	maxHeader = 256 << 10
	// idleTimeout is how long a connection is kept between scrapes; Prometheus
	// keeps its own for as long.
	idleTimeout = 5 * time.Minute
	// maxRedirects is net/http's own default.
	maxRedirects = 10
)

// web is an upstream that answers over HTTP.
type web struct {
	limit   int64 // of a body, in bytes
	memory  *source.Memory
	client  *http.Client
	request *http.Request // its URL has no user
	public  string        // the URL without secrets
	// secretive is whether requests may contain secrets: the URL has a user or a query, or the
	// client is given.
	secretive bool

	idle chan *transfer // at most one that is not in use: requests rarely overlap
}

func newWeb(u *url.URL, opts Options, maxBody int64) *web {
	client := &http.Client{Transport: newTransport()}
	if opts.Client != nil {
		c := *opts.Client
		client = &c
	}
	w := &web{
		limit: maxBody, memory: opts.Memory, client: client, public: publicName(u), secretive: u.User != nil || u.RawQuery != "" || opts.Client != nil,
		idle: make(chan *transfer, 1),
	}
	client.Jar = nil // would add its cookies to the shared request
	client.CheckRedirect = w.redirectPolicy(client.CheckRedirect)

	header := http.Header{
		"Accept":          {accept},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {cmp.Or(opts.UserAgent, defaultUserAgent)},
	}
	bare := *u
	bare.User = nil
	if u.User != nil {
		// In a header, so that no error of net/http can quote it.
		password, _ := u.User.Password()
		header.Set("Authorization", "Basic "+
			base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	w.request = &http.Request{
		Method: http.MethodGet, URL: &bare, Host: bare.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return w
}

func newTransport() *http.Transport {
	return &http.Transport{
		ReadBufferSize:         readBuffer,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    1, // requests rarely overlap
		DisableCompression:     true,
	}
}

func (w *web) name() string { return w.public }

func (w *web) close() { w.client.CloseIdleConnections() }

// fetch implements upstream.
func (w *web) fetch(ctx context.Context, b *raw.Batch) error {
	start, t := time.Now(), w.begin()
	defer w.end(t)
	// A transport may add credentials to the header, as that of prometheus/common does, and must not find old ones there.
	resp, err := w.client.Do(w.request.Clone(ctx))
	if err != nil {
		return t.noAnswer(ctx, err, time.Since(start))
	}
	defer resp.Body.Close()
	if publicName(resp.Request.URL) != w.public {
		t.landed = w.shown(resp.Request.URL)
	}
	if resp.StatusCode != http.StatusOK {
		return t.badStatus(resp.StatusCode)
	}
	if resp.ContentLength > w.limit {
		return tooLarge(t.where(), "the body", w.limit, resp.ContentLength)
	}
	r, size, err := t.decoded(resp)
	if err != nil {
		return t.noBody(ctx, err, 0, time.Since(start))
	}
	body, err := t.read(b.Body, r, size)
	if errors.Is(err, errNoMemory) {
		b.Body, b.Samples = nil, nil
		return noMemory(t.where(), w.memory)
	}
	if err != nil {
		return t.noBody(ctx, err, len(body), time.Since(start))
	}
	b.Body, b.ContentType, b.Landed = body, resp.Header.Get("Content-Type"), t.landed
	if endsUnsaid(resp) {
		leaveUnfinished(b)
	}
	return nil
}

// begin returns the memory for a transfer.
func (w *web) begin() *transfer {
	select {
	case t := <-w.idle:
		t.landed = ""
		return t
	default:
		return &transfer{web: w, bodyReader: bodyReader{max: w.limit, memory: w.memory}}
	}
}

// end keeps the memory of t, but not the response.
func (w *web) end(t *transfer) {
	t.wire.R = nil
	select {
	case w.idle <- t:
	default:
	}
}

// redirectPolicy follows redirects on the same server, which alone gets our secrets, not even the query as a Referer. It
// then calls next, if any.
func (w *web) redirectPolicy(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		refused := ""
		if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			refused = ": redirects to " + w.shown(req.URL) + ", another server"
		} else if len(via) >= maxRedirects {
			refused = ": endless redirects"
		}
		if refused != "" {
			return failed(source.BadStatus, nil, w.public+refused, "point the source at the exporter itself: curl -iL "+w.public)
		}
		req.Header.Del("Referer")
		if next != nil {
			return next(req, via)
		}
		return nil
	}
}
