package exporter

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
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
	client  *http.Client
	request *http.Request // its URL has no user
	// ask copies request for a fetch.
	ask    func(context.Context) *http.Request
	public string // the URL without secrets
	given  bool   // by Options.Client, which may add credentials
	// secretive is whether requests may contain secrets: the URL has a user or a query, or the
	// client is given.
	secretive bool

	mu   sync.Mutex
	idle *transfer // one that is not in use, nil for none
}

func newWeb(u *url.URL, opts Options, maxBody int64) *web {
	client := &http.Client{Transport: newTransport()}
	if opts.Client != nil {
		c := *opts.Client
		client = &c
	}
	w := &web{limit: maxBody, client: client, public: publicName(u), given: opts.Client != nil, secretive: u.User != nil || u.RawQuery != "" || opts.Client != nil}
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
	w.ask = w.request.WithContext
	if w.given {
		// A transport may add credentials to this very header, as that of
		// prometheus/common v0.71 does, and would find old ones there at the next
		// request.
		w.ask = w.request.Clone
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

// fetch implements upstream. Requests rarely overlap, so it keeps the memory of one.
func (w *web) fetch(ctx context.Context, b *raw.Batch) error {
	start, t := time.Now(), w.begin()
	defer w.end(t)
	resp, err := w.client.Do(w.ask(ctx))
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
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.idle
	if w.idle = nil; t == nil {
		t = &transfer{web: w, bodyReader: bodyReader{max: w.limit}}
	}
	t.landed = ""
	return t
}

// end keeps the memory of t, but not the response.
func (w *web) end(t *transfer) {
	t.wire.R = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = t
}

// redirectPolicy follows redirects within HTTP, and sends no secrets to another place:
// neither the password nor, as the Referer, the query. It cannot remove what a given
// client adds, so with one it refuses redirects to another scheme, host or port. It
// then calls next, if any.
func (w *web) redirectPolicy(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		refused := ""
		first := via[0].URL
		away := req.URL.Scheme != first.Scheme || req.URL.Host != first.Host
		switch {
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			refused = ": redirects to " + w.shown(req.URL) + ", which is not HTTP"
		case len(via) >= maxRedirects:
			refused = ": endless redirects"
		case away && w.given:
			refused = ": redirects to " + w.shown(req.URL) + ", which must not get what http_config adds"
		}
		if refused != "" {
			return failed(source.BadStatus, nil, w.public+refused, "point the source at the exporter itself: curl -iL "+w.public)
		}
		req.Header.Del("Referer")
		if away {
			req.Header.Del("Authorization")
		}
		if next != nil {
			return next(req, via)
		}
		return nil
	}
}
