package client

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Target is where the expositions of one node come from.
type Target struct {
	URL    string       // of its /metrics; it may hold credentials, which are never shown
	Client *http.Client // nil means http.DefaultClient
	// Lean takes the form of the series that the proxy serves by itself, not all of them.
	Lean bool
	// Lead is the number of ticks that are shown as history at the start. The source gives one for
	// each value of Ticks, at once, and keeps its pace after Ticks is closed.
	Lead  int
	Ticks chan<- struct{}
	// Choose selects the devices of the node to show; nil shows all. It must not keep the Node.
	Choose func(n *Node) Selection
}

// Selection says which devices of a node are shown.
type Selection struct {
	Shown   []int  // indices of Node.GPUs, in ascending order
	By      string // what hides the others, such as --gpus or an environment variable
	Trouble string // one line about devices that were asked for and do not exist, with what to do
	// Doubt is one line about a device that a list of the environment names and that does not exist.
	// Nothing is hidden because of such a list.
	Doubt string
}

// keep removes the devices that are not selected from n, which is not published yet.
func (n *Node) keep(s Selection) {
	all := n.GPUs
	n.GPUs = make([]*GPU, 0, len(s.Shown))
	for _, i := range s.Shown {
		n.GPUs = append(n.GPUs, all[i])
	}
	n.HiddenBoards = map[Key]bool{}
	for _, g := range all {
		n.HiddenBoards[g.Key.board()] = true
	}
	for _, g := range n.GPUs {
		delete(n.HiddenBoards, g.Key.board())
	}
	n.Hidden, n.HiddenBy, n.Trouble = len(n.HiddenBoards), s.By, cmp.Or(s.Trouble, s.Doubt)
}

// board returns the Key of the device's board, or of the device itself if it is a board.
func (k Key) board() Key { return Key{Node: k.Node, UUID: k.UUID} }

// Hides reports whether the board of a device is left out.
func (n *Node) Hides(device Key) bool { return n.HiddenBoards[device.board()] }

// publicURL returns the URL without credentials. The query may hold a token, so only its
// source parameters are kept, which tell the sources of one proxy apart.
func (t *Target) publicURL() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "(no URL)"
	}
	u.User, u.RawQuery = nil, url.Values{"source": u.Query()["source"]}.Encode()
	return u.String()
}

// readURL returns the URL to fetch. A proxy from before it knew the forms serves the one that it has.
func (t *Target) readURL() string {
	u, err := url.Parse(t.URL)
	if err != nil || t.Lean || u.Query().Has("series") {
		return t.URL
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery+"&series=full", "&")
	return u.String()
}

// pathURL returns the URL of another path of the proxy.
func (t *Target) pathURL(path string) string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/metrics") + path
	u.RawQuery = ""
	return u.String()
}

// InProcess is the URL of a Target whose handler is in this process. No proxy can have it, as
// nothing listens on port 0.
const InProcess = "http://localhost:0/metrics"

// ForHandler returns a client whose requests h answers without a network, as if from this
// machine.
func ForHandler(h http.Handler) *http.Client { return &http.Client{Transport: handlerTransport{h}} }

type handlerTransport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr, r.RequestURI, r.Host = "127.0.0.1:0", r.URL.RequestURI(), cmp.Or(r.Host, r.URL.Host)
	w := &responseWriter{header: http.Header{}}
	h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: cmp.Or(w.status, http.StatusOK), Header: w.header, Body: io.NopCloser(w), Request: r}, nil
}

// responseWriter keeps what a handler writes.
type responseWriter struct {
	bytes.Buffer
	header http.Header
	status int // 0 means http.StatusOK
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. The first status counts.
func (w *responseWriter) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }
