// Package kubetest is a Kubernetes API server for tests, limited to lists and watches of pods,
// with resource versions, bookmarks and expiry, and to reviews of rights. It is written from
// the API's documentation.
package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Pod is a pod that a test makes.
type Pod struct {
	Name, Namespace, UID, Node, IP string
	// Phase is Running if "".
	Phase string
	// Terminating pods were deleted, and have not ended yet.
	Terminating bool
	Labels      map[string]string
	// PortName and Port are those of the container; 0 is none.
	PortName string
	Port     int
}

// Server answers for one cluster.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	wake    chan struct{} // closed with each change
	pods    map[string]Pod
	history []event
	first   int // version of the oldest event that is remembered
	version int
	page    int
	denied  string        // why every request is refused, "" while none is
	hangs   chan struct{} // closed when the hang ends, nil while there is none
	cut     chan struct{} // closed with each Cut
	ending  string        // what cut watches end with
	watches int           // under way
	// requests are the URLs of all requests.
	requests []string
}

type event struct {
	version int
	kind    string
	pod     Pod
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{pods: map[string]Pod{}, wake: make(chan struct{}), cut: make(chan struct{}), version: 100, first: 100, page: 1000}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.Hang(false)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Kubeconfig writes a kubeconfig of the server, and returns its path.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: secret}}]
`, s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Put adds a pod or changes it, by its namespace and name.
func (s *Server) Put(p Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.UID == "" {
		p.UID = p.Namespace + "/" + p.Name
	}
	kind := "ADDED"
	if _, known := s.pods[p.UID]; known {
		kind = "MODIFIED"
	}
	s.pods[p.UID] = p
	s.tell(kind, p)
}

// Delete removes a pod by its UID, which is NAMESPACE/NAME if the test gave none.
func (s *Server) Delete(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	delete(s.pods, uid)
	s.tell("DELETED", p)
}

func (s *Server) tell(kind string, p Pod) {
	s.version++
	s.history = append(s.history, event{s.version, kind, p})
	close(s.wake)
	s.wake = make(chan struct{})
}

// Compact forgets the history: a watch from an earlier version is answered 410 Gone.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.history, s.first = nil, s.version
}

// Pages sets the size of the pages of lists.
func (s *Server) Pages(size int) { s.mu.Lock(); defer s.mu.Unlock(); s.page = size }

// Deny starts or stops answering every request with 403, and ends the watches.
func (s *Server) Deny(denied bool) {
	message := ""
	if denied {
		message = `pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope`
	}
	s.Refuse(message)
}

// Refuse is Deny with a message; "" stops it.
func (s *Server) Refuse(message string) {
	s.mu.Lock()
	s.denied = message
	s.mu.Unlock()
	s.Cut()
}

// Hang makes new requests wait, or ends that.
func (s *Server) Hang(hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs != nil {
		close(s.hangs)
		s.hangs = nil
	}
	if hangs {
		s.hangs = make(chan struct{})
	}
}

// Watches returns the number of watches under way, which the next Cut or Break ends.
func (s *Server) Watches() int { s.mu.Lock(); defer s.mu.Unlock(); return s.watches }

// Cut ends the watches under way, in the middle of an event.
func (s *Server) Cut() { s.end(`{"type":"MODIF`) }

// Break ends the watches under way with an error that is not 410.
func (s *Server) Break() {
	s.end(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"unable to decode an event","code":500}}`)
}

func (s *Server) end(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = text
	close(s.cut)
	s.cut = make(chan struct{})
}

// Requests returns the paths and queries of all requests.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.String())
	hangs, denied := s.hangs, s.denied
	s.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-r.Context().Done():
			return
		}
	}
	if r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, denied == "")
		return
	}
	namespace := ""
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); len(parts) == 5 && parts[2] == "namespaces" {
		namespace = parts[3]
	} else if r.URL.Path != "/api/v1/pods" {
		refuse(w, http.StatusNotFound, "the server could not find the requested resource")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	of := filterOf(r, namespace)
	switch {
	case denied != "":
		refuse(w, http.StatusForbidden, denied)
	case r.FormValue("watch") == "":
		s.list(w, r, of)
	default:
		s.watch(w, r, of)
	}
}

// filter is the selection of a request.
type filter struct {
	namespace, node string
	labels          map[string]string
}

func filterOf(r *http.Request, namespace string) filter {
	f := filter{namespace, strings.TrimPrefix(r.FormValue("fieldSelector"), "spec.nodeName="), map[string]string{}}
	for one := range strings.SplitSeq(r.FormValue("labelSelector"), ",") {
		if name, value, is := strings.Cut(one, "="); is {
			f.labels[name] = value
		}
	}
	return f
}

func (f *filter) selects(p *Pod) bool {
	for name, value := range f.labels {
		if p.Labels[name] != value {
			return false
		}
	}
	return (f.namespace == "" || f.namespace == p.Namespace) && (f.node == "" || f.node == p.Node)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, of filter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var uids []string
	for uid := range s.pods {
		if p := s.pods[uid]; of.selects(&p) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	from, _ := strconv.Atoi(r.FormValue("continue"))
	to, next := len(uids), ""
	if to > from+s.page {
		to = from + s.page
		next = strconv.Itoa(to)
	}
	items := []any{}
	for _, uid := range uids[from:to] {
		items = append(items, s.pods[uid].object(s.version))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "PodList", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version), "continue": next}, "items": items,
	})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, of filter) {
	at, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	s.mu.Lock()
	first, cut := s.first, s.cut
	s.watches++
	s.mu.Unlock()
	defer func() { s.mu.Lock(); defer s.mu.Unlock(); s.watches-- }()
	if at < first {
		refuse(w, http.StatusGone, "too old resource version")
		return
	}
	out := json.NewEncoder(w)
	_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": Pod{}.object(at)})
	for {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		wake := s.wake
		for i := range s.history {
			if e := &s.history[i]; e.version > at && of.selects(&e.pod) {
				_ = out.Encode(map[string]any{"type": e.kind, "object": e.pod.object(e.version)})
			}
		}
		at = s.version
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-wake:
		case <-cut:
			s.mu.Lock()
			ending := s.ending
			s.mu.Unlock()
			_, _ = io.WriteString(w, ending)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// object returns a pod in the form of the API, with some of its other fields.
func (p Pod) object(version int) map[string]any {
	metadata := map[string]any{
		"name": p.Name, "namespace": p.Namespace, "uid": p.UID, "labels": p.Labels,
		"resourceVersion": strconv.Itoa(version), "creationTimestamp": "2026-11-22T12:00:00Z",
	}
	if p.Terminating {
		metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = "2026-11-22T13:00:00Z", 30
	}
	container := map[string]any{"name": "exporter", "image": "example.com/exporter"}
	if p.Port != 0 {
		container["ports"] = []any{map[string]any{"name": p.PortName, "containerPort": p.Port, "protocol": "TCP"}}
	}
	phase := p.Phase
	if phase == "" {
		phase = "Running"
	}
	return map[string]any{
		"kind": "Pod", "apiVersion": "v1", "metadata": metadata,
		"spec":   map[string]any{"nodeName": p.Node, "containers": []any{container}},
		"status": map[string]any{"phase": phase, "podIP": p.IP, "podIPs": []any{map[string]any{"ip": p.IP}}},
	}
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
}
