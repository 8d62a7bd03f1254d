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
