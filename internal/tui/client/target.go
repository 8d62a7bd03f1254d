package client

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Target is where the expositions of one node come from.
type Target struct {
	// URL is the URL of its /metrics. It may hold credentials, which are never shown.
	URL string
	// Client fetches it; nil means http.DefaultClient.
	Client *http.Client
	// Lead is the number of ticks that are shown as history at the start. The source gives one for
	// each value of Ticks, at once, and keeps its pace after Ticks is closed.
	Lead  int
	Ticks chan<- struct{}
	// Choose selects the devices of the node to show; nil shows all. One goroutine calls it
	// whenever the devices change. It must not keep the Node.
	Choose func(n *Node) Selection
}

// Selection says which devices of a node are shown.
type Selection struct {
	// Shown are indices of Node.GPUs, in ascending order.
	Shown []int
	// By is what hides the others, such as --gpus or an environment variable.
	By string
	// Trouble is one line about devices that were asked for and do not exist, with
	// what to do; "" if there are none.
	Trouble string
	// Doubt is one line about a device that a list of the environment names and that does not
	// exist; "" if there is none. Nothing is hidden because of such a list.
	Doubt string
}

// selector applies the Selection of a Target. It is for one goroutine.
type selector struct {
	choose    func(n *Node) Selection // nil selects all
	keys      []Key                   // the devices of selection
	selection Selection
}

// apply removes from n, which is not published yet, the devices that are not selected. It calls
// choose only when the devices change.
func (s *selector) apply(n *Node) {
	if s.choose == nil {
		return
	}
	same := func(k Key, g *GPU) bool { return k == g.Key }
	if s.keys == nil || !slices.EqualFunc(s.keys, n.GPUs, same) {
		s.keys = []Key{}
		for _, g := range n.GPUs {
			s.keys = append(s.keys, g.Key)
		}
		s.selection = s.choose(n)
	}
	all := n.GPUs
	n.GPUs = make([]*GPU, 0, len(s.selection.Shown))
	for _, i := range s.selection.Shown {
		n.GPUs = append(n.GPUs, all[i])
	}
	n.HiddenBoards = nil
	shown := boards(n.GPUs)
	for _, key := range boards(all) {
		if !slices.Contains(shown, key) {
			n.HiddenBoards = append(n.HiddenBoards, key)
		}
	}
	n.Hidden, n.HiddenBy, n.Trouble = len(n.HiddenBoards), s.selection.By, cmp.Or(s.selection.Trouble, s.selection.Doubt)
}

// boards returns the Keys of the boards of gpus, including those with only instances in gpus.
func boards(gpus []*GPU) (keys []Key) {
	for u := range Units(gpus) {
		keys = append(keys, u.Lead().Key.board())
	}
	return keys
}

// board returns the Key of the device's board, or of the device itself if it is a board.
func (k Key) board() Key { return Key{Node: k.Node, UUID: k.UUID} }

// Hides reports whether the board of a device is left out.
func (n *Node) Hides(device Key) bool { return slices.Contains(n.HiddenBoards, device.board()) }

// publicURL returns the URL without credentials. The query may hold a token, so only its
// source parameters are kept, which tell the sources of one proxy apart.
func (t *Target) publicURL() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "(no URL)"
	}
	u.User = nil
	u.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(pair string) bool {
		return !strings.HasPrefix(pair, "source=")
	}), "&")
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

// httpClient returns the client that fetches from t.
func (t *Target) httpClient() *http.Client {
	if t.Client != nil {
		return t.Client
	}
	return http.DefaultClient
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
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	w := &responseWriter{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: w, ContentLength: int64(w.Len()), Request: r,
	}, nil
}

// responseWriter keeps what a handler writes, and then serves as the body of the response.
type responseWriter struct {
	bytes.Buffer
	header  http.Header
	status  int
	written bool
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(status int) {
	if !w.written {
		w.status, w.written = status, true
	}
}

// Close implements io.Closer.
func (w *responseWriter) Close() error { return nil }
