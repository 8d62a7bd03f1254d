package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestKubernetesRunsPods: the servers do what the other tests rely on. The controller manager
// creates the pods of a Deployment, the scheduler assigns them to a node, and kwok runs them, each
// at an address to listen on.
func TestKubernetesRunsPods(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.apply(t, ns, deployment("server", node, 2))
	pods := k.awaitPods(t, ns, "app=server", 2)
	for _, pod := range pods {
		owner := pod.at("metadata", "ownerReferences", 0, "kind") + " " + pod.at("metadata", "ownerReferences", 0, "name")
		if pod.at("spec", "nodeName") != node || !strings.HasPrefix(owner, "ReplicaSet server-") || !strings.HasPrefix(pod.at("status", "podIP"), "127.64.") {
			t.Errorf("pod %s of %s is on node %s at %s", pod.name(), owner, pod.at("spec", "nodeName"), pod.at("status", "podIP"))
		}
	}
	k.delete(t, "v1", "Pod", ns, pods[0].name())
	awaitTrue(t, "other pod", func() bool { return k.get(t, "v1", "Pod", ns, pods[0].name()) == nil })
	k.awaitPods(t, ns, "app=server", 2)
	k.delete(t, "apps/v1", "Deployment", ns, "server")
	k.awaitPods(t, ns, "app=server", 0)
}

// TestKubernetesGate: a gate that hangs holds requests back, one that is cut ends them, one that
// refuses accepts none, and each heals.
func TestKubernetesGate(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns := k.namespace(t)
	a, g := k.account(t, ns, "proxy"), k.gate(t)
	if text, err := os.ReadFile(k.kubeconfig(t, a, g.url)); err != nil || !strings.Contains(string(text), g.url) {
		t.Errorf("the kubeconfig does not name the gate: %v\n%s", err, text)
	}
	version := make(chan error, 1)
	ask := func() {
		_, _, err := k.send(g.url, a.token, "GET", "/version", "", nil)
		version <- err
	}
	if ask(); <-version != nil {
		t.Fatal("an open gate passes nothing")
	}
	g.hang()
	go ask()
	awaitTrue(t, "request that hangs", func() bool { return g.holds() })
	g.heal()
	if err := <-version; err != nil {
		t.Errorf("after it hung: %v", err)
	}
	g.hang()
	go ask()
	awaitTrue(t, "request that hangs", func() bool { return g.holds() })
	g.refuse()
	g.cut()
	if err := <-version; err == nil {
		t.Error("a request that was cut is answered")
	}
	if ask(); <-version == nil {
		t.Error("a gate that refuses passes a request")
	}
	g.heal()
	if ask(); <-version != nil {
		t.Error("a healed gate passes nothing")
	}
}
