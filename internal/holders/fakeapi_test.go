package holders

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeAPI answers like an API server with some objects.
type fakeAPI struct {
	mu       sync.Mutex
	objects  map[string]string           // metadata by path
	handlers map[string]http.HandlerFunc // in place of objects, by path
	asked    map[string]int              // by path
	wrong    []string                    // what is wrong with requests
}

// ownerRef is an owner reference of a fake object. Its UID is that of the object of its
// name, such as replicasets-web, unless it is given.
type ownerRef struct {
	apiVersion, kind, name, uid string
	plain                       bool // no controller
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{objects: map[string]string{}, handlers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
}

// add adds an object. path is below /api/v1 or /apis and ends in its name.
func (f *fakeAPI) add(path string, labels map[string]string, owners ...ownerRef) {
	segments := strings.Split(path, "/")
	name := segments[len(segments)-1]
	type m = map[string]any
	refs := []m{}
	for _, o := range owners {
		if o.uid == "" {
			o.uid = strings.ToLower(o.kind) + "s-" + o.name
		}
		refs = append(refs, m{"apiVersion": o.apiVersion, "kind": o.kind, "name": o.name, "uid": o.uid, "controller": !o.plain})
	}
	metadata := m{"name": name, "uid": segments[len(segments)-2] + "-" + name, "labels": labels, "ownerReferences": refs}
	text, err := json.Marshal(m{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
	if err != nil {
		panic(err)
	}
	f.objects[path] = string(text)
}

// serve adds what discovery says about a version of a group: kind, resource, and whether it
// is in namespaces.
func (f *fakeAPI) serve(groupVersion, kind, name string, namespaced bool) {
	f.objects["/apis/"+groupVersion] = fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[
		{"name":"%[3]s/status","kind":%[2]q,"namespaced":%[4]v},{"name":%[3]q,"kind":%[2]q,"namespaced":%[4]v}]}`, groupVersion, kind, name, namespaced)
}

// on sets the handler of a path; nil is none.
func (f *fakeAPI) on(path string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[path] = h
}

// count returns how often a path was requested; "" is all of them.
func (f *fakeAPI) count(path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != "" {
		return f.asked[path]
	}
	for _, one := range f.asked {
		n += one
	}
	return n
}

// ServeHTTP implements http.Handler.
func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	path := r.URL.Path
	f.asked[path]++
	object, have := f.objects[path]
	handler := f.handlers[path]
	if r.Method != http.MethodGet {
		f.wrong = append(f.wrong, r.Method+" "+path)
	}
	if strings.Contains(object, "PartialObjectMetadata") && (!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") || r.URL.Query().Get("resourceVersion") != "0") {
		f.wrong = append(f.wrong, path+" whole, or not from memory")
	}
	f.mu.Unlock()
	switch {
	case handler != nil:
		handler(w, r)
	case have:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, object)
	default:
		refuse(w, http.StatusNotFound, "NotFound")
	}
}

// refuse answers like an API server that refuses a request.
func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`, reason, code)
}

// forbid refuses for lack of a right.
func forbid(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, "Forbidden") }

// cluster returns a cluster that asks f.
func (f *fakeAPI) cluster(t testing.TB, labels ...WorkloadLabel) *cluster {
	t.Helper()
	return newCluster(clientOf(t, f), labels, newBreaker(discard))
}

// clientOf returns the access to a server, which must be asked for f's objects as it should.
func clientOf(t testing.TB, f http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.Listener.Close() // no client comes back
		server.CloseClientConnections()
		server.Close()
		if f, is := f.(*fakeAPI); is && len(f.wrong) > 0 {
			t.Errorf("asked %q", f.wrong)
		}
	})
	client, err := NewClient(kubeconfig(t, server.URL), "test")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var discard = slog.New(slog.DiscardHandler)
