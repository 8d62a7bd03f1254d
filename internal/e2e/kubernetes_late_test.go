package e2e

import (
	"fmt"
	"regexp"
	"testing"
)

// TestKubernetesLateAnswer: an owner that becomes known late does not move past seconds: they stay
// with the account without a name, and another begins. A chosen label names the workload before its
// owner does.
func TestKubernetesLateAnswer(t *testing.T) {
	t.Parallel()
	k := kubernetes(t)
	ns, node := k.namespace(t), k.node(t, "")
	k.apply(t, ns, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: %s}", jobSpec("train", node)))
	pod := k.awaitPods(t, ns, "app=train", 1)[0].name()
	a, exporter, g := k.account(t, ns, "proxy"), startHolders(t), k.gate(t)
	k.bind(t, a, "", "kpulse-proxy-workloads")
	awaitTrue(t, "right to get pods", func() bool { return k.allowed(t, a, right{"get", "", "pods", "", ""}) })
	exporter.hold(ns, pod)
	g.hang()
	c := exporter.startWith(t, k.kubeconfig(t, a, g.url))
	awaitTrue(t, "request that hangs", g.holds)
	awaitPage(t, c, "/metrics", 200, secondsOf(pod, "", "")+`[1-9]`)
	g.heal()
	awaitWorkloads(t, c, map[string]string{pod: "Job train"})
	past := regexp.MustCompile(secondsOf(pod, "", "") + `\S+`)
	_, metrics := page(t, c, "/metrics")
	before := past.FindString(metrics)
	metrics = awaitPage(t, c, "/metrics", 200, secondsOf(pod, "Job", "train")+`[1-9]`)
	if after := past.FindString(metrics); before == "" || after != before {
		t.Errorf("the past seconds changed from %q to %q", before, after)
	}

	labelled := exporter.startWith(t, k.kubeconfig(t, a, k.url), "--kube.workload-label=none", "--kube.workload-label=app=Training")
	awaitWorkloads(t, labelled, map[string]string{pod: "Training train"})
}

// secondsOf matches a pod's seconds, up to the number.
func secondsOf(pod, kind, name string) string {
	return fmt.Sprintf(`\nkpulse_allocation_seconds_total\{[^}]*workload_pod="%s",workload_container="main",workload_kind="%s",workload_name="%s",hpc_job=""\} `, pod, kind, name)
}
