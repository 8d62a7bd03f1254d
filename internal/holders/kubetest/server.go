// Package kubetest is a Kubernetes API server for tests, limited to lists and watches of pods
// and to reviews of rights.
package kubetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	changed chan struct{} // closed with each change
	pods    map[string]Pod
	history []event
	denied  bool
	hangs   chan struct{} // closed when the hang ends, nil while there is none
	endless string        // see Endless

	Taken atomic.Int64 // the most that a client took of an answer without end, in bytes
}

type event struct {
	kind string
	pod  Pod
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{pods: map[string]Pod{}, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and its watches. No client can come back meanwhile: Close of httptest would wait for its watch.
func (s *Server) Close() {
	s.Hang(false)
	s.Listener.Close()
	s.CloseClientConnections()
	s.Server.Close()
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

// Put adds a pod or changes it, by its UID, which is NAMESPACE/NAME if "".
func (s *Server) Put(p Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.UID == "" {
		p.UID = p.Namespace + "/" + p.Name
	}
	s.pods[p.UID] = p
	s.change("MODIFIED", p) // the API says ADDED for a new one, which clients treat alike
}

// Delete removes a pod by its UID.
func (s *Server) Delete(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change("DELETED", s.pods[uid])
	delete(s.pods, uid)
}

func (s *Server) change(kind string, p Pod) {
	s.history = append(s.history, event{kind, p})
	close(s.changed)
	s.changed = make(chan struct{})
}

// Deny starts or stops answering every request with 403, and ends the watches.
func (s *Server) Deny(denied bool) {
	s.mu.Lock()
	s.denied = denied
	s.mu.Unlock()
	s.CloseClientConnections()
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

// Endless makes lists go on without end, in "parts" or in one "answer", or watches with an "event"; "" ends that.
func (s *Server) Endless(how string) {
	s.mu.Lock()
	s.endless = how
	s.mu.Unlock()
	s.CloseClientConnections()
}

const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
	"message":"pods is forbidden: User \"u\" cannot list resource \"pods\" in API group \"\" at the cluster scope"}`

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hangs, denied, endless := s.hangs, s.denied, s.endless
	s.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case denied:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, forbidden)
	case r.FormValue("watch") == "" && endless == "answer":
		s.goOn(w, " ")
	case r.FormValue("watch") == "":
		s.list(w, r)
	case endless == "event":
		s.goOn(w, `{"type":"ADDED","object":{"kind":"`)
	default:
		s.watch(w, r)
	}
}

// goOn answers without end, and notes how much of that was taken.
func (s *Server) goOn(w io.Writer, begin string) {
	_, err := io.WriteString(w, begin)
	for taken := int64(0); err == nil; taken += 1 << 16 {
		_, err = io.WriteString(w, strings.Repeat(" ", 1<<16))
		s.Taken.Store(max(s.Taken.Load(), taken))
	}
}

// isSelected reports whether a request is for a pod, of all in its path, by its labels and its node.
func (p *Pod) isSelected(r *http.Request) bool {
	for one := range strings.SplitSeq(r.FormValue("labelSelector"), ",") {
		if name, value, is := strings.Cut(one, "="); is && p.Labels[name] != value {
			return false
		}
	}
	_, namespace, inNamespace := strings.Cut(r.URL.Path, "/namespaces/")
	_, node, onNode := strings.Cut(r.FormValue("fieldSelector"), "spec.nodeName=")
	return (!inNamespace || namespace == p.Namespace+"/pods") && (!onNode || node == p.Node)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, p := range s.pods {
		if p.isSelected(r) {
			items = append(items, p.object(len(s.history)))
		}
	}
	metadata := map[string]any{"resourceVersion": version(len(s.history))}
	if s.endless == "parts" {
		metadata["continue"] = "more"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})
}

// version is the resource version after some changes: never 0, which means any.
func version(changes int) string { return strconv.Itoa(100 + changes) }

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	out := json.NewEncoder(w)
	for at := from - 100; ; {
		s.mu.Lock()
		changed := s.changed
		for ; at < len(s.history); at++ {
			if e := &s.history[at]; e.pod.isSelected(r) {
				_ = out.Encode(map[string]any{"type": e.kind, "object": e.pod.object(at + 1)})
			}
		}
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// object returns a pod in the form of the API, with some of its other fields.
func (p *Pod) object(changes int) map[string]any {
	type m = map[string]any
	metadata := m{"name": p.Name, "namespace": p.Namespace, "uid": p.UID, "labels": p.Labels, "resourceVersion": version(changes)}
	if p.Terminating {
		metadata["deletionTimestamp"] = "2026-11-22T13:00:00Z"
	}
	container := m{"name": "exporter", "image": "example.com/exporter"}
	if p.Port != 0 {
		container["ports"] = []m{{"name": p.PortName, "containerPort": p.Port, "protocol": "TCP"}}
	}
	return m{
		"kind": "Pod", "apiVersion": "v1", "metadata": metadata,
		"spec":   m{"nodeName": p.Node, "containers": []m{container}},
		"status": m{"phase": cmp.Or(p.Phase, "Running"), "podIP": p.IP},
	}
}
