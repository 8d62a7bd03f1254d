package holders

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	c "github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
)

// apiServer answers for ResourceSlices and ResourceClaims. Any goroutine may use it.
type apiServer struct {
	*httptest.Server
	client   func() (*Client, error)
	mu       sync.Mutex
	version  string            // of its API
	status   int               // with which it refuses slices, 0 for none
	noClaims bool              // claims may not be read
	items    []string          // slices
	claims   map[string]string // results, by namespace/name
	asked    []string          // requests
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{version: "v1", claims: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	s.client = func() (*Client, error) { return NewClient(kubeconfig(t, s.URL), "test") }
	t.Cleanup(func() { s.Listener.Close(); s.CloseClientConnections(); s.Close() })
	return s
}

func (s *apiServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path+"?"+r.URL.Query().Get("fieldSelector"))
	path, has := strings.CutPrefix(r.URL.Path, "/apis/resource.k8s.io/"+s.version+"/")
	namespace, claim, isClaim := strings.Cut(strings.TrimPrefix(path, "namespaces/"), "/resourceclaims/")
	results, known := s.claims[namespace+"/"+claim]
	switch {
	case !has || isClaim && !known && !s.noClaims:
		http.Error(w, "none", http.StatusNotFound)
	case isClaim && s.noClaims:
		http.Error(w, "no", http.StatusForbidden)
	case isClaim:
		fmt.Fprintf(w, `{"status":{"allocation":{"devices":{"results":[%s]}}}}`, results)
	case s.status != 0:
		http.Error(w, "no", s.status)
	default:
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(s.items, ","))
	}
}

func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// slice returns a ResourceSlice of a pool, each device as name:attribute=value,…
func slice(pool string, generation int, devices ...string) string {
	var all []string
	for _, text := range devices {
		name, list, _ := strings.Cut(text, ":")
		var attributes []string
		for pair := range strings.SplitSeq(list, ",") {
			key, value, _ := strings.Cut(pair, "=")
			attributes = append(attributes, fmt.Sprintf(`"%s":{"string":"%s"}`, key, value))
		}
		all = append(all, fmt.Sprintf(`{"name":"%s","attributes":{%s,"index":{"int":1}}}`, name, strings.Join(attributes, ",")))
	}
	return fmt.Sprintf(`{"spec":{"driver":"gpu.nvidia.com","nodeName":"n1","pool":{"name":"%s","generation":%d,"resourceSliceCount":1},"devices":[%s]}}`, pool, generation, strings.Join(all, ","))
}

// withClaims runs a Kubelet until the test ends, and returns a bench that attributes the devices
// of node.
func withClaims(t *testing.T, server *kubelettest.Kubelet, client func() (*Client, error)) *bench {
	k := NewKubelet(KubeletOptions{Socket: server.Socket, Client: client, Node: "n1", Interval: 5 * time.Millisecond, Logger: discard})
	b := &bench{t: t, kubelet: k, feed: k.Feed(FeedOptions{MIGPlaces: func() []c.MIGPlace { return twoMIGDevices }})}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { k.Run(ctx); close(done) }()
	t.Cleanup(func() { end(); <-done })
	return b
}

// awaitHolders waits until these hold the devices, each as "DEVICE POD".
func (b *bench) awaitHolders(want ...string) {
	b.t.Helper()
	var got []string
	defer func() {
		if b.t.Failed() {
			b.t.Logf("held by %q, want %q; notes %q", got, want, b.kubelet.Notes())
		}
	}()
	await(b.t, "the holders", func() bool {
		b.tell(node())
		b.feed.Attribute(&b.frame)
		got = nil
		for _, a := range b.frame.AllocationSet.Allocations {
			got = append(got, fmt.Sprintf("%d %s", a.Device, a.Pod))
		}
		return slices.Equal(got, want)
	})
}

// TestClaims follows claims from the kubelet to devices.
func TestClaims(t *testing.T) {
	api, server := newAPIServer(t), kubelettest.New(t)
	api.items = []string{
		slice("n1", 2, "gpu-0:type=gpu,uuid=GPU-A", "mig-x:type=mig,uuid=MIG-x,parentUUID=GPU-b,profile=1g.10gb"),
		slice("n1", 2, "mig-y:gpu.nvidia.com/type=mig,gpu.nvidia.com/uuid=MIG-y,parentUUID=GPU-b,profile=1g.10gb", "mig-new:type=mig,parentUUID=GPU-B,profile=2g.20gb"),
		slice("n1", 1, "gpu-0:type=gpu,uuid=GPU-old", "gpu-9:type=gpu,uuid=GPU-b"),
	}
	both := kubelettest.Claimed("n", "both", "two", "n1", "mig-x", "mig-y")
	server.Set(
		kubelettest.Claimed("n", "train", "own", "n1", "gpu-0"),
		both,
		kubelettest.Claimed("n", "share", "shared", "n1", "mig-x"), kubelettest.Claimed("n", "share-2", "shared", "n1", "mig-x"),
		kubelettest.Claimed("n", "dynamic", "new", "n1", "mig-new"),
		kubelettest.Claimed("n", "gone", "gone", "n1", "gpu-9"),
		kubelettest.Claimed("n", "watch", "watch", "n1", "gpu-0"),
	)
	api.claims["n/watch"] = `{"driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0","adminAccess":true}`
	b := withClaims(t, server, api.client)
	b.awaitHolders("0 train", "3 both", "3 share", "3 share-2", "4 both")
	k := b.kubelet
	if _, unmatched, unread := k.Devices(); unmatched != 1 || unread != 1 || k.ClaimsAsked.Load() == 0 || k.ClaimsFailed.Load() != 0 || len(k.Notes()) != 0 {
		t.Errorf("%d unmatched, %d unread, %d requests failed, notes %q", unmatched, unread, k.ClaimsFailed.Load(), k.Notes())
	}
	api.set(func() {
		for _, asked := range api.asked {
			if strings.Contains(asked, "resourceslices") && asked != "/apis/resource.k8s.io/v1/resourceslices?spec.nodeName=n1,spec.driver=gpu.nvidia.com" {
				t.Errorf("asked for %s", asked)
			}
		}
		api.items = append(api.items, slice("n1", 3, "gpu-9:type=gpu,uuid=GPU-b"))
	})
	// A holder keeps its device although the device is withdrawn, and no other pod gets it.
	b.awaitHolders("0 train", "1 gone", "3 both", "3 share", "3 share-2", "4 both")
	server.Set(kubelettest.Claimed("n", "train", "another", "n1", "gpu-0"), kubelettest.Claimed("n", "gone", "gone", "n1", "gpu-9"))
	b.awaitHolders("1 gone")
	server.Set()
	b.awaitHolders()
}

// TestNoClaimsAskNobody: without a claim, the API server gets no requests.
func TestNoClaimsAskNobody(t *testing.T) {
	api, server := newAPIServer(t), kubelettest.New(t)
	server.Set(kubelettest.Pod("n", "p", "nvidia.com/gpu", "GPU-a"))
	b := withClaims(t, server, func() (*Client, error) { t.Error("a client is made"); return api.client() })
	b.awaitHolders("0 p")
	asked := server.Asked.Load()
	await(t, "further questions to the kubelet", func() bool { return server.Asked.Load() > asked+3 })
	api.set(func() {
		if len(api.asked) > 0 {
			t.Errorf("asked for %q", api.asked)
		}
	})
}

// TestClaimsThatCannotBeResolved: causes have remedies, pods without claims stay, and claims
// are resolved as soon as they can be.
func TestClaimsThatCannotBeResolved(t *testing.T) {
	for _, x := range []struct {
		name          string
		break_        func(*apiServer)
		cause, remedy string
	}{
		{"denied", func(s *apiServer) { s.status = http.StatusForbidden }, "ResourceSlices may not be read", "grant the service account list"},
		{"broken", func(s *apiServer) { s.status = http.StatusInternalServerError }, "an error on the server", "can be reached"},
		{"old", func(s *apiServer) { s.version = "v1alpha3" }, "has no ResourceSlices", ""},
		{"nonsense", func(s *apiServer) { s.items = []string{"{"} }, "cannot be read", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			api, server := newAPIServer(t), kubelettest.New(t)
			x.break_(api)
			server.Set(kubelettest.Claimed("n", "p", "own", "n1", "gpu-0"), kubelettest.Pod("n", "q", "nvidia.com/gpu", "GPU-b"))
			b := withClaims(t, server, api.client)
			b.awaitHolders("1 q")
			await(t, "a note", func() bool { return len(b.kubelet.Notes()) == 1 })
			if got := b.kubelet.Notes()[0]; !strings.Contains(got.Cause, x.cause) || !strings.Contains(got.Remedy, x.remedy) {
				t.Errorf("note %q", got)
			}
			if _, _, unread := b.kubelet.Devices(); unread != 1 || b.kubelet.ClaimsFailed.Load() == 0 {
				t.Errorf("%d unread, %d requests failed", unread, b.kubelet.ClaimsFailed.Load())
			}
			api.set(func() {
				api.status, api.version, api.items = 0, "v1", []string{slice("n1", 1, "gpu-0:type=gpu,uuid=GPU-a")}
			})
			b.awaitHolders("0 p", "1 q")
			await(t, "no note", func() bool { return len(b.kubelet.Notes()) == 0 })
		})
	}
}

// TestClaimsThatMayNotBeRead: pods that only watch then count as holders, and a note says so.
func TestClaimsThatMayNotBeRead(t *testing.T) {
	api, server := newAPIServer(t), kubelettest.New(t)
	api.noClaims = true
	api.items = []string{slice("n1", 1, "gpu-0:type=gpu,uuid=GPU-a")}
	server.Set(kubelettest.Claimed("n", "p", "own", "n1", "gpu-0"))
	b := withClaims(t, server, api.client)
	b.awaitHolders("0 p")
	await(t, "a note", func() bool { return len(b.kubelet.Notes()) == 1 })
	if got := b.kubelet.Notes()[0]; !strings.Contains(got.Cause, "adminAccess") || !strings.Contains(got.Remedy, "resourceclaims.resource.k8s.io") {
		t.Errorf("note %q", got)
	}
	api.set(func() {
		api.noClaims, api.claims["n/own"] = false, `{"driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0","adminAccess":true}`
	})
	b.awaitHolders() // once it is granted
	await(t, "no note", func() bool { return len(b.kubelet.Notes()) == 0 })
}

// TestAPIServerThatHangs: pods that have devices without a claim are still found.
func TestAPIServerThatHangs(t *testing.T) {
	server, hang := kubelettest.New(t), make(chan struct{})
	defer close(hang)
	api := clientOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	server.Set(kubelettest.Claimed("n", "p", "own", "n1", "gpu-0"))
	k := NewKubelet(KubeletOptions{Socket: server.Socket, Client: func() (*Client, error) { return api, nil }, Logger: discard})
	k.claims.within = time.Millisecond
	k.ask(t.Context())
	server.Set(kubelettest.Claimed("n", "p", "own", "n1", "gpu-0"), kubelettest.Pod("n", "q", "nvidia.com/gpu", "GPU-b"))
	k.ask(t.Context())
	if _, unmatched, unread := k.Devices(); unread != 1 || unmatched != 1 || k.ClaimsFailed.Load() != 1 || len(k.Notes()) != 1 {
		t.Errorf("%d unread, %d unmatched, %d requests failed, notes %q", unread, unmatched, k.ClaimsFailed.Load(), k.Notes())
	}
}
