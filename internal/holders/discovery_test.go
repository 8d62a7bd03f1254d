package holders

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubetest"
)

// discovered runs a discovery against a server, and remembers what it found.
type discovered struct {
	*Discovery
	t   *testing.T
	log *logs

	mu      sync.Mutex
	changed chan struct{}
	all     []Exporter
}

// discover begins a discovery of all nodes unless change says otherwise. It ends with the
// test.
func discover(t *testing.T, server *kubetest.Server, change func(*DiscoveryOptions)) *discovered {
	t.Helper()
	client, err := NewClient(server.Kubeconfig(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	d := &discovered{t: t, log: &logs{}, changed: make(chan struct{}, 1)}
	opts := DiscoveryOptions{
		Client: client, Selectors: []string{"app.kubernetes.io/name=dcgm-exporter", "app=nvidia-dcgm-exporter"}, Max: 100,
		Logger: slog.New(slog.NewTextHandler(d.log, nil)), Changed: d.take,
	}
	if change != nil {
		change(&opts)
	}
	d.Discovery = NewDiscovery(opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return d
}

func (d *discovered) take(all []Exporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = all
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *discovered) now() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, e := range d.all {
		all = append(all, fmt.Sprintf("%s:%s=%s", e.Node, e.Pod, e.Address))
	}
	return strings.Join(all, " ")
}

// expect waits until these are found, "NODE:POD=ADDRESS" each.
func (d *discovered) expect(want ...string) {
	d.t.Helper()
	until(d.t, func() bool { return d.now() == strings.Join(want, " ") }, func() string { return "found " + d.now() + ", want " + strings.Join(want, " ") })
}

// until waits until a condition holds.
func until(t *testing.T, is func() bool, why func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(why())
		}
	}
}

var (
	chart    = map[string]string{"app.kubernetes.io/name": "dcgm-exporter"}
	operator = map[string]string{"app": "nvidia-dcgm-exporter"}
)

// TestDiscovery: exporters appear, move and die.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	server := kubetest.New(t)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e1", Node: "n1", IP: "10.0.0.1", Labels: chart})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e2", Node: "n2", IP: "10.0.0.2", Labels: chart, PortName: "metrics", Port: 9500})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e3", Node: "n3", IP: "fd00::3", Labels: operator, PortName: "gpu-metrics", Port: 9401})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "waits", Node: "n0", Phase: "Pending", Labels: chart})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "other", Node: "n0", IP: "10.0.0.9"})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "both", Node: "n4", IP: "10.0.0.4", Labels: map[string]string{"app": "nvidia-dcgm-exporter", "app.kubernetes.io/name": "dcgm-exporter"}})
	d := discover(t, server, nil)
	n1, n2, n3, n4 := "n1:e1=10.0.0.1:9400", "n2:e2=10.0.0.2:9500", "n3:e3=[fd00::3]:9401", "n4:both=10.0.0.4:9400"
	d.expect(n1, n2, n3, n4)
	if c := d.Counts(); c.Exporters != 4 || c.Waiting != 1 {
		t.Errorf("%+v", c)
	}
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "waits", Node: "n0", IP: "10.0.0.10", Labels: chart})
	d.expect("n0:waits=10.0.0.10:9400", n1, n2, n3, n4)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "waits", Node: "n0", IP: "10.0.0.11", Labels: chart})
	d.expect("n0:waits=10.0.0.11:9400", n1, n2, n3, n4)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "waits", Node: "n0", IP: "10.0.0.11", Labels: chart, Phase: "Failed"})
	d.expect(n1, n2, n3, n4)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "both", Node: "n4", IP: "10.0.0.4", Labels: map[string]string{"app": "nvidia-dcgm-exporter", "app.kubernetes.io/name": "dcgm-exporter"}, Terminating: true})
	server.Delete("gpu/e1")
	server.Delete("gpu/both")
	d.expect(n2, n3)

	// The watches end, and later ones report what happened meanwhile.
	server.CloseClientConnections()
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e5", Node: "n5", IP: "10.0.0.5", Labels: chart})
	d.expect(n2, n3, "n5:e5=10.0.0.5:9400")
}

// TestDiscoveryOfANode asks for the pods of one node, namespace and port.
func TestDiscoveryOfANode(t *testing.T) {
	server := kubetest.New(t)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e1", Node: "n1", IP: "10.0.0.1", Labels: chart, PortName: "metrics", Port: 9500})
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e2", Node: "n2", IP: "10.0.0.2", Labels: chart})
	server.Put(kubetest.Pod{Namespace: "else", Name: "e1", Node: "n1", IP: "10.0.0.3", Labels: chart})
	d := discover(t, server, func(o *DiscoveryOptions) {
		o.Selectors, o.Node, o.Namespace, o.Port = o.Selectors[:1], "n1", "gpu", "9999"
	})
	d.expect("n1:e1=10.0.0.1:9999")
	if f := d.Absent(); f == nil || !strings.Contains(f.Cause, "have not been read yet") {
		t.Errorf("absent, though it was found: %v", f)
	}
	server.Delete("gpu/e1")
	d.expect("")
	if f := d.Absent(); f == nil || !strings.Contains(f.Cause, "no pod of an exporter (pods in namespace gpu on node n1 with app.kubernetes.io/name=dcgm-exporter)") {
		t.Errorf("absent: %v", f)
	}
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e1", Node: "n1", Phase: "Pending", Labels: chart})
	until(t, func() bool { f := d.Absent(); return f != nil && strings.Contains(f.Cause, "runs") }, func() string { return fmt.Sprint(d.Absent()) })
}

// TestDiscoveryDenied: without the right, the log says once what to grant; with it, exporters
// are found; if it is taken away, known exporters stay.
func TestDiscoveryDenied(t *testing.T) {
	t.Parallel()
	server := kubetest.New(t)
	server.Deny(true)
	server.Put(kubetest.Pod{Namespace: "gpu", Name: "e1", Node: "n1", IP: "10.0.0.1", Labels: chart})
	d := discover(t, server, nil)
	denied := func() bool {
		return len(d.Notes()) == 1 && strings.Contains(d.Notes()[0].Remedy, "deploy/kubernetes/rbac.yaml")
	}
	until(t, denied, func() string { return fmt.Sprint(d.Notes()) })
	if f := d.Absent(); f == nil || f.Kind != "denied" || !strings.Contains(f.Cause, "pods is forbidden") {
		t.Errorf("absent: %v", f)
	}
	server.Deny(false)
	d.expect("n1:e1=10.0.0.1:9400")
	until(t, func() bool { return d.Notes() == nil }, func() string { return fmt.Sprint(d.Notes()) })
	server.Deny(true)
	until(t, denied, func() string { return fmt.Sprint(d.Notes()) })
	until(t, func() bool { return d.Counts().Failures >= 4 }, func() string { return fmt.Sprintf("%+v", d.Counts()) })
	d.expect("n1:e1=10.0.0.1:9400")
	if n := strings.Count(d.log.String(), "exporter discovery failed"); n != 2 {
		t.Errorf("it is logged %d times, want once each time", n)
	}
}

// TestDiscoveryOfManyIsBounded: the first by node are read, and the rest is counted.
func TestDiscoveryOfManyIsBounded(t *testing.T) {
	server := kubetest.New(t)
	d := discover(t, server, func(o *DiscoveryOptions) { o.Max = 2 })
	until(t, func() bool { return d.Absent() == nil }, func() string { return fmt.Sprint(d.Absent()) })
	for i, node := range []string{"n2", "n3", "n1"} {
		server.Put(kubetest.Pod{Name: node, Node: node, IP: fmt.Sprintf("10.0.0.%d", i), Labels: chart})
	}
	until(t, func() bool { return d.Counts().LeftOut == 1 }, func() string { return fmt.Sprintf("%+v", d.Counts()) })
	d.expect("n1:n1=10.0.0.2:9400", "n2:n2=10.0.0.0:9400")
	if notes := d.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Cause, "not read: 1 exporter ") {
		t.Errorf("%v", notes)
	}
	server.Delete("/n2")
	d.expect("n1:n1=10.0.0.2:9400", "n3:n3=10.0.0.1:9400")
}

func TestParseSelector(t *testing.T) {
	if got, err := ParseSelector(DefaultSelector); err != nil || !slices.Equal(got, []string{"app.kubernetes.io/name=dcgm-exporter", "app=nvidia-dcgm-exporter"}) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := ParseSelector("x in (a, or),!y"); err != nil || len(got) != 1 {
		t.Errorf("%q %v", got, err)
	}
	for text, want := range map[string]string{"": "selects every pod", "a=b or ": "selects every pod", "=b": "is not a label selector", "a b": "is not a label selector"} {
		if _, err := ParseSelector(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, good := range map[string]bool{"": true, "metrics": true, "9400": true, "0": false, "65536": false, "Met rics": false} {
		if err := ParsePort(text); (err == nil) != good {
			t.Errorf("port %q: %v", text, err)
		}
	}
}

// TestAddressIsAnAddress: a pod is read at the IP address that the kubelet gave it, never at a
// name.
func TestAddressIsAnAddress(t *testing.T) {
	for ip, want := range map[string]string{"10.0.0.1": "10.0.0.1:9400", "fd00::1": "[fd00::1]:9400", "evil.example": "", "": ""} {
		var p podObject
		p.Status.Phase, p.Status.PodIP = "Running", ip
		e, ok := p.exporter("")
		if ok != (want != "") || ok && e.Address != netip.MustParseAddrPort(want) {
			t.Errorf("%s: %v %v", ip, e.Address, ok)
		}
	}
}
