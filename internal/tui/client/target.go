package client

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// Target is where the expositions of one node come from.
type Target struct {
	// URL is that of its /metrics. It may hold credentials, which are not shown.
	URL string
	// Client fetches it; nil is one of our own.
	Client *http.Client
	// Playback plays what the node says; nil is what it reads now. At most one Target
	// has one.
	Playback Playback
	// Choose says which devices of the node are shown; nil shows all. It is called
	// by one goroutine, whenever there are other devices than before, and must not
	// keep the Node.
	Choose func(n *Node) Selection
}

// processPath is where a proxy lists the processes on its devices.
const processPath = "/api/v1/processes"

// shown returns the URL without credentials.
func (t *Target) shown() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "(no URL)"
	}
	u.User = nil
	return u.String()
}

// processes returns the URL of the proxy's list of processes.
func (t *Target) processes() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/metrics") + processPath
	u.RawQuery = ""
	return u.String()
}

// client returns what fetches from t.
func (t *Target) client() *http.Client {
	if t.Client != nil {
		return t.Client
	}
	return http.DefaultClient
}

// InProcess is the URL of a Target whose handler is in this process. No proxy that a
// user names has it: nobody listens at port 0.
const InProcess = "http://localhost:0/metrics"

// Client returns a client whose requests h answers, as from this machine and
// without a network between.
func ForHandler(h http.Handler) *http.Client { return &http.Client{Transport: handlerTransport{h}} }

type handlerTransport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	a := &answer{header: http.Header{}}
	h.ServeHTTP(a, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: a, ContentLength: int64(a.Len()), Request: r,
	}, nil
}

// answer is what a handler wrote.
type answer struct {
	bytes.Buffer
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Close implements io.Closer.
func (a *answer) Close() error { return nil }
