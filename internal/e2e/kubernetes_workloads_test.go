package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestKubernetesRightsGrantedLater: without rights, pods have no workload, and the log names the
// missing right once; once it is granted they get one, and keep it after the right is revoked.
func TestKubernetesRightsGrantedLater(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.apply(t, ns, controller("StatefulSet", "server", nobody, "server", node, "replicas: 2, serviceName: none"))
	k.awaitPods(t, ns, "app=server", 2)
	k.deploy(t)
	a, exporter := k.account(t, ns, "proxy"), startHolders(t)
	exporter.hold(ns, "server-0", "server-1")
	c := exporter.startWith(t, k.kubeconfig(t, a, k.url))
	awaitTrue(t, "denied request", func() bool { return strings.Contains(fmt.Sprint(k.requests(t, a)), "get pods "+ns+"/server-1 403") })
	awaitWorkloads(t, c, map[string]string{"server-0": "", "server-1": ""})
	awaitLog(t, c, "deploy/kubernetes/rbac.yaml")
	known := map[string]string{"server-0": "StatefulSet server", "server-1": "StatefulSet server"}
	revoke := k.bind(t, a, "", "kpulse-proxy-workloads")
	awaitWorkloads(t, c, known)
	if log := c.Logged(); strings.Count(log, "rbac.yaml") != 1 {
		t.Errorf("the log does not name the missing right exactly once:\n%s", log)
	}
	revoke()
	awaitTrue(t, "end of the right", func() bool { return !k.allowed(t, a, right{"get", "", "pods", "", ns}) })
	exporter.hold(ns, "server-0", "server-1", "server-2")
	awaitTrue(t, "denied request", func() bool { return strings.Contains(fmt.Sprint(k.requests(t, a)), "server-2 403") })
	known["server-2"] = ""
	awaitWorkloads(t, c, known)
}

// TestKubernetesAPIServerFails: while the API server hangs, refuses or cuts connections, scrapes
// serve what is known and the failure is logged once; when it answers again, pods get their
// workload.
func TestKubernetesAPIServerFails(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.apply(t, ns, deployment("first", node, 1))
	k.apply(t, ns, deployment("second", node, 1))
	first, second := k.awaitPods(t, ns, "app=first", 1)[0].name(), k.awaitPods(t, ns, "app=second", 1)[0].name()
	a := k.account(t, ns, "proxy")
	k.bind(t, a, "", "kpulse-proxy-workloads")
	awaitTrue(t, "right to get pods", func() bool { return k.allowed(t, a, right{"get", "", "pods", "", ""}) })
	for name, fail := range map[string]func(*gate){
		"hangs":   (*gate).hang,
		"refuses": func(g *gate) { g.refuse(); g.cut() },
		"cuts":    func(g *gate) { g.hang(); g.refuse(); g.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, exporter := k.gate(t), startHolders(t)
			exporter.hold(ns, first)
			c := exporter.startWith(t, k.kubeconfig(t, a, g.url))
			known := map[string]string{first: "Deployment first"}
			awaitWorkloads(t, c, known)
			fail(g)
			exporter.hold(ns, first, second)
			known[second] = ""
			awaitWorkloads(t, c, known)
			awaitLog(t, c, "does not answer")
			awaitWorkloads(t, c, known)
			g.heal()
			known[second] = "Deployment second"
			awaitWorkloads(t, c, known)
			awaitLog(t, c, "answers again")
			if log := c.Logged(); strings.Count(log, "does not answer") != 1 {
				t.Errorf("the failure is not logged exactly once:\n%s", log)
			}
		})
	}
}
