package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// exporterPods serves the pods of a DaemonSet: each listens at its pod's address and has one GPU,
// GPU-NODE, whose temperature is the number of the pod, counted from 1.
type exporterPods struct {
	k    *cluster
	ns   string
	port string
	n    int
	stop map[string]func() // by pod
}

// startExporterPods creates the DaemonSet dcgm-exporter for nodes with the label gpus=NAMESPACE.
func startExporterPods(t *testing.T, k *cluster, ns string) *exporterPods {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	k.apply(t, ns, fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dcgm-exporter}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: dcgm-exporter}}
  updateStrategy: {type: OnDelete}
  template:
    metadata: {labels: {app.kubernetes.io/name: dcgm-exporter}}
    spec:
      nodeSelector: {gpus: %s}
      terminationGracePeriodSeconds: 0
      containers: [{name: exporter, image: none, ports: [{name: metrics, containerPort: %s}]}]
`, ns, port))
	return &exporterPods{k: k, ns: ns, port: port, stop: map[string]func(){}}
}

// join gives a node the label that the DaemonSet selects; leave removes it.
func (e *exporterPods) join(t *testing.T, node string) {
	t.Helper()
	e.k.merge(t, "v1", "Node", "", node, "", `{"metadata": {"labels": {"gpus": "`+e.ns+`"}}}`)
}

func (e *exporterPods) leave(t *testing.T, node string) {
	t.Helper()
	e.k.merge(t, "v1", "Node", "", node, "", `{"metadata": {"labels": {"gpus": null}}}`)
}

// pods waits until one pod runs on each of the nodes and nowhere else, starts and stops their
// servers accordingly, and returns the pods' names by node.
func (e *exporterPods) pods(t *testing.T, nodes ...string) map[string]string {
	t.Helper()
	names, there := map[string]string{}, map[string]bool{}
	pods := e.awaitOn(t, nodes)
	for _, pod := range pods {
		names[pod.at("spec", "nodeName")], there[pod.name()] = pod.name(), true
	}
	for name, stop := range e.stop {
		if !there[name] {
			stop() // another pod may have its address now
		}
	}
	for _, pod := range pods {
		if e.stop[pod.name()] == nil {
			e.stop[pod.name()] = e.serve(t, pod.at("status", "podIP"), pod.at("spec", "nodeName"))
		}
	}
	return names
}

func (e *exporterPods) awaitOn(t *testing.T, nodes []string) (pods []object) {
	t.Helper()
	awaitTrue(t, fmt.Sprintf("exporters on %v", nodes), func() bool {
		pods = e.k.list(t, "v1", "Pod", e.ns, "app.kubernetes.io/name=dcgm-exporter")
		running := map[string]bool{}
		for _, pod := range pods {
			if pod.at("status", "phase") != "Running" || pod.at("metadata", "deletionTimestamp") != "" {
				return false
			}
			running[pod.at("spec", "nodeName")] = true
		}
		for _, node := range nodes {
			if !running[node] {
				return false
			}
		}
		return len(pods) == len(nodes)
	})
	return pods
}

// serve listens at a pod's address until stop.
func (e *exporterPods) serve(t *testing.T, ip, node string) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, e.port))
	if err != nil {
		t.Fatal(err)
	}
	e.n++
	body := fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-%s\"} %d\n", node, e.n)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return func() { server.Close() }
}

var temperatureOf = regexp.MustCompile(`(?m)^DCGM_FI_DEV_GPU_TEMP\{.*UUID="GPU-([^"]*)".*\} (\d+)$`)

// awaitExported waits until a proxy serves the temperatures of exactly these nodes' GPUs, each
// under its node's name.
func awaitExported(t *testing.T, c *child, want map[string]string) {
	t.Helper()
	var body string
	defer func() {
		if t.Failed() {
			t.Errorf("want %v\n%s\n%s", want, body, c.Logged())
		}
	}()
	awaitTrue(t, "readings of the exporters", func() bool {
		got := map[string]string{}
		_, body = page(t, c, "/metrics")
		for _, m := range temperatureOf.FindAllStringSubmatch(body, -1) {
			got[m[1]] = m[2]
			if !regexp.MustCompile(`(?m)^kpulse_gpu_temperature_celsius\{hostname="` + m[1] + `",.*\} ` + m[2] + `$`).MatchString(body) {
				return false
			}
		}
		return maps.Equal(got, want)
	})
}

// startDiscovering runs the program with discovery in a namespace.
func startDiscovering(t *testing.T, k *cluster, a account, url string, flags ...string) *child {
	t.Helper()
	return startProxy(t, itself(t), append([]string{"--kube.discover", "--kube.discover-namespace=" + a.namespace, "--kube.config=" + k.kubeconfig(t, a, url), "--source.min-interval=0s"}, flags...)...)
}

// TestKubernetesDiscovery: the exporters of a DaemonSet are read as they appear, move, die and
// leave.
func TestKubernetesDiscovery(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns := k.namespace(t)
	one, two, three := k.node(t, ""), k.node(t, ""), k.node(t, "")
	a := k.account(t, ns, "proxy")
	k.bind(t, a, ns, "kpulse-proxy-discovery")
	awaitTrue(t, "right to watch pods", func() bool { return k.allowed(t, a, right{"watch", "", "pods", "", ns}) })
	e := startExporterPods(t, k, ns)
	e.join(t, one)
	first := e.pods(t, one)
	c := startDiscovering(t, k, a, k.url)
	of := startDiscovering(t, k, a, k.url, "--node-name="+two)
	awaitExported(t, c, map[string]string{one: "1"})

	e.join(t, two) // one appears
	e.pods(t, one, two)
	awaitExported(t, c, map[string]string{one: "1", two: "2"})
	awaitExported(t, of, map[string]string{two: "2"}) // a proxy of one node sees only that node

	e.leave(t, one) // one returns at another address, because another pod took its own
	e.awaitGone(t, first[one])
	k.apply(t, ns, barePod("other", nobody, one))
	k.awaitPods(t, ns, "app=other", 1)
	e.join(t, one)
	second := e.pods(t, one, two)
	awaitExported(t, c, map[string]string{one: "3", two: "2"})

	k.merge(t, "v1", "Pod", ns, second[two], "", `{"metadata": {"annotations": {"kpulse.test/exit": "1"}}}`) // one dies
	e.awaitGone(t, second[two])
	e.pods(t, one, two)
	awaitExported(t, c, map[string]string{one: "3", two: "4"})
	awaitExported(t, of, map[string]string{two: "4"})

	e.join(t, three)
	e.pods(t, one, two, three)
	awaitExported(t, c, map[string]string{one: "3", two: "4", three: "5"})
	awaitExported(t, of, map[string]string{two: "4"})

	e.leave(t, one)
	e.leave(t, two)
	e.pods(t, three)
	awaitExported(t, c, map[string]string{three: "5"})
	for _, r := range k.requests(t, a) {
		if !strings.HasPrefix(r.String(), "list pods "+ns+" 200") && !strings.HasPrefix(r.String(), "watch pods "+ns+" 200") {
			t.Errorf("the API server received %s", r)
		}
	}
}

func (e *exporterPods) awaitGone(t *testing.T, pod string) {
	t.Helper()
	awaitTrue(t, "end of pod "+pod, func() bool { return e.k.get(t, "v1", "Pod", e.ns, pod) == nil })
}
